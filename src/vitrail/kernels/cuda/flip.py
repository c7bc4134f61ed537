"""`flip` on the GPU: a factor's row, or a part of it, stays in registers from draw to message."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cuda import one_hidden, perceptron
from vitrail.kernels.cuda.philox import ADDRESS, blocks_of, pieces, warps_of
from vitrail.random import Key, threshold_edges
from vitrail.scopes import Dense

MAX_SAMPLES = 2**16 - 1  # draws of perceptrons are counted in 16-bit halves of words
MAX_HIDDEN = 32  # every draw needs a sum over the row per hidden unit
MAX_SLOTS = 2**13
SUMS = 2**26  # sums of draws and parts stored between the two passes over long rows: 256 MiB


@triton.jit
def find_thresholds(cavity, edges):
    """Thresholds int32 of cavities float64, guessed by the sigmoid.

    The table of edges is read only where the guess is close to a step.
    """
    steps = 65536.0 / (1.0 + tl.exp(-cavity)) + 0.5
    guess = steps.to(tl.int32)
    rest = steps - guess.to(tl.float64)
    doubt = (rest < 1e-3) | (rest > 1.0 - 1e-3)
    above = tl.load(edges + guess + 1, mask=doubt, other=float("inf"))
    below = tl.load(edges + guess, mask=doubt, other=float("-inf"))
    guess = guess + (cavity >= above).to(tl.int32) - (cavity < below).to(tl.int32)
    return tl.minimum(guess, 65536)


@triton.jit
def cavities(belief, start, message, slots, used, limit):
    """Belief minus own message, clipped, float64."""
    mine = tl.load(belief + start + slots, mask=used, other=0.0)
    cavity = mine - tl.load(message + slots, mask=used, other=0.0).to(tl.float64)
    return tl.minimum(tl.maximum(cavity, -limit), limit)


@triton.jit
def write(table, one, zero, limit, log_odds, starved, slots, used):
    """Messages of a row from its hits through the table of log p̃ by number of hits."""
    log_one = tl.load(table + one, mask=used, other=0.0)
    log_zero = tl.load(table + zero, mask=used, other=0.0)
    nothing = (log_one == float("-inf")) & (log_zero == float("-inf"))
    odds = tl.where(nothing, 0.0, log_one) - tl.where(nothing, 0.0, log_zero)
    odds = tl.minimum(tl.maximum(odds, -limit), limit)
    tl.store(log_odds + slots, odds, mask=used)
    tl.store(starved + slots, nothing, mask=used)


@triton.jit
def _counted(
    threshold, inputs, label, id_, first, step_number, k0, k1, sums, slots, used, part, example,
    arity, SAMPLES: tl.constexpr, BLOCKS: tl.constexpr, PARTS: tl.constexpr, SUMMING: tl.constexpr,
    INPUTS: tl.constexpr, HIDDEN: tl.constexpr,
    LOW_HIDDEN: tl.constexpr, LOW_OUTPUT: tl.constexpr, LOW_ACTIVE: tl.constexpr,
):  # fmt: skip
    """Hits of a perceptron (HIDDEN 0) or of a net with a hidden layer, on inputs[example].

    A perceptron of several PARTS takes two passes: one for sums (SUMMING), one for hits.
    """
    address = id_.to(tl.uint32)
    number, k0, k1 = step_number.to(tl.uint32), k0.to(tl.uint32), k1.to(tl.uint32)
    if HIDDEN > 0:
        x = tl.load(inputs + example * INPUTS + slots % INPUTS, mask=used, other=0).to(tl.int32)
        one, zero, drawn = one_hidden.flips(
            threshold, x, label, address, first, number, k0, k1, SAMPLES, BLOCKS, INPUTS, HIDDEN,
            LOW_HIDDEN, LOW_OUTPUT, LOW_ACTIVE,
        )  # fmt: skip
    else:
        x = tl.load(inputs + example * arity + slots, mask=used, other=0).to(tl.int32)
        if PARTS == 1:
            one, zero, drawn = perceptron.flips(
                threshold, x, label, address, first, number, k0, k1, SAMPLES, LOW_OUTPUT, BLOCKS
            )
        elif SUMMING:
            perceptron.part_sums(
                threshold, x, label, address, first, number, k0, k1, part,
                sums + part * SAMPLES, SAMPLES, LOW_OUTPUT, BLOCKS,
            )  # fmt: skip
            one, zero, drawn = x, x, 0  # not used
        else:
            one, zero, drawn = perceptron.part_flips(
                threshold, x, label, address, first, number, k0, k1, part, sums,
                SAMPLES, LOW_OUTPUT, BLOCKS, PARTS,
            )  # fmt: skip
    return one, zero, drawn


@triton.jit(do_not_specialize=(*ADDRESS, "first_row"))
def _hits(
    threshold, inputs, labels, ids, one, zero, arity, tracks, step_number, k0, k1,
    sums, first_row, SAMPLES: tl.constexpr, BLOCKS: tl.constexpr, PARTS: tl.constexpr,
    SUMMING: tl.constexpr, INPUTS: tl.constexpr, HIDDEN: tl.constexpr,
    LOW_HIDDEN: tl.constexpr, LOW_OUTPUT: tl.constexpr, LOW_ACTIVE: tl.constexpr,
):  # fmt: skip
    part, row = tl.program_id(1), first_row + tl.program_id(0).to(tl.int64)
    factor = row // tracks
    slots = part * (8 * BLOCKS) + tl.arange(0, 8 * BLOCKS)
    used = slots < arity
    bounds = tl.load(threshold + row * arity + slots, mask=used, other=0)
    found_one, found_zero, _ = _counted(
        bounds, inputs, tl.load(labels + factor), tl.load(ids + factor),
        (row % tracks).to(tl.int32) * SAMPLES, step_number, k0, k1,
        sums + (row - first_row) * (PARTS * SAMPLES), slots, used, part, factor, arity,
        SAMPLES, BLOCKS, PARTS, SUMMING, INPUTS, HIDDEN, LOW_HIDDEN, LOW_OUTPUT, LOW_ACTIVE,
    )  # fmt: skip
    if not SUMMING:
        tl.store(one + row * arity + slots, found_one, mask=used)
        tl.store(zero + row * arity + slots, found_zero, mask=used)


@triton.jit(do_not_specialize=(*ADDRESS, "first_row"))
def _messages(
    belief, message, log_odds, starved, start, edges, limit, inputs, labels, ids, logs,
    log_stride, arity, step_number, k0, k1,
    sums, first_row, SAMPLES: tl.constexpr, BLOCKS: tl.constexpr, PARTS: tl.constexpr,
    SUMMING: tl.constexpr, INPUTS: tl.constexpr, HIDDEN: tl.constexpr,
    LOW_HIDDEN: tl.constexpr, LOW_OUTPUT: tl.constexpr, LOW_ACTIVE: tl.constexpr,
):  # fmt: skip
    part, row = tl.program_id(1), first_row + tl.program_id(0).to(tl.int64)
    slots = part * (8 * BLOCKS) + tl.arange(0, 8 * BLOCKS)
    used = slots < arity
    limit = tl.load(limit)
    cavity = cavities(belief, tl.load(start + row), message + row * arity, slots, used, limit)
    bounds = tl.where(used, find_thresholds(cavity, edges), 0)
    one, zero, _ = _counted(
        bounds, inputs, tl.load(labels + row), tl.load(ids + row), 0, step_number, k0, k1,
        sums + (row - first_row) * (PARTS * SAMPLES), slots, used, part, row, arity,
        SAMPLES, BLOCKS, PARTS, SUMMING, INPUTS, HIDDEN, LOW_HIDDEN, LOW_OUTPUT, LOW_ACTIVE,
    )  # fmt: skip
    if not SUMMING:
        at = row * arity
        write(logs + row * log_stride, one, zero, limit, log_odds + at, starved + at, slots, used)


def _launch(
    kernel: Any, num_rows: int, factors: Network, samples: int, arguments: Sequence
) -> None:
    """One program per row; for long rows of perceptrons, two passes of one program per part."""
    shape, (parts, blocks, warps) = factors.origin()[0].once(_plan)
    constants = samples, blocks, parts
    if parts == 1:  # nothing is stored between passes: any tensor serves as the sums
        sums = factors.ids
        kernel[(num_rows, 1)](*arguments, sums, 0, *constants, False, *shape, num_warps=warps)
        return
    together = min(num_rows, max(1, SUMS // (parts * samples)))
    sums = torch.empty(together, parts, samples, dtype=torch.int32, device=factors.ids.device)
    for first in range(0, num_rows, together):
        grid = min(together, num_rows - first), parts
        for summing in (True, False):
            kernel[grid](*arguments, sums, first, *constants, summing, *shape, num_warps=warps)


def _plan(factors: Factors) -> tuple[tuple[int, ...], tuple[int, int, int]]:
    """The shape of the net; parts per row, Philox calls per part, and warps."""
    shape, arity = _shape(factors), factors.arity
    assert shape is not None  # see `serves`
    parts = 1 if shape[1] else pieces(arity, perceptron.PART)
    blocks = blocks_of(arity) if parts == 1 else perceptron.PART // 8
    return shape, (parts, blocks, warps_of(8 * blocks))


@lru_cache(maxsize=16)
def double(value: float, device: torch.device) -> Tensor:
    """A number on the device, because Triton passes numbers in single precision."""
    return torch.tensor([value], dtype=torch.float64, device=device)


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons, and nets with one small hidden layer and one output."""
    shape = _shape(factors)
    return shape is not None and (shape[1] > 0 or samples <= MAX_SAMPLES)


