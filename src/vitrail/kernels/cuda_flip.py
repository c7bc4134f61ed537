# pyright: reportMissingImports=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportIndexIssue=false, reportArgumentType=false
# (Triton comes with CUDA builds of torch, and its decorator hides the types of kernels.)
"""`flip` on the GPU: one program a factor's row, everything in registers between draw and message.

As on the CPU, only draws whose margin lies within a step of zero look at their weights.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Factors, Network, Perceptron
from vitrail.graph import Dense
from vitrail.kernels.cuda_philox import ADDRESS, blocks_of, lanes16, warps_of
from vitrail.kernels.cuda_rows import cavities, settled, write
from vitrail.random import Key, threshold_edges


@triton.jit
def flips(
    threshold, inputs, label, factor, first, step_number, k0, k1,
    SAMPLES: tl.constexpr, LOW: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Hits with each weight at one, at zero, and as drawn, of the draws from number first on."""
    STEP: tl.constexpr = 1 - LOW
    sign = tl.where(label == 1, 1, -1)
    signed = inputs * sign
    constant = LOW * tl.sum(signed) + tl.where(label == 1, 0, 1)
    one = tl.zeros([8 * BLOCKS], tl.int32)
    zero = tl.zeros([8 * BLOCKS], tl.int32)
    shared = 0
    met = 0
    for sample in range(SAMPLES):
        lanes = lanes16(factor, first + sample, step_number, k0, k1, BLOCKS)
        bits = lanes < threshold
        margin = constant + STEP * tl.sum(tl.where(bits, signed, 0))
        met += (margin > 0).to(tl.int32)
        shared += (margin > STEP).to(tl.int32)
        if (margin > -STEP) & (margin <= STEP):
            with_zero = margin - tl.where(bits, STEP * signed, 0)
            one += (with_zero + STEP * signed > 0).to(tl.int32)
            zero += (with_zero > 0).to(tl.int32)
    return one + shared, zero + shared, met


@triton.jit(do_not_specialize=ADDRESS)
def _hits(
    threshold, inputs, labels, ids, one, zero, drawn, arity, tracks, step_number, k0, k1,
    SAMPLES: tl.constexpr, LOW: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    factor = row // tracks
    first = (row % tracks).to(tl.int32) * SAMPLES
    slots = tl.arange(0, 8 * BLOCKS)
    used = slots < arity
    bounds = tl.load(threshold + row * arity + slots, mask=used, other=0)
    x = tl.load(inputs + factor * arity + slots, mask=used, other=0).to(tl.int32)
    found_one, found_zero, met = flips(
        bounds, x, tl.load(labels + factor), tl.load(ids + factor).to(tl.uint32), first,
        step_number.to(tl.uint32), k0.to(tl.uint32), k1.to(tl.uint32), SAMPLES, LOW, BLOCKS,
    )  # fmt: skip
    tl.store(one + row * arity + slots, found_one, mask=used)
    tl.store(zero + row * arity + slots, found_zero, mask=used)
    tl.store(drawn + row, met)


@triton.jit(do_not_specialize=ADDRESS)
def _messages(
    belief, start, message, edges, inputs, labels, ids, logs, log_odds, starved, limit,
    arity, log_stride, step_number, k0, k1,
    SAMPLES: tl.constexpr, LOW: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, 8 * BLOCKS)
    used = slots < arity
    limit = tl.load(limit)
    cavity = cavities(belief, tl.load(start + row), message + row * arity, slots, used, limit)
    bounds = tl.where(used, settled(cavity, edges), 0)
    x = tl.load(inputs + row * arity + slots, mask=used, other=0).to(tl.int32)
    one, zero, _ = flips(
        bounds, x, tl.load(labels + row), tl.load(ids + row).to(tl.uint32), 0,
        step_number.to(tl.uint32), k0.to(tl.uint32), k1.to(tl.uint32), SAMPLES, LOW, BLOCKS,
    )  # fmt: skip
    at = row * arity
    write(logs + row * log_stride, one, zero, limit, log_odds + at, starved + at, slots, used)


@lru_cache(maxsize=16)
def double(value: float, device: torch.device) -> Tensor:
    """A number on the device: Triton would pass it in single precision."""
    return torch.tensor([value], dtype=torch.float64, device=device)


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons, whichever way they are spelled."""
    return perceptron_low(factors) is not None


def perceptron_low(factors: Factors) -> int | None:
    """What a zero bit stands for, where the factors are perceptrons."""
    if isinstance(factors, Perceptron):
        return factors.low
    net = factors.layers if isinstance(factors, Network) else None
    single = net is not None and (net.num_hidden, net.num_outputs) == (0, 1)
    return net.low_output if net is not None and single else None


def hits(
    key: Key, factors: Perceptron | Network, threshold: Tensor, samples: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Of S draws a track those that meet the label: with each weight set to 1, to 0, as drawn.

    threshold (F, R, A) int32 → two (F, R, A) int32 and one (F, R) int32.
    """
    num_factors, tracks, arity = threshold.shape
    one, zero = torch.empty_like(threshold), torch.empty_like(threshold)
    drawn = torch.empty(num_factors, tracks, dtype=torch.int32, device=threshold.device)
    if threshold.numel():
        _hits[(num_factors * tracks,)](
            threshold.contiguous(), factors.inputs.flatten(1).contiguous(), factors.labels,
            factors.ids, one, zero, drawn, arity, tracks, key.step, *key.words(), samples,
            perceptron_low(factors), blocks_of(arity), num_warps=warps_of(arity),
        )  # fmt: skip
    return one, zero, drawn


def messages(
    key: Key, factors: Perceptron | Network, belief: Tensor, message: Tensor, samples: int,
    limit: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Log-odds (F, A) float64 and starved (F, A) bool from beliefs and last messages."""
    log_odds = torch.empty(message.shape, dtype=torch.float64, device=message.device)
    starved = torch.empty(message.shape, dtype=torch.bool, device=message.device)
    if not message.numel():
        return log_odds, starved
    arity = message.shape[1]
    if isinstance(factors.scope, Dense):
        start = factors.scope.start
    else:
        belief = factors.scope.gather(belief).flatten()
        start = torch.arange(factors.num_factors, device=belief.device) * arity
    logs = factors.log_means(samples)
    _messages[(factors.num_factors,)](
        belief, start, message.contiguous(), threshold_edges(message.device),
        factors.inputs.flatten(1).contiguous(), factors.labels, factors.ids, logs, log_odds,
        starved, double(limit, message.device), arity, 0 if len(logs) == 1 else samples + 1,
        key.step, *key.words(), samples, perceptron_low(factors), blocks_of(arity),
        num_warps=warps_of(arity),
    )  # fmt: skip
    return log_odds, starved
