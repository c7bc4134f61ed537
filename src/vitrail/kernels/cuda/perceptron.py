"""Flips of perceptrons on the GPU: one warp per 256 weights of a row.

As on the CPU, only draws whose margin is within one step of zero need their weights. There the sign
of a weight's input decides the effect of setting it, so the counts of ones per weight suffice:
among the draws that meet the label (lower half of a word) and among the others (upper half).
`flips` draws, sums and counts a row in one pass. It takes rows of any length, but pads them to a
power of two; `flip` therefore processes longer rows in parts and in two passes, one program per
part: sums of all draws (`part_sums`), then counts of the draws near zero (`part_flips`).
"""

from __future__ import annotations

import triton
import triton.language as tl

from vitrail.kernels.cuda.philox import columns, in_order, lane_columns16

PART = 256  # weights: the Philox calls of a warp, eight weights each


@triton.jit
def _row(threshold, inputs, label, tie, LOW: tl.constexpr, BLOCKS: tl.constexpr):
    """Signed inputs, weights that are certain, the margin without draws, bounds and terms.

    Weights whose threshold is 65536 are certain and part of the margin, as is `tie`, by which a
    tie satisfies label zero.
    """
    signed = tl.where(label == 1, inputs, -inputs)
    certain = threshold == 65536
    margin = LOW * tl.sum(signed) + (1 - LOW) * tl.sum(tl.where(certain, signed, 0))
    margin += tl.where(label == 1, 0, tie)
    bounds = columns(threshold.to(tl.uint32) << 16, BLOCKS)
    return signed, certain, margin, bounds, columns(signed, BLOCKS)


@triton.jit
def _sum(lanes, bounds, terms):
    """Σ of the terms whose bit is drawn as one."""
    total = tl.where(lanes[0] < bounds[0], terms[0], 0)
    for j in tl.static_range(1, 8):
        total += tl.where(lanes[j] < bounds[j], terms[j], 0)
    return tl.sum(total)


@triton.jit
def _unit(margin):
    """The increment of counts by a draw near zero: one, in the half for its score."""
    return tl.where(margin > 0, 1, 65536).to(tl.uint32)


@triton.jit
def _add(ones, lanes, bounds, unit):
    """Eight counts, increased by the unit where a bit is drawn as one."""
    return (
        ones[0] + tl.where(lanes[0] < bounds[0], unit, 0),
        ones[1] + tl.where(lanes[1] < bounds[1], unit, 0),
        ones[2] + tl.where(lanes[2] < bounds[2], unit, 0),
        ones[3] + tl.where(lanes[3] < bounds[3], unit, 0),
        ones[4] + tl.where(lanes[4] < bounds[4], unit, 0),
        ones[5] + tl.where(lanes[5] < bounds[5], unit, 0),
        ones[6] + tl.where(lanes[6] < bounds[6], unit, 0),
        ones[7] + tl.where(lanes[7] < bounds[7], unit, 0),
    )


@triton.jit
def _zeros(BLOCKS: tl.constexpr):
    zero = tl.zeros([BLOCKS], tl.uint32)
    return zero, zero, zero, zero, zero, zero, zero, zero


@triton.jit
def _hits(ones, near, met, signed, certain, BLOCKS: tl.constexpr):
    """Hits with each weight at one and at zero, from counts of near draws and the hits as drawn."""
    drawn = tl.where(certain, near, in_order(ones, BLOCKS))
    meeting, failing = (drawn & 0xFFFF).to(tl.int32), (drawn >> 16).to(tl.int32)
    near_meeting, near_failing = (near & 0xFFFF).to(tl.int32), (near >> 16).to(tl.int32)
    one = met + tl.where(signed > 0, near_failing - failing, meeting - near_meeting)
    zero = met + tl.where(signed > 0, -meeting, failing)
    return tl.where(signed == 0, met, one), tl.where(signed == 0, met, zero)


