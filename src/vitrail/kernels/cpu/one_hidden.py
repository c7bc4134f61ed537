"""Flips of nets with one hidden layer and one output, compiled; O(1) for each weight.

A draw gives hidden sums h_j, activations and the output. Setting a weight of unit j has an effect
only where h_j is within one step of switching and switching the unit changes the answer: elsewhere
all weights of the unit have the score of the draw. So the cost is that of drawing and adding up, as
for a perceptron; hits are the draws that meet the label, corrected for the effect of each weight.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from vitrail.kernels.cpu.philox import fill
from vitrail.kernels.cpu.rows import bounds


@njit(inline="always")
def _sum(lanes, at, below, first, inputs):
    """Σ of the inputs whose weight is drawn as one by the lanes from `at` on; the unit's weights
    begin at `first`, inputs are padded with zeros."""
    total = np.int16(0)
    at, first = (
        uint64(at + first),
        uint64(first),
    )  # unsigned: negative indices need no check
    for i in range(uint64(inputs.shape[0])):
        bit = lanes[at + i] < below[first + i]
        total = np.int16(total + (inputs[i] if bit else np.int16(0)))
    return np.int32(total)


@njit(inline="always")
def _bases(always, inputs, num_inputs, low, certain, bases):
    """Each unit's sum with all bits at zero, except those that are always one."""
    base = np.int64(0)
    for i in range(num_inputs):
        base += inputs[i]
    for j in range(bases.shape[0]):
        bases[j] = low * base
        if certain:
            for i in range(num_inputs):
                bases[j] += (1 - low) * inputs[i] if always[j * num_inputs + i] != 0 else 0


@njit(inline="always")
def _switch(
    lanes, at, below, always, first, inputs, width, hidden, step, active, gain, one, zero
):  # fmt: skip
    """Add `gain` to the unit's one and zero where setting the weight to that value switches it."""
    hidden = np.int16(hidden)
    gain = np.int16(gain)
    at, first = uint64(at), uint64(first)
    for i in range(uint64(width)):
        w = first + i
        bit = (lanes[at + w] < below[w]) | (always[w] != 0)
        move = np.int16(step * inputs[i])
        with_zero = np.int16(hidden - (move if bit else np.int16(0)))
        off_one = (np.int16(with_zero + move) > 0) != active
        off_zero = (with_zero > 0) != active
        one[w] = np.int16(one[w] + (gain if off_one else np.int16(0)))
        zero[w] = np.int16(zero[w] + (gain if off_zero else np.int16(0)))


@njit(inline="always")
def flips(threshold, row, label, shape, samples, first, tile, address):
    """Count the draws numbered first… of one factor that meet the label, and test whether any
    single weight changes a score; one[a] and zero[a] are the change in hits by setting weight a."""
    below, always, inputs, one, zero, words, bases, sums, active, weights = row
    num_inputs, num_hidden, low_hidden, low_output, low_active = shape
    together, blocks, numbers = tile
    factor, number, k0, k1 = address
    certain = bounds(threshold, below, always)
    _bases(always, inputs, num_inputs, low_hidden, certain, bases)
    one[:] = 0
    zero[:] = 0
    met = 0
    sensitive = False
    lanes = words.view(np.uint16)
    width = 8 * ((threshold.shape[0] + 7) // 8)
    sign, tie = (1, 0) if label == 1 else (-1, 1)
    step = 1 - low_hidden
    split = num_hidden * num_inputs
    for start in range(0, samples, together):
        fill(words[: 4 * blocks.shape[0]], blocks, numbers, first + start, factor, number, k0, k1)
        for g in range(min(together, samples - start)):
            at = g * width
            output = 0
            for j in range(num_hidden):
                sums[j] = bases[j] + step * _sum(lanes, at, below, j * num_inputs, inputs)
                active[j] = 1 if sums[j] > 0 else low_active
                w = split + j
                bit = (lanes[at + w] < below[w]) | (always[w] != 0)
                weights[j] = 1 if bit else low_output
                output += weights[j] * active[j]
            now = sign * output + tie > 0
            met += now
            for j in range(num_hidden):
                w, value = split + j, active[j]
                without = output - weights[j] * value
                met_one = sign * (without + value) + tie > 0
                met_zero = sign * (without + low_output * value) + tie > 0
                one[w] += np.int16(met_one) - np.int16(now)
                zero[w] += np.int16(met_zero) - np.int16(now)
                sensitive |= (met_one != now) | (met_zero != now)
                if abs(2 * sums[j] - 1) >= 2 * step:
                    continue
                other = low_active if value == 1 else 1
                switched = without + weights[j] * other
                if (sign * switched + tie > 0) != now:
                    sensitive = True
                    _switch(
                        lanes, at, below, always, j * num_inputs, inputs, num_inputs, sums[j],
                        step, sums[j] > 0, -1 if now else 1, one, zero,
                    )  # fmt: skip
    return met, sensitive