def _shape(factors: Factors) -> tuple[int, int, int, int, int] | None:
    """The shape of a net: inputs and hidden units (0, 0 for perceptrons), and lows."""
    net = factors.program.shallow if isinstance(factors, Network) else None
    if net is None or net.num_outputs > 1 or net.num_hidden > MAX_HIDDEN:
        return None
    if net.num_hidden == 0:
        return 0, 0, 0, net.low_output, 0
    if factors.arity > MAX_SLOTS:
        return None
    return net.num_inputs, net.num_hidden, net.low_hidden, net.low_output, net.low_active


def hits(key: Key, factors: Network, threshold: Tensor, samples: int) -> tuple[Tensor, Tensor]:
    """Hits of S draws per track with each weight set to 1, and to 0.

    threshold (F, R, A) int32 → two (F, R, A) int32.
    """
    threshold = threshold.contiguous()  # and so are results made by empty_like
    num_factors, tracks, arity = threshold.shape
    one, zero = torch.empty_like(threshold), torch.empty_like(threshold)
    if threshold.numel():
        arguments = (
            threshold, factors.rows, factors.labels, factors.ids, one, zero, arity, tracks,
            key.step, *key.words(),
        )  # fmt: skip
        _launch(_hits, num_factors * tracks, factors, samples, arguments)
    return one, zero


