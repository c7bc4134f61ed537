"""All weights of a one-layer net: the exact optimum of up to about 40 weights.

With s = ±1 for labels one and zero, the margin s·h + [label zero] is positive exactly where an
example is satisfied. Margins are tabulated for all settings of the first LOW_BITS weights; the
others follow a Gray code, so that each setting changes the margins by one weight. The loop over the
table compares 16-bit lanes.

Cost: 2^N·M lanes for N weights and M examples.
"""

from __future__ import annotations

import numpy as np
from numba import int16
from numpy.typing import NDArray

from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.threads import over_rows

LOW_BITS = 8  # the counts of 2⁸ settings stay in registers and the first-level cache
SPLIT_BITS = 7  # 128 ranges, so that threads finish at about the same time
NO_INDEX = 2**62  # above every configuration's index


@compiled("UniTuple(int64, 3)(int16[:, ::1], int16[:, ::1], int16[::1], int64, int64)")
def _search_range(table, columns, margins, first, free_bits):
    """Best, its count and its lowest index over high settings first…first + 2^free_bits − 1.

    table (M, 2^low): what the low weights add to margins (M,); columns (N − low, M): what each of
    the others adds.
    """
    num_examples, num_low = table.shape
    margins = margins.copy()
    for i in range(columns.shape[0]):
        if (first >> i) & 1:
            margins += columns[i]
    satisfied = np.empty(num_low, np.int16)
    best, count, index = np.int64(-1), np.int64(0), np.int64(NO_INDEX)
    high = first
    for step in range(1 << free_bits):
        if step > 0:
            flip = 0
            while not (step >> flip) & 1:
                flip += 1
            sign = int16(-1 if (high >> flip) & 1 else 1)
            for f in range(num_examples):
                margins[f] = int16(margins[f] + int16(sign * columns[flip, f]))
            high ^= np.int64(1) << flip
        satisfied[:] = 0
        for f in range(num_examples):
            row, least = table[f], int16(-margins[f])
            for j in range(num_low):
                satisfied[j] = int16(satisfied[j] + int16(row[j] > least))
        top = int16(0)
        for j in range(num_low):
            top = max(top, satisfied[j])
        if top > best:
            best, count, index = np.int64(top), np.int64(0), np.int64(NO_INDEX)
        if top == best:
            for j in range(num_low):
                if satisfied[j] == top:
                    count += 1
                    index = min(index, high * num_low + j)
    return best, count, index


def enumerate_weights(
    inputs: NDArray[np.int8], labels: NDArray[np.bool_], low: int
) -> tuple[int, int, int]:
    """Every configuration of N weights on inputs (M, N) in {−1, 0, 1} and labels (M,).

    Returns the largest number of satisfied examples, the number of configurations that satisfy as
    many, and the lowest of their indices (bit i is weight i). low: value of a zero bit, −1 or 0.
    """
    num_weights = inputs.shape[1]
    signed = (inputs * np.where(labels, 1, -1)[:, None]).astype(np.int16)
    margins = (low * signed.sum(1) + ~labels).astype(np.int16)  # where all bits are zero
    columns = np.ascontiguousarray((1 - low) * signed.T)
    low_bits = min(LOW_BITS, num_weights)
    settings = np.arange(1 << low_bits)[None] >> np.arange(low_bits)[:, None] & 1
    table = np.ascontiguousarray((columns[:low_bits].T @ settings).astype(np.int16))
    columns = columns[low_bits:]
    free_bits = len(columns) - min(SPLIT_BITS, len(columns))
    num_ranges = 1 << (len(columns) - free_bits)
    found = np.zeros((num_ranges, 3), np.int64)

    def search(begin: int, end: int) -> None:
        for part in range(begin, end):
            found[part] = _search_range(table, columns, margins, part << free_bits, free_bits)

    over_rows(search, num_ranges, len(labels) << (free_bits + low_bits))
    best = int(found[:, 0].max())
    winners = found[found[:, 0] == best]
    return best, int(winners[:, 1].sum()), int(winners[:, 2].min())
