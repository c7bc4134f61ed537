"""Annealed bit-flip search of feed-forward nets with incremental evaluation, many starts at once.

A network is a list of units: the inputs, then each layer's sums and their 0/1 or ±1 values. The
sums of every unit are stored for all F examples. Flipping weight q adds ±change·value to the sums
that use it (several in a convolution); changed values propagate along the edges to the next layer,
and so to the outputs. Units that do not change are not evaluated, and every loop runs over a block
of examples in 16-bit lanes.

The signed margin m of an example is positive exactly where it is satisfied:

    one output:   m = s·h + [label zero],  s = +1 for label one and −1 for label zero
    C outputs:    m = h_y + 1 − max_{c≠y} (h_c + [c < y])

The energy is a ramp of the margin,

    E(w) = Σ_f weight_f · clip(margin − m_f, 0, width),

which counts the unsatisfied examples where margin = width = 1. A wider ramp also has a slope where
that count is flat: satisfied examples cost energy until their margin reaches `margin`, and examples
beyond `width` cost no more.

A proposal flips one weight, chosen at random, and is accepted with probability
min(1, exp((E − E') / T)); T falls geometrically over the call. Its cost is F times the number of
edges affected: one for an output weight, 1 + C for a hidden one of a two-layer net. In a one-layer
net with one output, inputs are multiplied by the labels: the sums are the margins, and a proposal
is one pass over them.

Draws: Philox at counter (proposal div 2, chain, problem, step), lanes 0 and 1 for even proposals,
2 and 3 for odd ones: which weight, and whether to accept. So a search is a pure function of
(seed, step, problem, chain), independent of threads.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numba import int16, njit, uint32
from numpy.typing import NDArray

from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import philox
from vitrail.kernels.cpu.threads import over_rows
from vitrail.nn.wiring import Wiring

BLOCK = 2048  # examples at a time: the scratch of a few dozen units fits into a near cache
_SUM_LIMIT = 2**15 - 1  # energy that a 16-bit lane adds up before it is reset

_WIRING = "UniTuple(int64[::1], 10)"


class Schedule(NamedTuple):
    """The energy, and the temperatures of the first and the last proposal."""

    margin: int
    width: int
    start: float
    end: float
    stop: bool = True  # end a chain once everything is satisfied; sampling must continue


class Search(NamedTuple):
    """Results of the searches from each of R starts."""

    best: NDArray[np.bool_]  # (R, A)
    best_score: NDArray[np.int64]  # (R,) satisfied weight of `best`
    last: NDArray[np.bool_]  # (R, A)
    last_score: NDArray[np.int64]  # (R,)
    proposals: int  # of all chains; fewer than the limit where everything was satisfied


@njit
def _energy(margins, column, change, margin, width, weights):
    """Energy with `change`·column added to the margins."""
    change, total = int16(change), 0
    if weights.shape[0] > 0:
        for f in range(margins.shape[0]):
            moved = int16(margins[f] + int16(change * column[f]))
            total += weights[f] * min(width, max(int16(0), int16(margin - moved)))
        return total
    size = _SUM_LIMIT // width
    for block in range((margins.shape[0] + size - 1) // size):
        # slices, because a loop that starts at an offset is not vectorised
        mine = margins[block * size : (block + 1) * size]
        bits = column[block * size : (block + 1) * size]
        part = int16(0)
        for f in range(mine.shape[0]):
            moved = int16(mine[f] + int16(change * bits[f]))
            part = int16(part + min(width, max(int16(0), int16(margin - moved))))
        total += part
    return total


@njit
def _move(margins, column, change, weights):
    """Add `change`·column to the margins; returns the satisfied weight after it."""
    change, satisfied = int16(change), 0
    if weights.shape[0] == 0:
        for f in range(margins.shape[0]):
            moved = int16(margins[f] + int16(change * column[f]))
            margins[f] = moved
            satisfied += moved > 0
    else:
        for f in range(margins.shape[0]):
            moved = int16(margins[f] + int16(change * column[f]))
            margins[f] = moved
            satisfied += weights[f] * (moved > 0)
    return satisfied


@njit
def accepted(energy, after, temperature, coin):
    """Whether a proposal of energy `after` is accepted: min(1, exp((energy − after) / T))."""
    return after <= energy or energy - after > temperature * log((coin + 0.5) / 4294967296.0)


@njit
def _add(sums, values, factor):
    factor = int16(factor)
    for f in range(sums.shape[0]):
        sums[f] = int16(sums[f] + int16(factor * values[f]))


@njit
def _switch(moved, sums, values, inactive):
    """Changes of the sums → changes of the values, in place."""
    inactive, rise = int16(inactive), int16(1 - inactive)
    for f in range(moved.shape[0]):
        active = int16(int16(sums[f] + moved[f]) > 0)
        moved[f] = int16(int16(inactive + rise * active) - values[f])


@njit
def _activate(sums, values, inactive):
    for f in range(sums.shape[0]):
        values[f] = 1 if sums[f] > 0 else inactive


@njit
def _margins(outputs, labels, margins):
    """Outputs (C, n) and labels (n,) → signed margins (n,)."""
    num_outputs = outputs.shape[0]
    if num_outputs == 1:
        own = outputs[0]
        for f in range(margins.shape[0]):
            margins[f] = own[f] if labels[f] == 1 else int16(1 - own[f])
        return
    for f in range(margins.shape[0]):
        label = labels[f]
        rival = -(2**15)
        for c in range(num_outputs):
            if c != label:
                rival = max(rival, np.int64(outputs[c, f]) + (c < label))
        margins[f] = int16(np.int64(outputs[label, f]) + 1 - rival)


@njit
def _value(inputs, values, number):
    """A row of the inputs, or of the values of units, whose numbers follow those of the inputs."""
    num_inputs = inputs.shape[0]
    return inputs[number] if number < num_inputs else values[number - num_inputs]


@njit
def _forward(wiring, inputs, bits, values, sums):
    """Evaluate all units on the inputs (I, F); sums are added to their initial values."""
    layers, activation, layer_of, low, uses, use_unit, use_value = wiring[:7]
    for layer in range(activation.shape[0]):
        for q in range(bits.shape[0]):
            if layer_of[q] == layer:
                for use in range(uses[q], uses[q + 1]):
                    factor = 1 if bits[q] else low[q]
                    _add(sums[use_unit[use]], _value(inputs, values, use_value[use]), factor)
        for u in range(layers[layer], layers[layer + 1]):
            _activate(sums[u], values[u], activation[layer])


@njit
def _flip(wiring, inputs, bits, values, sums, scratch, labels, weights, q, margin, width, keep):
    """Energy and satisfied weight with weight q flipped; `keep` applies the flip to the state.

    bits hold the old weight. scratch is (units + 1, BLOCK).
    """
    layers, activation, layer_of, low, uses, use_unit, use_value = wiring[:7]
    feeds, feed_unit, feed_weight = wiring[7:]
    num_units, num_examples = sums.shape
    last = activation.shape[0] - 1
    first_output = layers[last]
    change = low[q] - 1 if bits[q] else 1 - low[q]
    touched = np.zeros(num_units, np.bool_)
    energy, satisfied = 0, 0
    for start in range(0, num_examples, BLOCK):
        stop = min(start + BLOCK, num_examples)
        size = stop - start
        for use in range(uses[q], uses[q + 1]):
            u = use_unit[use]
            if not touched[u]:
                scratch[u, :size] = 0
                touched[u] = True
            _add(scratch[u, :size], _value(inputs, values, use_value[use])[start:stop], change)
        for layer in range(layer_of[q], last):
            for u in range(layers[layer], layers[layer + 1]):
                if not touched[u]:
                    continue
                touched[u] = False
                moved = scratch[u, :size]
                mine = values[u, start:stop]
                if keep:
                    old = sums[u, start:stop]
                    for f in range(size):
                        old[f] = int16(old[f] + moved[f])
                        moved[f] = 0
                _switch(moved, sums[u, start:stop], mine, activation[layer])
                if keep:
                    _activate(sums[u, start:stop], mine, activation[layer])
                for feed in range(feeds[u], feeds[u + 1]):
                    t = feed_unit[feed]
                    if not touched[t]:
                        scratch[t, :size] = 0
                        touched[t] = True
                    factor = 1 if bits[feed_weight[feed]] else low[feed_weight[feed]]
                    _add(scratch[t, :size], moved, factor)
        for u in range(first_output, num_units):
            out = sums[u, start:stop]
            if touched[u]:
                touched[u] = False
                moved = scratch[u, :size]
                for f in range(size):
                    moved[f] = int16(moved[f] + out[f])
                if keep:
                    out[:] = moved
            else:
                scratch[u, :size] = out
        margins = scratch[num_units, :size]
        _margins(scratch[first_output:num_units], labels[start:stop], margins)
        part = weights[start:stop] if weights.shape[0] > 0 else weights
        unmoved = inputs[0, start:stop]
        energy += _energy(margins, unmoved, 0, margin, width, part)
        if keep:
            satisfied += _move(margins, unmoved, 0, part)
    return energy, satisfied


@compiled(
    f"UniTuple(int64, 3)({_WIRING}, int8[:, ::1], int8[:, ::1], int16[:, ::1], int16[::1],"
    " int32[::1], boolean[::1], boolean[::1], boolean, int16, int16, float64, float64, boolean,"
    " int64, int64[::1], int64[::1], uint32[::1])",
)
def _chain(
    wiring, inputs, values, sums, labels, weights, bits, best, folded, margin, width, start, end,
    stop, proposals, free, address, key,
):  # fmt: skip
    """Run one chain in place: `bits` becomes its last state, `best` its best one.

    folded: the only sum is the margin.
    """
    chain, problem, step = uint32(address[0]), uint32(address[1]), uint32(address[2])
    low = wiring[3]
    scratch = np.empty((sums.shape[0] + 1, BLOCK), np.int16)
    _forward(wiring, inputs, bits, values, sums)
    everything = labels.shape[0] if weights.shape[0] == 0 else weights.sum()
    margins = sums[0]
    if not folded:
        margins = np.empty(labels.shape[0], np.int16)
        _margins(sums[wiring[0][-2] :], labels, margins)
    energy = _energy(margins, inputs[0], 0, margin, width, weights)
    score = _move(margins, inputs[0], 0, weights)
    best_score = score
    best[:] = bits
    temperature = start
    cooling = (end / start) ** (1.0 / max(1, proposals - 1))
    which, coin, next_which, next_coin = uint32(0), uint32(0), uint32(0), uint32(0)
    for proposal in range(proposals):
        if stop and best_score == everything:
            return best_score, score, proposal
        if proposal % 2 == 0:
            which, coin, next_which, next_coin = philox(
                uint32(proposal // 2), chain, problem, step, key[0], key[1]
            )
        else:
            which, coin = next_which, next_coin
        q = free[(np.int64(which) * free.shape[0]) >> 32]
        change = low[q] - 1 if bits[q] else 1 - low[q]
        if folded:
            after = _energy(margins, inputs[q], change, margin, width, weights)
        else:
            after, _ = _flip(
                wiring, inputs, bits, values, sums, scratch, labels, weights, q, margin, width,
                False,
            )  # fmt: skip
        if accepted(energy, after, temperature, coin):
            if folded:
                score = _move(margins, inputs[q], change, weights)
            else:
                _, score = _flip(
                    wiring, inputs, bits, values, sums, scratch, labels, weights, q, margin, width,
                    True,
                )  # fmt: skip
            energy = after
            bits[q] = not bits[q]
            if score > best_score:
                best_score = score
                best[:] = bits
        temperature *= cooling
    return best_score, score, proposals


def anneal(
    wiring: Wiring,
    inputs: NDArray[np.int8],
    labels: NDArray[np.int16],
    weights: NDArray[np.int32],
    starts: NDArray[np.bool_],
    proposals: int,
    schedule: Schedule,
    key: tuple[int, int],
    step: int = 0,
    problem_id: int = 0,
    free: NDArray[np.int64] | None = None,
) -> Search:
    """Search on inputs (I, F) from each row of `starts` (R, A); rows run in parallel.

    weights: of examples, empty where each counts once. key: the two Philox words of a
    `vitrail.random.Key` of stream SEARCH. free: the weights that may flip; None is all.
    """
    num_examples, num_units = len(labels), int(wiring.layers[-1])
    begin = np.zeros((num_units, num_examples), np.int16)
    every = np.arange(starts.shape[1] + 1)
    plain = np.array_equal(wiring.uses, every) and np.array_equal(wiring.use_value, every[:-1])
    folded = plain and num_units == 1
    if folded:
        inputs = inputs * np.where(labels == 1, 1, -1).astype(np.int8)
        begin[0] = labels != 1  # a tie satisfies label zero
    last = np.array(starts, np.bool_, order="C")
    best = last.copy()
    words = np.array(key, np.uint32)
    may_flip = every[:-1] if free is None else free
    found = np.zeros((len(last), 3), np.int64)

    def search(first: int, end: int) -> None:
        for chain in range(first, end):
            found[chain] = _chain(
                tuple(wiring)[1:],
                inputs,
                np.zeros((num_units, num_examples), np.int8),
                begin.copy(),
                labels,
                weights,
                last[chain],
                best[chain],
                folded,
                *schedule,
                proposals,
                may_flip,
                np.array([chain, problem_id, step], np.int64),
                words,
            )

    over_rows(search, len(last), proposals * num_examples)
    return Search(best, found[:, 0], last, found[:, 1], int(found[:, 2].sum()))
