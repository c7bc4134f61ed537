"""Bits of many rows packed into 64-bit words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

WORD = 64
Words = NDArray[np.uint64]


def _popcount(_context: Any, _word: Any) -> Any:
    """The number of bits set in a word."""

    def build(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


popcount: Any = intrinsic(_popcount)


def packed(bits: NDArray[Any]) -> Words:
    """(…, n) of 0 and 1 → (…, ⌈n/64⌉) words, the first bit lowest, padded with zeros."""
    *lead, count = bits.shape
    width = max(1, -(-count // WORD))
    padded = np.zeros((*lead, width * WORD), np.uint8)
    padded[..., :count] = bits
    return np.packbits(padded, axis=-1, bitorder="little").view(np.uint64).reshape(*lead, width)
