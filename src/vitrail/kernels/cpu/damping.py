"""Damping of new messages, compiled: one pass over the rows of a sweep.

The same bits as `updates.base.Update._mixed` for sampled messages. With |m| ≤ log 999 the mixed
log-odds have errors of 4e-13 here and in torch, which is 2e-7 of a lattice step; rows with an entry
within `DOUBT` steps of a rounding boundary are reported, and torch computes them.
"""

from __future__ import annotations

from threading import Lock

import numpy as np
import torch
from numba import njit
from torch import Tensor

from vitrail.factors import Factors
from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.flip import all_rows
from vitrail.kernels.cpu.threads import over_rows
from vitrail.numerics import LATTICE
from vitrail.scopes import Dense

DOUBT = 2e-6  # lattice steps: ten times the largest difference from torch
_FINITE = {"contract", "nsz", "nnan", "ninf"}


@njit(inline="always", fastmath=_FINITE, error_model="numpy")
def _exp(x):
    """exp for |x| ≤ 40 in float64: 2ⁿ·eʳ, |r| ≤ ½·log 2, by its series to the 13th power."""
    n = np.rint(x * 1.4426950408889634)
    r = x - n * 0.693147180369123816490
    r = r - n * 1.90821492927058770002e-10
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power = np.int64(np.int32(n) + np.int32(1023)) << np.int64(52)
    return p * np.int64(power).view(np.float64)


@njit(inline="always", fastmath=_FINITE, error_model="numpy")
def _log(x):
    """log for x within e^±40 in float64: exponent and mantissa m, log m = 2·artanh((m−1)/(m+1))."""
    bits = np.float64(x).view(np.int64)
    power = (bits - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)  # so that m lies in [√½, √2)
    m = np.int64(bits - (power << np.int64(52))).view(np.float64)
    f = (m - 1.0) / (m + 1.0)
    g = f * f
    p = 2.0 / 23.0
    p = p * g + 2.0 / 21.0
    p = p * g + 2.0 / 19.0
    p = p * g + 2.0 / 17.0
    p = p * g + 2.0 / 15.0
    p = p * g + 2.0 / 13.0
    p = p * g + 2.0 / 11.0
    p = p * g + 2.0 / 9.0
    p = p * g + 2.0 / 7.0
    p = p * g + 2.0 / 5.0
    p = p * g + 2.0 / 3.0
    p = p * g + 2.0
    return p * f + np.float64(np.int32(power)) * 0.6931471805599453


@compiled(
    "void(int64, int64, int64[::1], int64[::1], float64[:, ::1], float32[:, ::1], float64[::1],"
    " float32[:, ::1], float64[::1], float64[::1], boolean[::1])",
    fastmath=_FINITE,
)
def _rows(first, last, rows, start, new, message, gamma, out, moved, change, open_):
    arity = new.shape[1]
    was, mixed = np.empty(arity, np.float64), np.empty(arity, np.float64)
    for place in range(first, last):
        old, fresh, made = message[rows[place]], new[place], out[place]
        share = gamma[place]
        keep = 1.0 - share
        for a in range(arity):
            was[a] = 1.0 / (1.0 + _exp(-np.float64(old[a])))
        if share >= 1.0:
            for a in range(arity):
                mixed[a] = fresh[a]
        else:
            for a in range(arity):
                small = _exp(-abs(fresh[a]))
                large = 1.0 / (1.0 + small)
                small = small * large
                one = large if fresh[a] >= 0 else small
                zero = small if fresh[a] >= 0 else large
                mixed[a] = _log(
                    (keep * was[a] + share * one) / (keep * (1.0 - was[a]) + share * zero)
                )
        doubts, largest = 0, 0.0
        total = moved[start[rows[place]] : start[rows[place]] + arity]
        for a in range(arity):
            scaled = mixed[a] * LATTICE
            whole = np.rint(scaled)
            doubts += abs(abs(scaled - whole) - 0.5) < DOUBT
            value = whole / LATTICE
            made[a] = np.float32(value)
            total[a] += value - np.float64(old[a])
            largest = max(largest, abs(1.0 / (1.0 + _exp(-value)) - was[a]))
        change[place] = largest
        open_[place] = doubts > 0 and share < 1.0


def serves(factors: Factors, samples: int) -> bool:
    """Factors of any kind whose variables are consecutive."""
    return isinstance(factors.scope, Dense)


def mixed(
    factors: Factors,
    log_odds: Tensor,
    message: Tensor,
    gamma: Tensor,
    rows: Tensor | None,
    num_variables: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Messages (f, A) float32, their sum minus that of the old ones (V,), largest changes (f,), and
    rows (d,) that torch has to compute: these are left out of the sum.

    log_odds (f, A): the new messages, message (F, A): the old ones of the whole block.
    """
    assert isinstance(factors.scope, Dense)
    places = factors.once(all_rows) if rows is None else rows.numpy()
    out = np.empty(log_odds.shape, np.float32)
    moved, change = np.zeros(num_variables), np.empty(len(places))
    undecided, adding = np.zeros(len(places), np.bool_), Lock()
    start = factors.scope.start.numpy()
    given = (
        places,
        start,
        log_odds.contiguous().numpy(),
        message.contiguous().numpy(),
        gamma.double().contiguous().numpy(),
        out,
    )

    def part(first: int, last: int) -> None:
        mine = np.zeros_like(moved)
        _rows(first, last, *given, mine, change, undecided)
        with adding:  # sums on the lattice are exact in any order
            np.add(moved, mine, out=moved)

    over_rows(part, len(places), 8 * factors.arity)
    open_rows = np.flatnonzero(undecided)
    for place in open_rows:
        at = slice(start[places[place]], start[places[place]] + factors.arity)
        moved[at] -= out[place].astype(np.float64) - message[int(places[place])].double().numpy()
    return (
        torch.from_numpy(out),
        torch.from_numpy(moved),
        torch.from_numpy(change),
        torch.from_numpy(open_rows),
    )
