"""Flips of nets with one hidden layer and one output on the GPU.

Every slot stores the sum, activation and output weight of its unit, so that all weights are flipped
in parallel: a hidden weight has the score of the draw unless it switches its unit, an output weight
changes the output by its unit's value.
"""

from __future__ import annotations

import triton
import triton.language as tl

from vitrail.kernels.cuda.philox import lanes16


@triton.jit
def _met(output, sign, tie):
    return (sign * output + tie > 0).to(tl.int32)


@triton.jit
def flips(
    threshold, inputs, label, factor, first, step_number, k0, k1,
    SAMPLES: tl.constexpr, BLOCKS: tl.constexpr, INPUTS: tl.constexpr, HIDDEN: tl.constexpr,
    LOW_HIDDEN: tl.constexpr, LOW_OUTPUT: tl.constexpr, LOW_ACTIVE: tl.constexpr,
):  # fmt: skip
    """Hits with each weight at one, at zero, and as drawn; inputs[slot] is its weight's input."""
    STEP: tl.constexpr = 1 - LOW_HIDDEN
    OUTPUT_STEP: tl.constexpr = 1 - LOW_OUTPUT
    SPLIT: tl.constexpr = HIDDEN * INPUTS
    slots = tl.arange(0, 8 * BLOCKS)
    below = slots < SPLIT  # weights of the hidden layer
    unit = tl.where(below, slots // INPUTS, slots - SPLIT)
    inputs = tl.where(below, inputs, 0)
    base = LOW_HIDDEN * tl.sum(tl.where(unit == 0, inputs, 0))
    sign, tie = tl.where(label == 1, 1, -1), tl.where(label == 1, 0, 1)
    one = tl.zeros([8 * BLOCKS], tl.int32)
    zero = tl.zeros([8 * BLOCKS], tl.int32)
    drawn = 0
    for sample in range(SAMPLES):
        lanes = lanes16(factor, first + sample, step_number, k0, k1, BLOCKS)
        bits = (lanes < threshold).to(tl.int32)
        moves = STEP * inputs * bits
        hidden = tl.zeros([8 * BLOCKS], tl.int32)
        weight = tl.zeros([8 * BLOCKS], tl.int32)
        output = 0
        for j in range(HIDDEN):
            total = base + tl.sum(tl.where(unit == j, moves, 0))
            own = LOW_OUTPUT + OUTPUT_STEP * tl.sum(tl.where(slots == SPLIT + j, bits, 0))
            hidden = tl.where(unit == j, total, hidden)
            weight = tl.where(unit == j, own, weight)
            output += own * tl.where(total > 0, 1, LOW_ACTIVE)
        now = _met(output, sign, tie)
        active = hidden > 0
        value = tl.where(active, 1, LOW_ACTIVE)
        other = tl.where(active, LOW_ACTIVE, 1)
        switched = _met(output + weight * (other - value), sign, tie)
        with_zero = hidden - moves
        hidden_one = tl.where((with_zero + STEP * inputs > 0) == active, now, switched)
        hidden_zero = tl.where((with_zero > 0) == active, now, switched)
        lowest = output - OUTPUT_STEP * value * bits
        one += tl.where(below, hidden_one, _met(lowest + OUTPUT_STEP * value, sign, tie))
        zero += tl.where(below, hidden_zero, _met(lowest, sign, tie))
        drawn += now
    return one, zero, drawn
