"""Gaussian messages of perceptron factors on the GPU: one program per factor, one launch per step.

The formulas are those of `kernels.cpu.gaussian`. A row is read twice, for sums and for messages, in
blocks that fit into registers; the second time from the cache.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cuda.flip import double
from vitrail.kernels.cuda.philox import pieces, power_of_two
from vitrail.kernels.mills import MILLS
from vitrail.numerics import LATTICE as _LATTICE
from vitrail.scopes import Dense

BLOCK = 2048  # slots of a row in registers
LARGEST = tl.constexpr(1e9)  # bounds a, b, so that their squares stay finite
LATTICE = tl.constexpr(_LATTICE)
M0, M1, M2, M3, M4, M5, M6, M7, M8, M9, M10 = (tl.constexpr(c) for c in MILLS)


@triton.jit
def _mills(z):
    """Φ(−z)·exp(z²/2) for z ≥ 0."""
    t = 1.0 / (1.0 + 0.35 * z)
    u = 2.0 * t - 1.0
    p = M10 * u + M9
    p = p * u + M8
    p = p * u + M7
    p = p * u + M6
    p = p * u + M5
    p = p * u + M4
    p = p * u + M3
    p = p * u + M2
    p = p * u + M1
    p = p * u + M0
    return p * t


@triton.jit
def _log_ratio(a, b):
    """log Φ(a) − log Φ(b) for a ≥ b."""
    mills_a, mills_b = _mills(tl.abs(a)), _mills(tl.abs(b))
    half_b = 0.5 * b * b
    inner_a = 1.0 - tl.exp(-0.5 * a * a) * mills_a
    inner_b = 1.0 - tl.exp(-half_b) * mills_b
    # −(a² − b²)/2 as a product where both are tails: large squares are not rounded
    power = tl.where(a < 0, -0.5 * (a - b) * (a + b), tl.where(b < 0, half_b, 0.0))
    return power + tl.log(tl.where(a < 0, mills_a, inner_a) / tl.where(b < 0, mills_b, inner_b))


@triton.jit
def _lifted(x, lift, beta):
    """log(exp(−beta) + exp(lift)·Φ(x)), lift = log(1 − exp(−beta))."""
    mills, half = _mills(tl.abs(x)), 0.5 * x * x
    inner = 1.0 - tl.exp(-half) * mills
    log_probability = lift + tl.where(x < 0, tl.log(mills) - half, tl.log(inner))
    high, low = tl.maximum(log_probability, -beta), tl.minimum(log_probability, -beta)
    return high + tl.log(1.0 + tl.exp(low - high))


@triton.jit
def _sigmoid(x):
    e = tl.exp(-tl.abs(x))
    large = 1.0 / (1.0 + e)
    return tl.where(x >= 0, large, e * large)


@triton.jit
def _row(belief, message, inputs, slots, used, limit, sign):
    """Last messages, signed inputs, and mean and variance of each input's agreement, float32."""
    old = tl.load(message + slots, mask=used, other=0.0)
    cavity = tl.load(belief + slots, mask=used, other=0.0) - old.to(tl.float64)
    cavity = tl.minimum(tl.maximum(cavity, -limit), limit).to(tl.float32)
    x = tl.load(inputs + slots, mask=used, other=0).to(tl.float32)
    agrees = _sigmoid(cavity * x * sign)
    variance = agrees * _sigmoid(-cavity * x * sign)
    return old, x, tl.where(x != 0, agrees, 0.0), tl.where(x != 0, variance, 0.0)


