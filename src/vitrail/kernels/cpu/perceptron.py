"""Flips of perceptron factors, compiled: draw, sum, flip and count, one row per factor.

With s = ±1 for labels one and zero, the margin m = s·h + [label zero] is positive exactly where
the factor is satisfied. Setting one weight changes m by at most `step` (2 for ±1 weights, 1 for
0/1 weights), so a draw with m > step meets the label whichever weight is set, and one with
m ≤ −step never does: only draws in between need a loop over their weights. The cost is therefore
that of drawing the bits and adding them up.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from vitrail.kernels.cpu.philox import fill
from vitrail.kernels.cpu.rows import bounds


@njit(inline="always")
def signed_inputs(inputs, label, low, signed):
    """Write inputs times the label's sign to `signed`; returns the margin of all bits at zero."""
    sign = np.int16(1 if label == 1 else -1)
    total = np.int16(0)
    for a in range(inputs.shape[0]):
        value = np.int16(sign * inputs[a])
        signed[a] = value
        total = np.int16(total + value)
    return np.int32(low * total + (label != 1))


@njit(inline="always")
def _certain(always, signed):
    """Σ of the signed inputs whose bit is always one."""
    total = np.int16(0)
    for a in range(signed.shape[0]):
        total = np.int16(total + (signed[a] if always[a] != 0 else np.int16(0)))
    return np.int32(total)


@njit(inline="always")
def _sum(lanes, at, below, signed):
    """Σ of the signed inputs whose bit is drawn as one by the lanes from `at` on."""
    total, at = np.int16(0), uint64(at)  # unsigned: negative indices need no check
    for a in range(uint64(signed.shape[0])):
        total = np.int16(total + (signed[a] if lanes[at + a] < below[a] else np.int16(0)))
    return np.int32(total)


@njit(inline="always")
def _count(lanes, at, below, always, signed, margin, step, one, zero):
    """Add to one and zero whether the label is met with each weight set."""
    margin, at = np.int16(margin), uint64(at)
    for a in range(uint64(one.shape[0])):
        bit = (lanes[at + a] < below[a]) | (always[a] != 0)
        move = np.int16(step * signed[a])
        with_zero = np.int16(margin - (move if bit else np.int16(0)))
        one[a] = np.int16(one[a] + (np.int16(with_zero + move) > 0))
        zero[a] = np.int16(zero[a] + (with_zero > 0))


@njit(inline="always")
def flips(threshold, row, constant, step, samples, first, tile, address):
    """Count the draws numbered first… of one factor that meet the label whichever weight is set,
    and test whether any depends on a weight. With weight a set to one, one[a] more meet it."""
    below, always, signed, one, zero, words = row
    if bounds(threshold, below, always):
        constant += step * _certain(always, signed)
    one[:] = 0
    zero[:] = 0
    shared = 0
    sensitive = False
    together, blocks, numbers = tile
    factor, number, k0, k1 = address
    lanes = words.view(np.uint16)
    width = 8 * ((threshold.shape[0] + 7) // 8)
    for start in range(0, samples, together):
        fill(words[: 4 * blocks.shape[0]], blocks, numbers, first + start, factor, number, k0, k1)
        for g in range(min(together, samples - start)):
            at = g * width
            margin = np.int32(constant + step * _sum(lanes, at, below, signed))
            shared += margin > step  # faster than a branch, which is unpredictable
            if abs(2 * margin - 1) < 2 * step:
                sensitive = True
                _count(lanes, at, below, always, signed, margin, step, one, zero)
    return shared, sensitive
