"""Gaussian messages of perceptron factors, compiled: one pass over a factor, in float32 lanes.

`updates.closed_form("gaussian")`, compiled. With K the number of inputs that agree with the
label, K without input i has mean μ − q_i and variance σ² − q_i(1 − q_i), and the message is

    ±(log Φ(a) − log Φ(b)),   a = (μ − q_i + 1 − T + ½)/σ_i,   b = (μ − q_i − T + ½)/σ_i

or the same with floor + (1 − floor)·Φ for Φ at finite beta. Sums are float64, all else float32:
Φ(−z) = exp(−z²/2)·M(z) with M, half the scaled complementary error function, as a polynomial, so
that exponents are subtracted before they are rounded, and differences of logarithms of tails stay
accurate. The loops have no branches or library calls, so LLVM vectorises them.
"""

from __future__ import annotations

from threading import Lock

import numpy as np
import torch
from numba import njit
from numpy import float32, int32
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.flip import all_rows
from vitrail.kernels.cpu.threads import over_rows
from vitrail.kernels.mills import MILLS
from vitrail.scopes import Dense

LATTICE = float32(2.0**19)  # as in `vitrail.numerics`
LANES = 32  # drawn in the time of one message
LARGEST = float32(1e9)  # bounds a, b, so that their squares stay finite in float32

# all flags but approximate reciprocals; arguments are clipped, so nothing is NaN or infinite
_FINITE = {"contract", "nsz", "reassoc", "nnan", "ninf"}
_M0, _M1, _M2, _M3, _M4, _M5, _M6, _M7, _M8, _M9, _M10 = map(float32, MILLS)


@njit(inline="always", fastmath=_FINITE, error_model="numpy")
def _exp(x):
    """exp for x ≤ 0 in float32: 2ⁿ·2ʳ, the second factor by a fit with error 3e-9; 0 below −87."""
    y = max(x, float32(-87.0)) * float32(1.4426950408889634)
    whole = int32(y - float32(0.5))  # to the nearest, because y is not positive
    r = y - float32(whole)
    p = float32(0.00015469732)
    p = p * r + float32(0.00134004322)
    p = p * r + float32(0.0096180256)
    p = p * r + float32(0.0555032721)
    p = p * r + float32(0.240226512)
    p = p * r + float32(0.693147207)
    p = p * r + float32(1.0)
    return p * int32((whole + int32(127)) << int32(23)).view(np.float32)


@njit(inline="always", fastmath=_FINITE, error_model="numpy")
def _log(x):
    """log for normal x > 0 in float32: exponent and mantissa m, log m = 2·artanh((m−1)/(m+1))."""
    bits = float32(x).view(np.int32)
    power = int32(int32(bits - int32(0x3F3504F3)) >> int32(23))  # so that m lies within [√½, √2)
    m = int32(bits - int32(power << int32(23))).view(np.float32)
    f = (m - float32(1.0)) / (m + float32(1.0))
    g = f * f
    p = float32(0.2222222222)
    p = p * g + float32(0.2857142857)
    p = p * g + float32(0.4)
    p = p * g + float32(0.6666666667)
    p = p * g + float32(2.0)
    return p * f + float32(0.6931471806) * float32(power)


@njit(inline="always", fastmath=_FINITE, error_model="numpy")
def _mills(z):
    """Φ(−z)·exp(z²/2) for z ≥ 0."""
    t = float32(1.0) / (float32(1.0) + float32(0.35) * z)
    u = float32(2.0) * t - float32(1.0)
    p = _M10
    p = p * u + _M9
    p = p * u + _M8
    p = p * u + _M7
    p = p * u + _M6
    p = p * u + _M5
    p = p * u + _M4
    p = p * u + _M3
    p = p * u + _M2
    p = p * u + _M1
    p = p * u + _M0
    return p * t


@njit(inline="always", fastmath=_FINITE, error_model="numpy")
def _log_ratio(a, b):
    """log Φ(a) − log Φ(b) for a ≥ b."""
    mills_a, mills_b = _mills(abs(a)), _mills(abs(b))
    half_b = float32(0.5) * b * b
    inner_a = float32(1.0) - _exp(float32(-0.5) * a * a) * mills_a
    inner_b = float32(1.0) - _exp(-half_b) * mills_b
    # −(a² − b²)/2 as a product where both are tails: large squares are not rounded
    tails = float32(-0.5) * (a - b) * (a + b)
    one_tail = half_b if b < 0 else float32(0.0)
    power = tails if a < 0 else one_tail
    probability_a = mills_a if a < 0 else inner_a
    probability_b = mills_b if b < 0 else inner_b
    return power + _log(probability_a / probability_b)


@njit(inline="always", fastmath=_FINITE, error_model="numpy")
def _lifted(x, lift, beta):
    """log(exp(−beta) + exp(lift)·Φ(x)), lift = log(1 − exp(−beta))."""
    mills, half = _mills(abs(x)), float32(0.5) * x * x
    inner = float32(1.0) - _exp(-half) * mills
    outer = _log(mills) - half
    log_probability = lift + (outer if x < 0 else _log(inner))
    high, low = max(log_probability, -beta), min(log_probability, -beta)
    return high + _log(float32(1.0) + _exp(low - high))


@njit(inline="always", fastmath=_FINITE, error_model="numpy")
def _sigmoid(x):
    e = _exp(-abs(x))
    large = float32(1.0) / (float32(1.0) + e)
    return large if x >= 0 else e * large


