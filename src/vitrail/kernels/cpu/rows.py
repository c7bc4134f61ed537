"""The common parts of compiled rows: cavities, thresholds, and messages from hits.

Thresholds are the same integers as those of `vitrail.random.thresholds`. The sigmoid is a rational
function with an error of 1.2e-10, so that a row of cavities is one vector loop; thresholds within
1e-4 of a step are looked up in the table of edges.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint32

PAD = 32  # rows are padded with zeros to whole vectors of 16-bit lanes
DOUBT = 1e-4  # in steps of the threshold; the rational function errs by less than 1e-5 of one
_END = 12.0  # log-odds; thresholds are 0 or 65536 beyond 11.8


@njit(inline="always")
def padded(length):
    """`length` rounded up to whole vectors."""
    return -(-length // PAD) * PAD


@njit(inline="always")
def buffers(arity, num_inputs, num_hidden, calls):
    """Scratch for flips of a row: bounds, masks of certain bits, inputs, effects of single weights
    at one and at zero, words of draws, and four numbers per hidden unit.

    Arrays are padded, because padded inputs are read at every unit's weights.
    """
    size = padded(arity) if num_hidden == 0 else arity + PAD
    return (
        np.zeros(size, np.uint16),
        np.zeros(size, np.uint16),
        np.zeros(padded(num_inputs), np.int16),
        np.zeros(size, np.int16),
        np.zeros(size, np.int16),
        np.zeros(4 * calls + PAD // 2, np.uint32),
        np.zeros(num_hidden, np.int64),
        np.zeros(num_hidden, np.int64),
        np.zeros(num_hidden, np.int64),
        np.zeros(num_hidden, np.int64),
    )


@njit(inline="always")
def cavities(belief, message, limit, cavity):
    """cavity (A,) = belief − own message, clipped."""
    for a in range(cavity.shape[0]):
        x = belief[a] - np.float64(message[a])
        x = x if x > -limit else -limit
        cavity[a] = x if x < limit else limit


@njit(inline="always")
def _steps(x):
    """65536·sigmoid(x) + ½: σ(x) − ½ = x·P(x²)/Q(x²), fitted on |x| ≤ 12."""
    x = x if x > -_END else -_END
    x = x if x < _END else _END
    u = x * x
    p = 1.8852983926129374e-11
    p = p * u + 9.4999950768318011e-08
    p = p * u + 5.7892179917513627e-05
    p = p * u + 0.0084710531155723582
    p = p * u + 0.24999999967234465
    q = 3.9136038946658214e-09
    q = q * u + 5.6847051904144909e-06
    q = q * u + 0.0016663646953061549
    q = q * u + 0.11721754410279539
    q = q * u + 1.0
    return 65536.0 * (x * p / q) + 32768.5


# fused multiply-add changes the last bit, which DOUBT covers
@njit(error_model="numpy", fastmath={"contract"})
def find_thresholds(cavity, edges, threshold):
    """threshold (A,) from cavity (A,) log-odds; edges (65538,)."""
    doubts = 0
    for a in range(cavity.shape[0]):
        steps = _steps(cavity[a])
        whole = np.floor(steps)
        rest = steps - whole
        threshold[a] = np.int32(whole)
        doubts += (rest < DOUBT) | (rest > 1.0 - DOUBT)
    if doubts == 0:
        return
    for a in range(cavity.shape[0]):
        guess = min(max(threshold[a], 0), 65536)
        if cavity[a] >= edges[guess + 1] and guess < 65536:
            guess += 1
        elif cavity[a] < edges[guess]:
            guess -= 1
        threshold[a] = guess


@njit(inline="always")
def bounds(threshold, below, always):
    """Thresholds 0…65536 as 16-bit bounds and masks for 65536; returns whether any is 65536."""
    certain = np.int32(0)
    for a in range(threshold.shape[0]):
        below[a] = np.uint16(threshold[a])
        always[a] = np.uint16(threshold[a] >> 16)
        certain |= threshold[a]
    return certain >= 65536


@njit(inline="always")
def write(table, shared, one, zero, sensitive, limit, log_odds, starved):
    """Messages of a row whose hits are shared + one[a] and shared + zero[a].

    table (S + 1,): log p̃ of each number of hits; sensitive: whether any one[a] or zero[a] is not 0.
    """
    if not sensitive:
        log_odds[:] = 0.0
        starved[:] = table[shared] == -np.inf
        return
    if table[0] > -np.inf:  # potentials of soft factors are positive
        for a in range(log_odds.shape[0]):
            x = table[uint32(shared + one[a])] - table[uint32(shared + zero[a])]
            x = x if x > -limit else -limit
            log_odds[a] = x if x < limit else limit
        starved[:] = False
        return
    for a in range(log_odds.shape[0]):
        log_one = table[uint32(shared + one[a])]
        log_zero = table[uint32(shared + zero[a])]
        nothing = (log_one == -np.inf) & (log_zero == -np.inf)
        x = log_one - log_zero
        x = x if x > -limit else -limit
        x = x if x < limit else limit
        starved[a] = nothing
        log_odds[a] = 0.0 if nothing else x
