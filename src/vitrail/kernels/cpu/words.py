"""Bits of many rows side by side in 64-bit words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

WORD = 64
Words = NDArray[np.uint64]


def _popcount(_context: Any, _word: Any) -> Any:
    """How many bits of a word are set."""

    def build(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


popcount: Any = intrinsic(_popcount)


def packed(bits: NDArray[Any]) -> Words:
    """(…, n) of 0 and 1 → (…, ⌈n/64⌉) words, the first bit of a word lowest; the rest is 0."""
    *lead, count = bits.shape
    width = max(1, -(-count // WORD))
    room = np.zeros((*lead, width * WORD), np.uint8)
    room[..., :count] = bits
    return np.packbits(room, axis=-1, bitorder="little").view(np.uint64).reshape(*lead, width)
