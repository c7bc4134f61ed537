"""How fast Philox can go here: the loop of `philox.fill` and nothing else."""

from __future__ import annotations

import numpy as np
from numba import uint32

from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import TILE, fill
from vitrail.kernels.cpu.threads import over_rows


@compiled("void(int64, int64, uint32[::1], uint32[::1])")
def _bare(begin, end, blocks, sink):
    words = np.empty(4 * blocks.shape[0], np.uint32)
    last = uint32(0)
    for row in range(begin, end):
        fill(words, blocks, blocks, 0, uint32(row), uint32(1), uint32(2), uint32(3))
        last ^= words[row % words.shape[0]]
    sink[begin % sink.shape[0]] = last


def bare_philox(lanes: int) -> int:
    """Make about `lanes` 16-bit lanes in tiles that are thrown away; how many exactly."""
    rows = max(1, lanes // (8 * TILE))
    blocks, sink = np.arange(TILE, dtype=np.uint32), np.zeros(64, np.uint32)
    over_rows(lambda begin, end: _bare(begin, end, blocks, sink), rows, 8 * TILE)
    return rows * 8 * TILE
