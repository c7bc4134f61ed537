"""Philox4x32-10, compiled: the same bits as `vitrail.random.philox`.

`philox` is one call. `fill` makes many: a plain loop over counters in 64-bit lanes, which the
compiler vectorises (eight calls per instruction with AVX-512).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit, uint32, uint64
from numpy.typing import NDArray

from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.threads import over_rows
from vitrail.random import Key

VECTOR = 8  # calls per instruction with the widest registers; `fill` takes multiples of it
TILE = 128  # calls per tile: 2 KiB of words, which fit into the first-level cache

_LOW = uint64(0xFFFFFFFF)
_SHIFT = uint64(32)


@njit(inline="always")
def rounds(c0, c1, c2, c3, k0, k1):
    """Ten rounds on 32-bit values held in 64-bit words."""
    for _ in range(10):
        p0 = c0 * uint64(0xD2511F53)
        p1 = c2 * uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (
            (p1 >> _SHIFT) ^ c1 ^ k0,
            p1 & _LOW,
            (p0 >> _SHIFT) ^ c3 ^ k1,
            p0 & _LOW,
        )
        k0 = (k0 + uint64(0x9E3779B9)) & _LOW
        k1 = (k1 + uint64(0xBB67AE85)) & _LOW
    return c0, c1, c2, c3


@njit
def philox(c0, c1, c2, c3, k0, k1):
    """Four 32-bit words of the counter (c0, c1, c2, c3) under the key (k0, k1)."""
    w0, w1, w2, w3 = rounds(
        uint64(c0) & _LOW, uint64(c1) & _LOW, uint64(c2) & _LOW, uint64(c3) & _LOW,
        uint64(k0), uint64(k1),
    )  # fmt: skip
    return uint32(w0), uint32(w1), uint32(w2), uint32(w3)


@njit(inline="always")
def fill(words, blocks, numbers, first, factor, step, k0, k1):
    """Words (4·T,) uint32 of the T calls at (blocks[t], first + numbers[t], factor, step)."""
    for t in range(blocks.shape[0]):
        w0, w1, w2, w3 = rounds(
            uint64(blocks[t]),
            (uint64(numbers[t]) + uint64(first)) & _LOW,
            uint64(factor),
            uint64(step),
            uint64(k0),
            uint64(k1),
        )
        words[4 * t] = uint32(w0)
        words[4 * t + 1] = uint32(w1)
        words[4 * t + 2] = uint32(w2)
        words[4 * t + 3] = uint32(w3)


@lru_cache(maxsize=256)
def tile(
    slots: int, samples: int, lanes: int
) -> tuple[int, NDArray[np.uint32], NDArray[np.uint32]]:
    """The tile by which `fill` makes draws of `slots` lanes: samples per tile, and their addresses.

    A tile has whole samples of ⌈slots/lanes⌉ calls each, about `TILE` calls in total, padded to a
    multiple of `VECTOR`.
    """
    blocks = -(-slots // lanes)
    tiles = max(1, round(samples * blocks / TILE))
    together = max(1, -(-samples // tiles))
    calls = -(-together * blocks // VECTOR) * VECTOR
    call = np.arange(calls)
    return together, (call % blocks).astype(np.uint32), (call // blocks).astype(np.uint32)


def draw_address(key: Key, slots: int, samples: int) -> tuple[Any, ...]:
    """The tile of `samples` draws of 16-bit lanes, and the words that they share: step and key."""
    return *tile(slots, samples, lanes=8), *np.array([key.step, *key.words()], np.uint32)


@compiled("void(int64, int64, uint32[::1], uint32[::1])")
def _discard(begin, end, blocks, sink):
    words = np.empty(4 * blocks.shape[0], np.uint32)
    last = uint32(0)
    for row in range(begin, end):
        fill(words, blocks, blocks, 0, uint32(row), uint32(1), uint32(2), uint32(3))
        last ^= words[row % words.shape[0]]
    sink[begin % sink.shape[0]] = last


def bare_philox(lanes: int) -> int:
    """Make about `lanes` 16-bit lanes by `fill`, for timing; returns the exact number."""
    rows = max(1, lanes // (8 * TILE))
    blocks, sink = np.arange(TILE, dtype=np.uint32), np.zeros(64, np.uint32)
    over_rows(lambda begin, end: _discard(begin, end, blocks, sink), rows, 8 * TILE)
    return rows * 8 * TILE
