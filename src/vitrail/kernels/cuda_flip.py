# pyright: reportMissingImports=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportIndexIssue=false, reportArgumentType=false
# (Triton comes with CUDA builds of torch, and its decorator hides the types of kernels.)
"""`flip` on the GPU: one program a factor's row, everything in registers between draw and message.

As on the CPU, only draws of a perceptron whose margin lies within a step of zero look at their
weights.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Factors, Network, Perceptron
from vitrail.graph import Dense
from vitrail.kernels import cuda_one_hidden
from vitrail.kernels.cuda_philox import (
    ADDRESS,
    blocks_of,
    columns,
    lane_columns16,
    lanes16,
    warps_of,
)
from vitrail.kernels.cuda_rows import cavities, settled, write
from vitrail.random import Key, threshold_edges

MAX_HIDDEN = 32  # a draw takes a sum over the row for each hidden unit
MAX_SLOTS = 2**13


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
    bounds, terms = columns(threshold, BLOCKS), columns(signed, BLOCKS)
    one = tl.zeros([8 * BLOCKS], tl.int32)
    zero = tl.zeros([8 * BLOCKS], tl.int32)
    shared = 0
    met = 0
    for sample in range(SAMPLES):
        lanes = lane_columns16(factor, first + sample, step_number, k0, k1, BLOCKS)
        total = tl.zeros([BLOCKS], tl.int32)
        for j in tl.static_range(8):
            total += tl.where(lanes[j] < bounds[j], terms[j], 0)
        margin = constant + STEP * tl.sum(total)
        met += (margin > 0).to(tl.int32)
        shared += (margin > STEP).to(tl.int32)
        if (margin > -STEP) & (margin <= STEP):
            # few draws come here, so they may be made again in the order of slots
            again = lanes16(factor, first + sample, step_number, k0, k1, BLOCKS)
            with_zero = margin - tl.where(again < threshold, STEP * signed, 0)
            one += (with_zero + STEP * signed > 0).to(tl.int32)
            zero += (with_zero > 0).to(tl.int32)
    return one + shared, zero + shared, met


@triton.jit
def _counted(
    threshold, inputs, label, factor, first, step_number, k0, k1, slots, used,
    SAMPLES: tl.constexpr, BLOCKS: tl.constexpr, INPUTS: tl.constexpr, HIDDEN: tl.constexpr,
    LOW_HIDDEN: tl.constexpr, LOW_OUTPUT: tl.constexpr, LOW_ACTIVE: tl.constexpr,
):  # fmt: skip
    """`flips` of a perceptron (HIDDEN 0) or of a net with a hidden layer, inputs from memory."""
    address = factor.to(tl.uint32)
    number, k0, k1 = step_number.to(tl.uint32), k0.to(tl.uint32), k1.to(tl.uint32)
    if HIDDEN == 0:
        x = tl.load(inputs + slots, mask=used, other=0).to(tl.int32)
        one, zero, drawn = flips(
            threshold, x, label, address, first, number, k0, k1, SAMPLES, LOW_OUTPUT, BLOCKS
        )
    else:
        x = tl.load(inputs + slots % INPUTS, mask=used, other=0).to(tl.int32)
        one, zero, drawn = cuda_one_hidden.flips(
            threshold, x, label, address, first, number, k0, k1, SAMPLES, BLOCKS, INPUTS, HIDDEN,
            LOW_HIDDEN, LOW_OUTPUT, LOW_ACTIVE,
        )  # fmt: skip
    return one, zero, drawn


@triton.jit(do_not_specialize=ADDRESS)
def _hits(
    threshold, inputs, labels, ids, one, zero, drawn, arity, width, tracks, step_number, k0, k1,
    SAMPLES: tl.constexpr, BLOCKS: tl.constexpr, INPUTS: tl.constexpr, HIDDEN: tl.constexpr,
    LOW_HIDDEN: tl.constexpr, LOW_OUTPUT: tl.constexpr, LOW_ACTIVE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    factor = row // tracks
    slots = tl.arange(0, 8 * BLOCKS)
    used = slots < arity
    bounds = tl.load(threshold + row * arity + slots, mask=used, other=0)
    found_one, found_zero, met = _counted(
        bounds, inputs + factor * width, tl.load(labels + factor), tl.load(ids + factor),
        (row % tracks).to(tl.int32) * SAMPLES, step_number, k0, k1, slots, used,
        SAMPLES, BLOCKS, INPUTS, HIDDEN, LOW_HIDDEN, LOW_OUTPUT, LOW_ACTIVE,
    )  # fmt: skip
    tl.store(one + row * arity + slots, found_one, mask=used)
    tl.store(zero + row * arity + slots, found_zero, mask=used)
    tl.store(drawn + row, met)


@triton.jit(do_not_specialize=ADDRESS)
def _messages(
    belief, start, message, edges, inputs, labels, ids, logs, log_odds, starved, limit,
    arity, width, log_stride, step_number, k0, k1,
    SAMPLES: tl.constexpr, BLOCKS: tl.constexpr, INPUTS: tl.constexpr, HIDDEN: tl.constexpr,
    LOW_HIDDEN: tl.constexpr, LOW_OUTPUT: tl.constexpr, LOW_ACTIVE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, 8 * BLOCKS)
    used = slots < arity
    limit = tl.load(limit)
    cavity = cavities(belief, tl.load(start + row), message + row * arity, slots, used, limit)
    bounds = tl.where(used, settled(cavity, edges), 0)
    one, zero, _ = _counted(
        bounds, inputs + row * width, tl.load(labels + row), tl.load(ids + row), 0, step_number,
        k0, k1, slots, used,
        SAMPLES, BLOCKS, INPUTS, HIDDEN, LOW_HIDDEN, LOW_OUTPUT, LOW_ACTIVE,
    )  # fmt: skip
    at = row * arity
    write(logs + row * log_stride, one, zero, limit, log_odds + at, starved + at, slots, used)


@lru_cache(maxsize=16)
def double(value: float, device: torch.device) -> Tensor:
    """A number on the device: Triton would pass it in single precision."""
    return torch.tensor([value], dtype=torch.float64, device=device)


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons, whichever way they are spelled, and one small hidden layer with one output."""
    return _shape(factors) is not None


