"""Random bits and orders for data, the same on every machine and with every version of numpy.

Only raw words of PCG64 are used: numpy guarantees that stream and its seeding, whereas its
distributions may change between versions.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from vitrail.checks import checked_count


class Purpose(IntEnum):
    """The purpose of a stream of words, so that no two uses of a seed share words."""

    INPUTS = 0
    LABELS = 1
    TEST_INPUTS = 2
    TEST_LABELS = 3
    TEACHER = 4
    ORDER = 5
    ROWS = 6


def random_words(seed: int, purpose: Purpose, count: int) -> np.ndarray:
    """The first `count` 64-bit words of a stream, (count,) uint64."""
    checked_count("seed", seed, 0)
    source = np.random.PCG64(np.random.SeedSequence(int(seed), spawn_key=(int(purpose),)))
    return source.random_raw(count)


def random_bits(seed: int, purpose: Purpose, *shape: int) -> np.ndarray:
    """Fair bits, uint8 of `shape`; a longer first axis has those of a shorter one first."""
    count = int(np.prod(shape))
    words = random_words(seed, purpose, -(-count // 64))
    octets = words.astype("<u8").view(np.uint8)
    return np.unpackbits(octets, count=count, bitorder="little").reshape(shape)


def random_order(seed: int, count: int) -> np.ndarray:
    """A random order of range(count), (count,) int64."""
    return np.argsort(random_words(seed, Purpose.ORDER, count), kind="stable")