@compiled(
    "void(int8[:, ::1], int64[::1], int64, float64[::1], boolean[::1], float64[::1], int64[::1],"
    " float32[:, ::1], float32, float32[::1], float32[:, ::1], float64[::1], float32[::1],"
    " int64[::1], int64, int64)",
    fastmath=_FINITE,
)
def _rows(
    inputs, labels, low, beta, hard, belief, start, message, limit, gammas, out, moved, change,
    rows, first, last,
):  # fmt: skip
    """New messages of the factors at rows first…last−1, into `out`, and their sum minus that of the
    old ones, into `moved`. out, gammas and change have one entry per row, all else one per factor
    of the block."""
    arity = inputs.shape[1]
    agrees = np.empty(arity, np.float32)
    variance = np.empty(arity, np.float32)
    ordered = agrees.view(np.int32)  # non-negative floats have the order of their bits
    for place in range(first, last):
        factor = rows[place]
        x = inputs[factor]
        old, new = message[factor], out[place]
        mine = belief[start[factor] : start[factor] + arity]
        sign = float32(1.0) if labels[factor] == 1 else float32(-1.0)
        mean, spread, nonzero, minus = 0.0, 0.0, 0, 0
        for i in range(arity):
            cavity = float32(min(limit, max(-limit, mine[i] - old[i])))
            signed = cavity * float32(x[i]) * sign
            nonzero_input = float32(abs(x[i]))
            small = _exp(-abs(signed))
            large = float32(1.0) / (float32(1.0) + small)
            small = small * large
            agrees[i] = (large if signed >= 0 else small) * nonzero_input
            variance[i] = large * small * nonzero_input
            nonzero += abs(x[i])
            minus += x[i] < 0
        for i in range(arity):
            mean += agrees[i]
            spread += variance[i]
        threshold = nonzero // 2 + 1 if low == -1 else minus + 1
        if labels[factor] != 1:
            threshold = nonzero - threshold + 1
        above = mean - threshold + 0.5
        # q_i was added with the same rounding, so it cancels exactly
        if hard[factor]:
            for i in range(arity):
                scale = float32(1.0 / np.sqrt(max(spread - variance[i], 1e-12)))
                b = float32(above - agrees[i]) * scale
                b = min(LARGEST, max(-LARGEST, b))
                odds = min(limit, max(float32(0.0), _log_ratio(b + scale, b)))
                new[i] = odds * float32(x[i]) * sign
        else:
            cold = float32(beta[factor])
            lift = float32(np.log1p(-np.exp(-beta[factor])))
            for i in range(arity):
                scale = float32(1.0 / np.sqrt(max(spread - variance[i], 1e-12)))
                b = float32(above - agrees[i]) * scale
                b = min(LARGEST, max(-LARGEST, b))
                odds = _lifted(b + scale, lift, cold) - _lifted(b, lift, cold)
                odds = min(limit, max(float32(0.0), odds))
                new[i] = odds * float32(x[i]) * sign
        gamma = gammas[place]
        keep = float32(1.0) - gamma
        if gamma < 1:
            for i in range(arity):
                one = keep * _sigmoid(old[i]) + gamma * _sigmoid(new[i])
                zero = keep * _sigmoid(-old[i]) + gamma * _sigmoid(-new[i])
                new[i] = _log(one / zero)
        total = moved[start[factor] : start[factor] + arity]
        for i in range(arity):
            # |message| is below 30, so multiples of the lattice fit the 24 bits of a float32
            scaled = new[i] * LATTICE
            whole = int32(scaled + (float32(0.5) if scaled >= 0 else float32(-0.5)))
            new[i] = float32(whole) / LATTICE
        for i in range(arity):
            total[i] += np.float64(new[i]) - np.float64(old[i])
        for i in range(arity):
            agrees[i] = abs(_sigmoid(new[i]) - _sigmoid(old[i]))
        largest = int32(0)
        for i in range(arity):
            largest = max(largest, ordered[i])
        change[place] = int32(largest).view(np.float32)


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons whose variables are consecutive."""
    return factors.perceptron_low is not None and isinstance(factors.scope, Dense)


def hard_rows(factors: Factors) -> np.ndarray:
    """Which factors are hard, (F,) bool: the kernel assumes finite numbers."""
    return np.isinf(factors.beta.numpy())


def gaussian_sweep(
    factors: Network,
    belief: Tensor,
    message: Tensor,
    limit: float,
    gamma: Tensor,
    rows: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Damped messages of perceptrons at rows (f,), one pass per row, in several threads.

    belief (V,), message (F, A): the last messages, gamma (f,): the weight of the new ones.
    Returns messages (f, A) on the lattice, their sum minus that of the old ones (V,), and the
    largest change of each factor's messages as probabilities (f,).
    """
    assert isinstance(factors.scope, Dense)
    places = factors.once(all_rows) if rows is None else rows.numpy()
    # allocated by numpy, see `kernels.cpu.flip`
    out = np.empty((len(places), factors.arity), np.float32)
    change = np.empty(len(places), np.float32)
    moved, adding = torch.zeros_like(belief), Lock()
    total = moved.numpy()
    given = (
        factors.rows.numpy(),
        factors.labels.numpy(),
        factors.perceptron_low,
        factors.beta.numpy(),
        factors.once_at_beta(hard_rows),
        belief.numpy(),
        factors.scope.start.numpy(),
        message.contiguous().numpy(),
        limit,
        gamma.to(torch.float32).numpy(),
        out,
    )

    def part(first: int, last: int) -> None:
        mine = np.zeros_like(total)
        _rows(*given, mine, change, places, first, last)
        with adding:  # sums on the lattice are exact in any order
            np.add(total, mine, out=total)

    over_rows(part, len(places), LANES * factors.arity)
    return torch.from_numpy(out), moved, torch.from_numpy(change)