def perceptron_low(factors: Factors) -> int | None:
    """What a zero bit stands for, where the factors are perceptrons."""
    shape = _shape(factors)
    return shape[3] if shape is not None and shape[1] == 0 else None


def _shape(factors: Factors) -> tuple[int, int, int, int, int] | None:
    """What kernels are told of a net: inputs and hidden units (0, 0 for perceptrons), and lows."""
    if isinstance(factors, Perceptron):
        return 0, 0, 0, factors.low, 0
    net = factors.layers if isinstance(factors, Network) else None
    if net is None or net.num_outputs > 1 or net.num_hidden > MAX_HIDDEN:
        return None
    if net.num_hidden == 0:
        return 0, 0, 0, net.low_output, 0
    if factors.arity > MAX_SLOTS:
        return None
    return net.num_inputs, net.num_hidden, net.low_hidden, net.low_output, net.low_activation


def _known_shape(factors: Factors) -> tuple[int, int, int, int, int]:
    shape = _shape(factors)
    if shape is None:
        raise TypeError(f"there is no kernel for flips of these {type(factors).__name__} factors")
    return shape


def hits(
    key: Key, factors: Perceptron | Network, threshold: Tensor, samples: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Of S draws a track those that meet the label: with each weight set to 1, to 0, as drawn.

    threshold (F, R, A) int32 → two (F, R, A) int32 and one (F, R) int32.
    """
    threshold = threshold.contiguous()  # and so are the results like it
    num_factors, tracks, arity = threshold.shape
    one, zero = torch.empty_like(threshold), torch.empty_like(threshold)
    drawn = torch.empty(num_factors, tracks, dtype=torch.int32, device=threshold.device)
    if threshold.numel():
        inputs = factors.inputs.flatten(1).contiguous()
        _hits[(num_factors * tracks,)](
            threshold, inputs, factors.labels, factors.ids, one, zero, drawn, arity,
            inputs.shape[1], tracks, key.step, *key.words(), samples, blocks_of(arity),
            *_known_shape(factors), num_warps=warps_of(arity),
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
    logs, inputs = factors.log_means(samples), factors.inputs.flatten(1).contiguous()
    _messages[(factors.num_factors,)](
        belief, start, message.contiguous(), threshold_edges(message.device), inputs,
        factors.labels, factors.ids, logs, log_odds, starved, double(limit, message.device),
        arity, inputs.shape[1], 0 if len(logs) == 1 else samples + 1, key.step, *key.words(),
        samples, blocks_of(arity), *_known_shape(factors), num_warps=warps_of(arity),
    )  # fmt: skip
    return log_odds, starved
