"""`counting` on the CPU for nets of this package's layers: 64 draws per word, several factors.

A weight's bits over 64 draws are one word. A unit's sum is stored in bit planes: each of its inputs
adds one word (or two) by carries, and the highest plane tells whether the sum is positive, because
the planes start at the complement of the least positive sum. So a unit of fan-in n costs about
n·log₂ n word operations for 64 draws, and `LANES` factors share the same operations in vector
registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numba import njit, uint32, uint64
from numpy.typing import NDArray
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import draw_address, fill
from vitrail.kernels.cpu.rows import PAD, bounds, padded
from vitrail.kernels.cpu.threads import over_rows
from vitrail.kernels.cpu.words import WORD, popcount
from vitrail.random import Key

LANES = 32  # factors per operation: four vectors of 64-bit words

# How a unit's inputs and weights, each ±1 or 0/1, add bits to its sum.
FROM_INPUTS, SIGN_BIPOLAR, SIGN_BINARY, THRESHOLD_BIPOLAR, THRESHOLD_BINARY = range(5)


@dataclass(frozen=True)
class Units:
    """A net in the order of evaluation: unit u adds up entries first[u]…first[u + 1]."""

    num_inputs: int
    num_outputs: int
    first: NDArray[np.int64]  # (U + 1,)
    value: NDArray[np.int64]  # (E,) inputs first, then units
    weight: NDArray[np.int64]  # (E,)
    mode: NDArray[np.int64]  # (U,)
    low: NDArray[np.int64]  # (U,) value of a zero bit of the unit's weights
    planes: NDArray[np.int64]  # (U,) planes that hold its largest sum


def _units(factors: Factors) -> Units | None:
    """The net of the factors unit by unit, or None for factors without a wiring."""
    wiring = factors.program.wiring if isinstance(factors, Network) else None
    if wiring is None or not wiring.same_inputs:
        return None
    num_units = int(wiring.layers[-1])
    owner = np.repeat(np.arange(len(wiring.uses) - 1), np.diff(wiring.uses))
    order = np.argsort(wiring.use_unit, kind="stable")
    unit, value, weight = wiring.use_unit[order], wiring.use_value[order], owner[order]
    count = np.bincount(unit, minlength=num_units)
    layer = np.searchsorted(wiring.layers, np.arange(num_units), side="right") - 1
    low = np.array([wiring.low[wiring.layer_of == i][0] for i in range(len(wiring.layers) - 1)])
    active = np.concatenate([[0], wiring.activation[:-1]])
    hidden = np.array([[THRESHOLD_BINARY, THRESHOLD_BIPOLAR], [SIGN_BINARY, SIGN_BIPOLAR]])
    mode = np.where(layer == 0, FROM_INPUTS, hidden[-active[layer], -low[layer]])
    doubled = (mode == SIGN_BINARY) | (mode == THRESHOLD_BIPOLAR)
    largest = count * np.where(doubled, 2, 1)
    return Units(
        wiring.num_inputs,
        int(wiring.layers[-1] - wiring.layers[-2]),
        np.concatenate([[0], np.cumsum(count)]),
        value,
        weight,
        mode,
        low[layer],
        np.ceil(np.log2(largest + 1)).astype(np.int64).clip(1),
    )


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons and nets of binary layers with sign or threshold between them."""
    return factors.once(_units) is not None


@njit(inline="always")
def _add(planes, top, carry):
    """Add a bit in every draw of every lane to the number in planes 0…top."""
    for p in range(top + 1):
        for lane in range(LANES):
            plane = planes[p, lane]
            planes[p, lane] = plane ^ carry[lane]
            carry[lane] = plane & carry[lane]


@njit(inline="always")
def _start(planes, top, unit, low, mode, count, nonzero, minus, compare):
    """Initialise planes so that plane `top` becomes one exactly where the sum is positive.

    The sum is g·(bits) − offset; it is positive from ⌊offset/g⌋ + 1 bits on. Planes of outputs that
    are compared with each other start at zero.
    """
    for lane in range(LANES):
        if mode == FROM_INPUTS:
            least = nonzero[unit, lane] // 2 + 1 if low == -1 else minus[unit, lane] + 1
        elif mode == SIGN_BIPOLAR:
            least = count // 2 + 1
        elif mode == THRESHOLD_BINARY:
            least = 1
        else:
            least = count + 1
        begin = 0 if compare else (1 << top) - least
        for p in range(top + 1):
            planes[p, lane] = uint64(0xFFFFFFFFFFFFFFFF) if (begin >> p) & 1 else uint64(0)


