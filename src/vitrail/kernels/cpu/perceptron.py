"""Flips of perceptron factors, compiled: draw, sum, flip and count, a factor's row at a time.

With s = ±1 for labels one and zero, the margin m = s·h + [label zero] is positive exactly where
the factor is satisfied. Setting one weight moves m by at most `step` (2 for ±1 weights, 1 for
0/1 weights), so a draw with m > step meets the label whatever single weight is set, and one with
m ≤ −step never does: only draws in between look at their weights one by one. The work is
therefore that of drawing the bits and adding them up.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint32

from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import fill
from vitrail.kernels.cpu.rows import PAD, bounds, cavities, find_thresholds, padded, write


@njit(inline="always")
def signed_inputs(inputs, label, low, signed):
    """Inputs with the label's sign into signed; the margin of all weights at zero."""
    sign = np.int16(1 if label == 1 else -1)
    total = np.int16(0)
    for a in range(inputs.shape[0]):
        value = np.int16(sign * inputs[a])
        signed[a] = value
        total = np.int16(total + value)
    return np.int32(low * total + (label != 1))


@njit(inline="always")
def _certain(always, signed):
    """Σ of the signed inputs whose bit is always one: no draw decides about them."""
    total = np.int16(0)
    for a in range(signed.shape[0]):
        total = np.int16(total + (signed[a] if always[a] != 0 else np.int16(0)))
    return np.int32(total)


@njit(inline="always")
def _sum(lanes, at, below, signed):
    """Σ of the signed inputs whose bit is drawn as one by the lanes from `at` on."""
    total = np.int16(0)
    for a in range(signed.shape[0]):
        total = np.int16(total + (signed[a] if lanes[at + a] < below[a] else np.int16(0)))
    return np.int32(total)


@njit(inline="always")
def _count(lanes, at, below, always, signed, margin, step, one, zero):
    """Add to one and zero whether the label is met with each weight set."""
    margin = np.int16(margin)
    for a in range(one.shape[0]):
        bit = (lanes[at + a] < below[a]) | (always[a] != 0)
        move = np.int16(step * signed[a])
        with_zero = np.int16(margin - (move if bit else np.int16(0)))
        one[a] = np.int16(one[a] + (np.int16(with_zero + move) > 0))
        zero[a] = np.int16(zero[a] + (with_zero > 0))


@njit(inline="always")
def flips(threshold, row, constant, step, samples, first, tile, address):
    """Count the draws numbered first… of one factor: how many meet the label whatever weight is
    set, how many do as drawn, and whether any depends on a weight. With weight a set to one
    those of the first kind do and one[a] more."""
    below, always, signed, one, zero, words = row
    if bounds(threshold, below, always):
        constant += step * _certain(always, signed)
    one[:] = 0
    zero[:] = 0
    shared = 0
    met = 0
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
            met += margin > 0
            shared += margin > step  # unpredictable: a sum is faster than a branch
            if abs(2 * margin - 1) < 2 * step:
                sensitive = True
                _count(lanes, at, below, always, signed, margin, step, one, zero)
    return shared, met, sensitive


@njit(inline="always")
def buffers(arity, calls):
    """A row's below, always, signed, one and zero, and words with room for a padded read."""
    room = padded(arity)
    return (
        np.zeros(room, np.uint16),
        np.zeros(room, np.uint16),
        np.zeros(room, np.int16),
        np.zeros(room, np.int16),
        np.zeros(room, np.int16),
        np.zeros(4 * calls + PAD // 2, np.uint32),
    )


@compiled(
    "void(int64, int64, int32[:, :, ::1], int8[:, ::1], int64[::1], int64[::1], int64, int64,"
    " int64, uint32[::1], uint32[::1], uint32, uint32, uint32, int32[:, :, ::1], int32[:, :, ::1],"
    " int32[:, ::1])"
)
def hits(
    begin, end, threshold, inputs, labels, ids, low, samples,
    together, blocks, numbers, number, k0, k1, one, zero, drawn,
):  # fmt: skip
    """one and zero (F, R, A), drawn (F, R): of `samples` draws per track, those that meet the label
    with the weight set to one, to zero, as drawn. threshold (F, R, A), inputs (F, A), ids (F,)."""
    tracks, arity = threshold.shape[1], threshold.shape[2]
    row = buffers(arity, blocks.shape[0])
    signed, one_more, zero_more = row[2:5]
    step = np.int32(1 - low)
    for f in range(begin, end):
        constant = signed_inputs(inputs[f], labels[f], low, signed)
        address = uint32(ids[f]), number, k0, k1
        for r in range(tracks):
            shared, drawn[f, r], _ = flips(
                threshold[f, r], row, constant, step, samples, r * samples,
                (together, blocks, numbers), address,
            )  # fmt: skip
            for a in range(arity):
                one[f, r, a] = shared + one_more[a]
                zero[f, r, a] = shared + zero_more[a]


@compiled(
    "void(int64, int64, int64[::1], float64[::1], int64[::1], float32[:, ::1], float64[::1],"
    " float64,"
    " int8[:, ::1], int64[::1], int64[::1], int64, int64, float64[:, ::1],"
    " int64, uint32[::1], uint32[::1], uint32, uint32, uint32, float64[:, ::1], boolean[:, ::1])"
)
def messages(
    begin, end, rows, belief, start, message, edges, limit, inputs, labels, ids, low, samples, logs,
    together, blocks, numbers, number, k0, k1, log_odds, starved,
):  # fmt: skip
    """log_odds and starved (f, A) of the factors at rows (f,): cavities, thresholds, draws, logs.

    Factor f sees belief[start[f]:start[f] + A]; logs (F or 1, S+1) of the mean for each hit count.
    """
    arity = message.shape[1]
    row = buffers(arity, blocks.shape[0])
    signed, one_more, zero_more = row[2:5]
    cavity, threshold = np.empty(arity, np.float64), np.empty(arity, np.int32)
    step = np.int32(1 - low)
    for i in range(begin, end):
        f = rows[i]
        cavities(belief[start[f] : start[f] + arity], message[f], limit, cavity)
        find_thresholds(cavity, edges, threshold)
        constant = signed_inputs(inputs[f], labels[f], low, signed)
        shared, _, sensitive = flips(
            threshold, row, constant, step, samples, 0,
            (together, blocks, numbers), (uint32(ids[f]), number, k0, k1),
        )  # fmt: skip
        table = logs[f if logs.shape[0] > 1 else 0]
        write(table, shared, one_more, zero_more, sensitive, limit, log_odds[i], starved[i])