@triton.jit
def _sweep(
    belief, start, message, inputs, labels, beta, gammas, limit, out, moved, change, arity,
    LOW: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    first = tl.load(start + row)
    belief, moved = belief + first, moved + first
    message, inputs, out = message + row * arity, inputs + row * arity, out + row * arity
    limit = tl.load(limit)
    positive = tl.load(labels + row) == 1
    sign = tl.where(positive, 1.0, -1.0)
    mean, spread = tl.zeros([BLOCK], tl.float64), tl.zeros([BLOCK], tl.float64)
    nonzero, minus = tl.zeros([BLOCK], tl.int32), tl.zeros([BLOCK], tl.int32)
    for block in range(BLOCKS):
        slots = block * BLOCK + tl.arange(0, BLOCK)
        _, x, agrees, variance = _row(belief, message, inputs, slots, slots < arity, limit, sign)
        mean += agrees.to(tl.float64)
        spread += variance.to(tl.float64)
        nonzero += (x != 0).to(tl.int32)
        minus += (x < 0).to(tl.int32)
    there = tl.sum(nonzero)
    threshold = there // 2 + 1 if LOW == -1 else tl.sum(minus) + 1
    threshold = tl.where(positive, threshold, there - threshold + 1)
    above = tl.sum(mean) - threshold + 0.5
    spread_all = tl.sum(spread)
    cold = tl.load(beta + row)
    lift = tl.log(1.0 - tl.exp(-cold)).to(tl.float32)
    gamma = tl.load(gammas + row)
    largest = tl.zeros([BLOCK], tl.float32)
    for block in range(BLOCKS):
        slots = block * BLOCK + tl.arange(0, BLOCK)
        used = slots < arity
        old, x, agrees, variance = _row(belief, message, inputs, slots, used, limit, sign)
        # q_i was added with the same rounding, so it cancels exactly
        scale = tl.rsqrt(tl.maximum(spread_all - variance, 1e-12).to(tl.float32))
        b = (above - agrees.to(tl.float64)).to(tl.float32) * scale
        b = tl.minimum(tl.maximum(b, -LARGEST), LARGEST)
        if cold == float("inf"):
            odds = _log_ratio(b + scale, b)
        else:
            finite = cold.to(tl.float32)
            odds = _lifted(b + scale, lift, finite) - _lifted(b, lift, finite)
        odds = tl.minimum(tl.maximum(odds, 0.0), limit.to(tl.float32))
        new = odds * x * sign
        if gamma < 1:
            one = (1.0 - gamma) * _sigmoid(old) + gamma * _sigmoid(new)
            zero = (1.0 - gamma) * _sigmoid(-old) + gamma * _sigmoid(-new)
            new = tl.log(one / zero)
        scaled = new * LATTICE
        new = (scaled + tl.where(scaled >= 0, 0.5, -0.5)).to(tl.int32).to(tl.float32) / LATTICE
        tl.store(out + slots, new, mask=used)
        # sums on the lattice are exact in any order
        tl.atomic_add(moved + slots, new.to(tl.float64) - old.to(tl.float64), mask=used)
        moves = tl.where(used, tl.abs(_sigmoid(new) - _sigmoid(old)), 0.0)
        largest = tl.maximum(largest, moves)
    tl.store(change + row, tl.max(largest))


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons whose variables are consecutive."""
    return factors.perceptron_low is not None and isinstance(factors.scope, Dense)


def gaussian_sweep(
    factors: Network,
    belief: Tensor,
    message: Tensor,
    limit: float,
    gamma: Tensor,
    rows: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Messages (f, A), their sum minus that of the old ones (V,), largest changes (f,)."""
    if rows is not None:
        factors, message = factors.select(rows), message[rows]
    assert isinstance(factors.scope, Dense)
    out, moved = torch.empty_like(message), torch.zeros_like(belief)
    change = torch.zeros(factors.num_factors, dtype=torch.float32, device=message.device)
    if message.numel():
        block = min(BLOCK, power_of_two(factors.arity))
        _sweep[(factors.num_factors,)](
            belief, factors.scope.start, message.contiguous(), factors.rows, factors.labels,
            factors.beta, gamma.to(torch.float32), double(limit, message.device), out, moved,
            change, factors.arity, factors.perceptron_low, block,
            pieces(factors.arity, block),
            num_warps=max(1, min(8, block // 128)),
        )  # fmt: skip
    return out, moved, change
