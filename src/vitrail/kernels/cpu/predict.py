"""Outputs of nets with one hidden layer and one output, by popcounts: rows and weights in words.

As `Program.evaluate` gives them, for 0/1 inputs, ±1 weights and ±1 units: a unit is active where
more than half of a row's ones meet a weight +1.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.threads import over_rows
from vitrail.kernels.cpu.words import packed, popcount


@compiled(
    "void(uint64[:, ::1], int64[::1], uint64[:, :, ::1], int64[:, ::1], float32[:, ::1], int64,"
    " int64)"
)
def _outputs(rows, half, weights, votes, out, begin, end):
    nets, units, width = weights.shape
    for r in range(begin, end):
        for k in range(nets):
            total = int64(0)
            for u in range(units):
                met = uint64(0)
                for w in range(width):
                    met += popcount(rows[r, w] & weights[k, u, w])
                active = int64(int64(met) > half[r])
                total += votes[k, u] * (2 * active - 1)
            out[r, k] = total


def outputs(
    inputs: NDArray[np.int8], networks: NDArray[np.bool_], num_hidden: int
) -> NDArray[np.float32]:
    """Rows (F, I) of 0/1 and networks (S, A) → (F, S)."""
    num_rows, num_inputs = inputs.shape
    rows, half = packed(inputs), inputs.sum(1, dtype=np.int64) // 2
    first = networks[:, : num_hidden * num_inputs]
    weights = packed(first.reshape(len(networks), num_hidden, num_inputs))
    votes = np.where(networks[:, num_hidden * num_inputs :], 1, -1).astype(np.int64)
    out = np.empty((num_rows, len(networks)), np.float32)

    def some(begin: int, end: int) -> None:
        _outputs(rows, half, weights, votes, out, begin, end)

    over_rows(some, num_rows, weights.size)
    return out