@triton.jit
def flips(
    threshold, inputs, label, factor, first, step_number, k0, k1,
    SAMPLES: tl.constexpr, LOW: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Hits with each weight at one, at zero, and as drawn, of the draws numbered first…"""
    STEP: tl.constexpr = 1 - LOW
    signed, certain, constant, bounds, terms = _row(threshold, inputs, label, 1, LOW, BLOCKS)
    ones, near = _zeros(BLOCKS), tl.zeros([], tl.uint32)
    met = 0
    for sample in range(SAMPLES):
        lanes = lane_columns16(factor, first + sample, step_number, k0, k1, 0, BLOCKS)
        margin = constant + STEP * _sum(lanes, bounds, terms)
        met += (margin > 0).to(tl.int32)
        if (margin > -STEP) & (margin <= STEP):
            near += _unit(margin)
            ones = _add(ones, lanes, bounds, _unit(margin))
    one, zero = _hits(ones, near, met, signed, certain, BLOCKS)
    return one, zero, met


@triton.jit
def part_sums(
    threshold, inputs, label, factor, first, step_number, k0, k1, part, sums,
    SAMPLES: tl.constexpr, LOW: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Contribution of a part of the row to the margin of each draw, into sums (SAMPLES,).

    Sums are written in groups of BLOCKS, one per thread.
    """
    tie = tl.where(part == 0, 1, 0)
    _, _, constant, bounds, terms = _row(threshold, inputs, label, tie, LOW, BLOCKS)
    place = tl.arange(0, BLOCKS)
    found = tl.zeros([BLOCKS], tl.int32)
    for sample in range(SAMPLES):
        lanes = lane_columns16(factor, first + sample, step_number, k0, k1, part, BLOCKS)
        total = constant + (1 - LOW) * _sum(lanes, bounds, terms)
        found = tl.where(place == sample % BLOCKS, total, found)
        if (sample % BLOCKS == BLOCKS - 1) | (sample == SAMPLES - 1):
            at = sample - sample % BLOCKS + place
            tl.store(sums + at, found, mask=at <= sample)


@triton.jit
def part_flips(
    threshold, inputs, label, factor, first, step_number, k0, k1, part, sums,
    SAMPLES: tl.constexpr, LOW: tl.constexpr, BLOCKS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """`flips` for a part of the row, from the sums (PARTS, SAMPLES) of all its parts."""
    STEP: tl.constexpr = 1 - LOW
    LAST: tl.constexpr = 2 * SAMPLES
    signed, certain, _, bounds, _ = _row(threshold, inputs, label, 0, LOW, BLOCKS)
    ones, near = _zeros(BLOCKS), tl.zeros([], tl.uint32)
    mets = tl.zeros([BLOCKS], tl.int32)
    for group in range((SAMPLES + BLOCKS - 1) // BLOCKS):
        sample = group * BLOCKS + tl.arange(0, BLOCKS)
        margin = tl.zeros([BLOCKS], tl.int32)
        for other in range(PARTS):
            margin += tl.load(sums + other * SAMPLES + sample, mask=sample < SAMPLES, other=0)
        is_met = margin > 0
        mets += (is_met & (sample < SAMPLES)).to(tl.int32)
        is_near = (margin > -STEP) & (margin <= STEP) & (sample < SAMPLES)
        # near draws in order: twice the number of the draw, plus one where it meets the label
        turn = tl.where(is_near, 2 * sample + is_met.to(tl.int32), LAST)
        next_turn = tl.min(turn)
        while next_turn < LAST:
            number = first + next_turn // 2
            lanes = lane_columns16(factor, number, step_number, k0, k1, part, BLOCKS)
            unit = _unit(next_turn % 2)
            near += unit
            ones = _add(ones, lanes, bounds, unit)
            next_turn = tl.min(tl.where(turn > next_turn, turn, LAST))
    met = tl.sum(mets)
    one, zero = _hits(ones, near, met, signed, certain, BLOCKS)
    return one, zero, met