def messages(
    key: Key, factors: Network, belief: Tensor, message: Tensor, samples: int,
    limit: float, rows: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Log-odds (f, A) float64 and starved (f, A) bool from beliefs and the last messages (F, A)."""
    if rows is not None:
        factors, message = factors.select(rows), message[rows]
    message = message.contiguous()  # and so are results made by empty_like
    log_odds = torch.empty_like(message, dtype=torch.float64)
    starved = torch.empty_like(message, dtype=torch.bool)
    if not message.numel():
        return log_odds, starved
    if not isinstance(factors.scope, Dense):
        belief = factors.scope.gather(belief).flatten()
    fixed = factors.once_at_beta(_fixed, samples, limit)
    arguments = belief, message, log_odds, starved, *fixed, key.step, *key.words()
    _launch(_messages, factors.num_factors, factors, samples, arguments)
    return log_odds, starved


def _fixed(factors: Network, samples: int, limit: float) -> tuple[Tensor | int, ...]:
    """Arguments of `_messages` that do not depend on beliefs."""
    device, logs = factors.ids.device, factors.log_means(samples)
    if isinstance(factors.scope, Dense):
        start = factors.scope.start
    else:
        start = torch.arange(factors.num_factors, device=device) * factors.arity
    return (
        start, threshold_edges(device), double(limit, device), factors.rows, factors.labels,
        factors.ids, logs, 0 if logs.shape[0] == 1 else samples + 1, factors.arity,
    )  # fmt: skip