@njit(inline="always")
def _unit(
    planes, top, mode, begin, end, value, weight, num_inputs, words, flip, keep, units, carry
):
    """Add up a unit's entries."""
    for e in range(begin, end):
        q, v = weight[e], value[e]
        if mode == FROM_INPUTS:
            for lane in range(LANES):
                carry[lane] = (words[q, lane] ^ flip[v, lane]) & keep[v, lane]
            _add(planes, top, carry)
            continue
        u = v - num_inputs
        if mode == SIGN_BIPOLAR:
            for lane in range(LANES):
                carry[lane] = ~(units[u, lane] ^ words[q, lane])
            _add(planes, top, carry)
            continue
        for lane in range(LANES):
            carry[lane] = units[u, lane] & words[q, lane]
        _add(planes, top, carry)
        if mode == SIGN_BINARY:
            for lane in range(LANES):
                carry[lane] = ~(words[q, lane] & ~units[u, lane])
            _add(planes, top, carry)
        elif mode == THRESHOLD_BIPOLAR:
            for lane in range(LANES):
                carry[lane] = ~(units[u, lane] & ~words[q, lane])
            _add(planes, top, carry)


@njit(inline="always")
def _wins(outputs, top, labels, score):
    """score: the label's sum exceeds those before it and is at least those after it."""
    for lane in range(LANES):
        label = labels[lane]
        best = uint64(0xFFFFFFFFFFFFFFFF)
        for c in range(outputs.shape[0]):
            if c == label:
                continue
            more, same = uint64(0), uint64(0xFFFFFFFFFFFFFFFF)
            for p in range(top - 1, -1, -1):
                mine, theirs = outputs[label, p, lane], outputs[c, p, lane]
                more |= same & mine & ~theirs
                same &= ~(mine ^ theirs)
            best &= more if c < label else more | same
        score[lane] = best


