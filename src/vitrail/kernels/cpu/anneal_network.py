"""Annealed bit-flip search of feed-forward nets with incremental evaluation.

A network is laid out as units: the inputs, then each layer's sums and their 0/1 or ±1 values. Of
every unit the sum of all F examples is kept. Flipping weight q adds ±change·value to the sums it
takes part in (many of them when a convolution shares it); what switches there is passed on
along the edges to the next layer, and so to the outputs. Nothing upstream, beside or unswitched
is looked at, and every loop runs over a stretch of examples in 16-bit lanes.

Outputs are judged by a signed margin m that is positive exactly where the example is satisfied:

    one output:   m = s·h + [label zero],  s = +1 for label one and −1 for label zero
    C outputs:    m = h_y + 1 − max_{c≠y} (h_c + [c < y])

and by the energy, acceptance and draws of `kernels.cpu.anneal`; on a one-layer net the two take the
same steps. Cost of a proposal: F times the edges it touches: one for an output weight, 1 + C for
a hidden one of a two-layer net.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import int16, int32, njit, uint32
from numpy.typing import NDArray

from vitrail.kernels.cpu.anneal import Schedule, Search, accepted, searched
from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import philox
from vitrail.nn.wiring import Wiring

STRETCH = 2048  # examples at a time: the scratch of a few dozen units stays in a near cache

_WIRING = "UniTuple(int64[::1], 10)"


@njit
def _add_values(sums, values, factor):
    factor = int16(factor)
    for f in range(sums.shape[0]):
        sums[f] = int16(sums[f] + int16(factor * values[f]))


@njit
def _add_switches(sums, switches, factor):
    factor = int16(factor)
    for f in range(sums.shape[0]):
        sums[f] = int16(sums[f] + int16(factor * switches[f]))


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
def _judge(margins, weights, margin, width):
    """Energy and satisfied weight of a stretch."""
    if weights.shape[0] == 0:
        energy, satisfied = int32(0), int32(0)
        for f in range(margins.shape[0]):
            energy = int32(energy + min(width, max(int16(0), int16(margin - margins[f]))))
            satisfied = int32(satisfied + int32(margins[f] > 0))
        return np.int64(energy), np.int64(satisfied)
    energy, satisfied = 0, 0
    for f in range(margins.shape[0]):
        energy += weights[f] * min(width, max(int16(0), int16(margin - margins[f])))
        satisfied += weights[f] * (margins[f] > 0)
    return energy, satisfied


@njit
def _forward(wiring, bits, values, sums):
    """Sums and values of all units from the inputs, the first rows of `values`."""
    layers, activation, layer_of, low, uses, use_unit, use_value = wiring[:7]
    num_inputs = values.shape[0] - sums.shape[0]
    sums[:] = 0
    for layer in range(activation.shape[0]):
        for q in range(bits.shape[0]):
            if layer_of[q] == layer:
                for use in range(uses[q], uses[q + 1]):
                    factor = 1 if bits[q] else low[q]
                    _add_values(sums[use_unit[use]], values[use_value[use]], factor)
        for u in range(layers[layer], layers[layer + 1]):
            _activate(sums[u], values[num_inputs + u], activation[layer])


@njit
def _flip(wiring, bits, values, sums, scratch, labels, weights, q, margin, width, keep):
    """Energy and satisfied weight with weight q flipped; `keep` writes the flip into the state.

    bits still hold the old weight. scratch is (units + 1, STRETCH).
    """
    layers, activation, layer_of, low, uses, use_unit, use_value = wiring[:7]
    feeds, feed_unit, feed_weight = wiring[7:]
    num_units, num_examples = sums.shape
    num_inputs = values.shape[0] - num_units
    last = activation.shape[0] - 1
    first_output = layers[last]
    change = low[q] - 1 if bits[q] else 1 - low[q]
    touched = np.zeros(num_units, np.bool_)
    energy, satisfied = 0, 0
    for start in range(0, num_examples, STRETCH):
        stop = min(start + STRETCH, num_examples)
        size = stop - start
        for use in range(uses[q], uses[q + 1]):
            u = use_unit[use]
            if not touched[u]:
                scratch[u, :size] = 0
                touched[u] = True
            _add_values(scratch[u, :size], values[use_value[use], start:stop], change)
        for layer in range(layer_of[q], last):
            for u in range(layers[layer], layers[layer + 1]):
                if not touched[u]:
                    continue
                touched[u] = False
                moved = scratch[u, :size]
                mine = values[num_inputs + u, start:stop]
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
                    _add_switches(scratch[t, :size], moved, factor)
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
        more_energy, more_satisfied = _judge(margins, part, margin, width)
        energy += more_energy
        satisfied += more_satisfied
    return energy, satisfied


@compiled(
    f"UniTuple(int64, 3)({_WIRING}, int8[:, ::1], int16[:, ::1], int16[::1], int32[::1],"
    " boolean[::1], boolean[::1], int16, int16, float64, float64, boolean, int64, int64[::1],"
    " int64[::1], uint32[::1])",
)
def _chain(
    wiring,
    values,
    sums,
    labels,
    weights,
    bits,
    best,
    margin,
    width,
    start,
    end,
    stop,
    proposals,
    free,
    address,
    key,
):
    """One chain in place: bits end at its last state, `best` at its best one."""
    chain, problem, step = uint32(address[0]), uint32(address[1]), uint32(address[2])
    scratch = np.empty((sums.shape[0] + 1, STRETCH), np.int16)
    _forward(wiring, bits, values, sums)
    everything = labels.shape[0] if weights.shape[0] == 0 else weights.sum()
    margins = np.empty(labels.shape[0], np.int16)
    _margins(sums[wiring[0][-2] :], labels, margins)
    energy, score = _judge(margins, weights, margin, width)
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
        after, _ = _flip(
            wiring, bits, values, sums, scratch, labels, weights, q, margin, width, False
        )
        if accepted(energy, after, temperature, coin):
            energy, score = _flip(
                wiring, bits, values, sums, scratch, labels, weights, q, margin, width, True
            )
            bits[q] = not bits[q]
            if score > best_score:
                best_score = score
                best[:] = bits
        temperature *= cooling
    return best_score, score, proposals


@dataclass(frozen=True)
class Examples:
    """What a network is searched on."""

    inputs: NDArray[np.int8]  # (I, F)
    labels: NDArray[np.int16]  # (F,)
    weights: NDArray[np.int32]  # (F,), or empty where every example counts once


def anneal_network(
    wiring: Wiring,
    examples: Examples,
    starts: NDArray[np.bool_],
    proposals: int,
    schedule: Schedule,
    key: tuple[int, int],
    step: int = 0,
    problem_id: int = 0,
    free: NDArray[np.int64] | None = None,
) -> Search:
    """`kernels.anneal.anneal` for any wiring: search from each row of `starts` (R, A)."""
    num_inputs, num_examples = examples.inputs.shape
    num_units = int(wiring.layers[-1])
    last = np.array(starts, np.bool_, order="C")
    best = last.copy()
    words = np.array(key, np.uint32)
    may_flip = np.arange(last.shape[1]) if free is None else free

    def search(chain: int) -> tuple[Any, Any, Any]:
        values = np.zeros((num_inputs + num_units, num_examples), np.int8)
        values[:num_inputs] = examples.inputs
        return _chain(
            tuple(wiring)[1:],
            values,
            np.zeros((num_units, num_examples), np.int16),
            examples.labels,
            examples.weights,
            last[chain],
            best[chain],
            schedule.margin,
            schedule.width,
            schedule.start,
            schedule.end,
            schedule.stop,
            proposals,
            may_flip,
            np.array([chain, problem_id, step], np.int64),
            words,
        )

    return searched(search, best, last, proposals * num_examples)
