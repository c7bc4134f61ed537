"""Annealed bit-flip search of one-layer nets with incremental evaluation, many starts at once.

Labels are folded into the columns: with s = +1 for label one and −1 for label zero, the signed
margin m = s·h + [label zero] is positive exactly where the example is satisfied (a tie is not
positive). The energy is a ramp of it,

    E(w) = Σ_f weight_f · clip(margin − m_f, 0, width),

which counts the unsatisfied examples when margin = width = 1. A wider one also feels how far an
example is from its side: it asks satisfied examples to stay clear of the edge (margin) and gives
up on hopeless ones (width), and so sees downhill where the count is flat.

A proposal flips one weight, chosen at random, and is taken with probability
min(1, exp((E − E') / T)); T falls geometrically over the call. Its cost is one pass over the F
examples of that weight's column, in 16-bit lanes; nothing else is touched unless it is taken.

Draws: Philox at counter (proposal div 2, chain, problem, step), lanes 0 and 1 for even proposals,
2 and 3 for odd ones: which weight, and whether to take it. So a search is a pure function of
(seed, step, problem, chain), whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numba import int16, njit, uint32
from numpy.typing import NDArray

from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import philox
from vitrail.kernels.cpu.threads import over_rows

MAX_ARITY = 2**14  # margins and their flips fit 16 bits
_SUM_LIMIT = 2**15 - 1  # a 16-bit lane adds up this much energy before it is emptied


@dataclass(frozen=True)
class Schedule:
    """What a proposal is judged by, and the temperatures at the first and last one."""

    margin: int
    width: int
    start: float
    end: float
    stop: bool = True  # where everything is satisfied; a chain that samples has to go on


@dataclass(frozen=True)
class Search:
    """Where each of R starts got to."""

    best: NDArray[np.bool_]  # (R, A)
    best_score: NDArray[np.int64]  # (R,) satisfied weight of `best`
    last: NDArray[np.bool_]  # (R, A)
    last_score: NDArray[np.int64]  # (R,)
    proposals: NDArray[np.int64]  # (R,): fewer than asked for where everything was satisfied


@njit
def _energy(margins, column, change, margin, width):
    """Energy with `change`·column added to the margins."""
    change, total = int16(change), 0
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
def _weighted_energy(margins, column, change, margin, width, weights):
    change, total = int16(change), 0
    for f in range(margins.shape[0]):
        moved = int16(margins[f] + int16(change * column[f]))
        total += weights[f] * min(width, max(int16(0), int16(margin - moved)))
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
    """Whether a proposal of energy `after` is taken: min(1, exp((energy − after) / T))."""
    return after <= energy or energy - after > temperature * log((coin + 0.5) / 4294967296.0)


@compiled(
    "UniTuple(int64, 3)(int8[:, ::1], int16[::1], int32[::1], boolean[::1], boolean[::1], int64,"
    " int16, int16, float64, float64, boolean, int64, int64[::1], int64[::1],"
    " uint32[::1])",
)
def _chain(
    columns,
    margins,
    weights,
    bits,
    best,
    flip,
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
    """One chain in place: bits and margins end at its last state, `best` at its best one."""
    chain, problem, step = uint32(address[0]), uint32(address[1]), uint32(address[2])
    everything = margins.shape[0] if weights.shape[0] == 0 else weights.sum()
    weighted = weights.shape[0] > 0
    if weighted:
        energy = _weighted_energy(margins, columns[0], int16(0), margin, width, weights)
    else:
        energy = _energy(margins, columns[0], int16(0), margin, width)
    score = _move(margins, columns[0], int16(0), weights)
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
        i = free[(np.int64(which) * free.shape[0]) >> 32]
        change = int16(-flip if bits[i] else flip)
        if weighted:
            after = _weighted_energy(margins, columns[i], change, margin, width, weights)
        else:
            after = _energy(margins, columns[i], change, margin, width)
        if accepted(energy, after, temperature, coin):
            score = _move(margins, columns[i], change, weights)
            bits[i] = not bits[i]
            energy = after
            if score > best_score:
                best_score = score
                best[:] = bits
        temperature *= cooling
    return best_score, score, proposals


@dataclass(frozen=True)
class Columns:
    """A one-layer problem laid out for the search."""

    signed: NDArray[np.int8]  # (A, F): x, negated where the label is zero
    tie: NDArray[np.int16]  # (F,): 1 where the label is zero, because a tie satisfies it
    weights: NDArray[np.int32]  # (F,), or empty where every example counts once
    low: int  # what a zero bit stands for, −1 or 0


def columns(
    inputs: NDArray[np.int8],
    labels: NDArray[np.bool_],
    low: int,
    weights: NDArray[np.int32] | None = None,
) -> Columns:
    """Inputs (F, A) in {−1, 0, 1} and labels (F,), laid out by weight."""
    if inputs.shape[1] > MAX_ARITY:
        raise ValueError(
            f"local search and chains of a linear net take at most {MAX_ARITY:,} weights, got "
            f"{inputs.shape[1]:,}; add hidden units, such as hidden=(3,), leave columns out, or do "
            "without them: polish=0 and predictor='best'"
        )
    sign = np.where(labels, 1, -1).astype(np.int8)
    return Columns(
        np.ascontiguousarray(inputs.T) * sign,
        (~labels).astype(np.int16),
        np.empty(0, np.int32) if weights is None else np.ascontiguousarray(weights, np.int32),
        low,
    )


def anneal(
    problem: Columns,
    starts: NDArray[np.bool_],
    proposals: int,
    schedule: Schedule,
    key: tuple[int, int],
    step: int = 0,
    problem_id: int = 0,
    free: NDArray[np.int64] | None = None,
) -> Search:
    """Search from each row of `starts` (R, A) with so many proposals; rows run in parallel.

    key: the two Philox words of a `vitrail.random.Key` of stream SEARCH. free: the weights that
    may flip; None for all of them.
    """
    values = np.where(starts, 1.0, float(problem.low)).astype(np.float32)
    margins = (values @ problem.signed.astype(np.float32)).astype(np.int16) + problem.tie
    last = np.array(starts, np.bool_, order="C")
    best = last.copy()
    words = np.array(key, np.uint32)
    may_flip = np.arange(last.shape[1]) if free is None else free

    def search(chain: int) -> tuple[Any, Any, Any]:
        return _chain(
            problem.signed,
            margins[chain],
            problem.weights,
            last[chain],
            best[chain],
            1 - problem.low,
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

    return searched(search, best, last, proposals * problem.signed.shape[1])


def searched(
    search: Callable[[int], tuple[Any, Any, Any]],
    best: NDArray[np.bool_],
    last: NDArray[np.bool_],
    work: int,
) -> Search:
    """All chains of a search, several at once.

    search(chain) leaves its states in best[chain] and last[chain] and returns their scores and
    the proposals it spent. work: examples that a chain looks at.
    """
    found = np.zeros((len(last), 3), np.int64)

    def chains(begin: int, end: int) -> None:
        for chain in range(begin, end):
            found[chain] = search(chain)

    over_rows(chains, len(last), work)
    return Search(best, found[:, 0], last, found[:, 1], found[:, 2])