@compiled(
    "void(int64, int64, int32[:, :, ::1], int8[:, ::1], int64[::1], int64[::1], int64, int64,"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64,"
    " int64, uint32[::1], uint32[::1], uint32, uint32, uint32,"
    " int32[:, :, ::1], int32[:, :, ::1], int32[:, ::1])"
)
def _counts(
    first_group, last_group, threshold, inputs, labels, ids, num_inputs, num_outputs,
    first, value, weight, modes, lows, heights, samples,
    together, blocks, numbers, number, k0, k1, count_one, hits_one, hits_all,
):  # fmt: skip
    """Groups of LANES factors: draws with weight a at one, hits among these, and all hits."""
    num_factors, tracks, arity = threshold.shape
    num_units = modes.shape[0]
    below, always = np.zeros(padded(arity), np.uint16), np.zeros(padded(arity), np.uint16)
    drawn = np.zeros(padded(arity), np.uint64)
    calls = np.zeros(4 * blocks.shape[0] + PAD // 2, np.uint32)
    lanes16 = calls.view(np.uint16)
    width = 8 * ((arity + 7) // 8)
    words = np.zeros((arity, LANES), np.uint64)
    units = np.zeros((num_units, LANES), np.uint64)
    flip, keep = np.zeros((num_inputs, LANES), np.uint64), np.zeros((num_inputs, LANES), np.uint64)
    nonzero, minus = np.zeros((num_units, LANES), np.int64), np.zeros((num_units, LANES), np.int64)
    top_plane = heights.max()
    planes = np.zeros((top_plane + 1, LANES), np.uint64)
    outputs = np.zeros((num_outputs, top_plane + 1, LANES), np.uint64)
    carry, score = np.zeros(LANES, np.uint64), np.zeros(LANES, np.uint64)
    label = np.zeros(LANES, np.int64)
    for group in range(first_group, last_group):
        base = group * LANES
        active = min(LANES, num_factors - base)
        for lane in range(active):
            label[lane] = labels[base + lane]
            for i in range(num_inputs):
                x = inputs[base + lane, i]
                flip[i, lane] = uint64(0xFFFFFFFFFFFFFFFF) if x < 0 else uint64(0)
                keep[i, lane] = uint64(0xFFFFFFFFFFFFFFFF) if x != 0 else uint64(0)
        for u in range(num_units):
            if modes[u] == FROM_INPUTS:
                nonzero[u] = 0
                minus[u] = 0
                for e in range(first[u], first[u + 1]):
                    for lane in range(LANES):
                        nonzero[u, lane] += np.int64(keep[value[e], lane] & uint64(1))
                        minus[u, lane] += np.int64(flip[value[e], lane] & uint64(1))
        for r in range(tracks):
            for lane in range(active):
                count_one[base + lane, r] = 0
                hits_one[base + lane, r] = 0
                hits_all[base + lane, r] = 0
            for begin in range(0, samples, WORD):
                size = min(WORD, samples - begin)
                for lane in range(active):
                    bounds(threshold[base + lane, r], below, always)
                    drawn[:] = uint64(0)
                    for start in range(0, size, together):
                        fill(
                            calls[: 4 * blocks.shape[0]], blocks, numbers,
                            r * samples + begin + start, uint32(ids[base + lane]), number, k0, k1,
                        )  # fmt: skip
                        for g in range(min(together, size - start)):
                            mine = lanes16[g * width :]
                            shift = uint64(start + g)
                            for a in range(drawn.shape[0]):
                                bit = (mine[a] < below[a]) | (always[a] != 0)
                                drawn[a] |= uint64(bit) << shift
                    for a in range(arity):
                        words[a, lane] = drawn[a]
                for u in range(num_units):
                    top = heights[u]
                    output = u - (num_units - num_outputs)
                    compare = output >= 0 and num_outputs > 1
                    sums = outputs[output] if output >= 0 else planes
                    count = first[u + 1] - first[u]
                    _start(sums, top, u, lows[u], modes[u], count, nonzero, minus, compare)
                    _unit(
                        sums, top, modes[u], first[u], first[u + 1], value, weight, num_inputs,
                        words, flip, keep, units, carry,
                    )  # fmt: skip
                    if output < 0:
                        units[u] = sums[top]
                if num_outputs > 1:
                    _wins(outputs, heights[num_units - 1] + 1, label, score)
                else:
                    for lane in range(LANES):
                        won = outputs[0, heights[num_units - 1], lane]
                        score[lane] = won if label[lane] == 1 else ~won
                valid = uint64(0xFFFFFFFFFFFFFFFF) >> uint64(WORD - size)
                for lane in range(active):
                    met = score[lane] & valid
                    hits_all[base + lane, r] += np.int32(popcount(met))
                    for a in range(arity):
                        count_one[base + lane, r, a] += np.int32(popcount(words[a, lane]))
                        hits_one[base + lane, r, a] += np.int32(popcount(words[a, lane] & met))


def counts(
    key: Key, factors: Network, threshold: Tensor, samples: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Counts of S draws per track: with each weight at one, hits among these, and all hits.

    threshold (F, R, A) int32 → two (F, R, A) int32 and one (F, R) int32.
    """
    net = factors.origin()[0].once(_units)
    assert net is not None  # see `serves`
    # allocated by numpy, see `kernels.cpu.flip`
    count_one, hits_one = np.empty(threshold.shape, np.int32), np.empty(threshold.shape, np.int32)
    hits_all = np.empty(threshold.shape[:2], np.int32)
    arguments: tuple[Any, ...] = (
        threshold.contiguous().numpy(),
        factors.rows.numpy(),
        factors.labels.numpy(),
        factors.ids.numpy(),
        net.num_inputs,
        net.num_outputs,
        net.first,
        net.value,
        net.weight,
        net.mode,
        net.low,
        net.planes,
        samples,
        *draw_address(key, factors.arity, min(samples, WORD)),
        count_one,
        hits_one,
        hits_all,
    )
    groups = -(-factors.num_factors // LANES)
    work = LANES * samples * (factors.arity + len(net.value)) * threshold.shape[1]
    over_rows(lambda begin, end: _counts(begin, end, *arguments), groups, work)
    return torch.from_numpy(count_one), torch.from_numpy(hits_one), torch.from_numpy(hits_all)
