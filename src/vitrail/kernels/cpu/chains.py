"""Metropolis chains of nets with one hidden layer, LANES words of 64 rows at a time.

The net reads 0/1, its weights and hidden units are ±1, and it has one output: unit u is active
where more than half of a row's ones have weight +1, and the output is positive where more than
half of the units agree with their output weight. So the state of a row is the difference of these
counts from their thresholds. The counts of 64 rows are stored as bit planes, one word each: adding
one in some rows is a chain of carries, and a unit switches only in rows whose count is 0 or −1.
The effect of a proposal is then a few ANDs and a popcount per word; counts are changed only where
a proposal is accepted.

A proposal flips a random bit. A share `swaps` of the proposals for weights of the first layer
exchange the weight with that of the neighbouring input instead (`partner`): between bits of one
column this moves a threshold, which two flips would do through a state of higher energy. Both
kinds are their own inverse, and a proposal is accepted with probability

    min(1, exp(−beta·ΔE + Δ log prior)),   E the weight of the rows on the wrong side,

so the chain samples exp(−beta·E)·prior. The prior may couple neighbouring weights of a unit: with
coupling J it has a factor exp(J·s·s') for each pair of neighbouring weights s and s'. It may be 0
where one weight of a unit is above another (`bounds`): such proposals are not made.

Draws: Philox at counter (proposal, chain, net, step): bit, acceptance, kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import float64, int32, int64, njit, uint32, uint64
from numpy.typing import NDArray

from vitrail.kernels.cpu.anneal import accepted
from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import rounds
from vitrail.kernels.cpu.wide import LANES, any_set, filled, load, popcounts, store, total
from vitrail.kernels.cpu.words import WORD, Words, packed

BLOCK = LANES * WORD  # rows per vector operation
MAX_WEIGHT = 2**16  # integer weights below are exact
WEIGHT_STEPS = 2**10 - 1  # others are rounded to multiples of the largest over this number
BATCH = 256  # proposals drawn at a time

_FULL = uint64(0xFFFFFFFFFFFFFFFF)
# The bits of a float as an integer approximate its base-2 logarithm, at most 0.0861 too low.
_SLOPE = np.log(2.0) / 2**20
_SHIFT = (0.0861 / 2 - 1023) * np.log(2.0)
NO_BOUNDS = np.zeros((2, 0), np.int64)
DOUBT = 0.031  # half of that in natural logarithms, plus the error of the digits cut off


def planes(values: NDArray[np.int64], digits: int) -> Words:
    """Integers (n,), n a multiple of BLOCK, in two's complement: (n / BLOCK, digits, LANES)."""
    bits = ((values[None] >> np.arange(digits)[:, None]) & 1).astype(np.uint8)
    words = packed(bits).reshape(digits, -1, LANES)
    return np.ascontiguousarray(words.transpose(1, 0, 2))


@dataclass(frozen=True)
class PackedRows:
    """The examples of one net, packed into words."""

    columns: Words  # (I + 1, W): inputs, and a column of zeros
    right: Words  # (2, B, W): binary digits of the weights of rows with label 0, and with label 1
    unit: float  # weight of the lowest digit
    half: NDArray[np.int64]  # (W·64,) half the number of ones of each row, rounded down

    @staticmethod
    def of(
        inputs: NDArray[np.int8], labels: NDArray[np.int64], weight: NDArray[np.float64]
    ) -> PackedRows:
        """Rows (F, I) of 0/1 with labels 0/1 and weights."""
        num_rows, num_inputs = inputs.shape
        size = -(-num_rows // BLOCK) * BLOCK  # padding rows have weight 0
        columns = np.zeros((num_inputs + 1, size), np.uint8)
        columns[:num_inputs, :num_rows] = inputs.T
        half = np.zeros(size, np.int64)
        half[:num_rows] = inputs.sum(1, dtype=np.int64) // 2
        largest = float(weight.max(initial=1.0))
        whole = bool((weight == np.round(weight)).all()) and largest < MAX_WEIGHT
        unit = 1.0 if whole else largest / WEIGHT_STEPS
        counts = np.round(weight / unit).astype(np.int64)
        digits = np.zeros((int(counts.max(initial=1)).bit_length(), size), np.int64)
        digits[:, :num_rows] = (counts[None] >> np.arange(len(digits))[:, None]) & 1
        one = np.zeros(size, np.bool_)
        one[:num_rows] = labels == 1
        right = np.stack([packed(digits * ~one), packed(digits * one)])
        return PackedRows(packed(columns), right, unit, half)


class Chain:
    """One chain: its bits, and the difference of every count from its threshold.

    key and stream: of its draws; stream is (chain, net, step). partner (I,): the neighbour with
    which an input's weight is exchanged, −1 for none; swaps: share of exchanges. prior (A,):
    log-odds of the bits. coupling: of neighbouring weights in the prior. bounds (2, I):
    bounds[b, i] is the input whose weight must be b where that of input i becomes b, −1 for none;
    (2, 0) where there are none. first: number of its next proposal.
    """

    def __init__(
        self,
        rows: PackedRows,
        bits: NDArray[np.bool_],
        num_hidden: int,
        key: tuple[int, int],
        stream: tuple[int, int, int],
        partner: NDArray[np.int64],
        swaps: float = 0.0,
        prior: NDArray[np.float64] | None = None,
        coupling: float = 0.0,
        bounds: NDArray[np.int64] = NO_BOUNDS,
        first: int = 0,
    ) -> None:
        self.rows = rows
        self.bits = np.array(bits, np.bool_)
        num_inputs = len(rows.columns) - 1
        # counts where all weights of the first layer are −1, so that all units are negative
        count = -rows.half - 1
        vote = (~self.bits[num_hidden * num_inputs :]).sum() - num_hidden // 2 - 1
        votes = np.full(len(count), vote)
        hidden = np.repeat(
            planes(count, int(-count.min() + 1).bit_length() + 1)[None], num_hidden, 0
        )
        output = planes(votes, (num_hidden + 2).bit_length() + 1)[None]
        edge = np.stack([packed(count == 0), packed(count == -1)])
        edges = np.repeat(edge[:, None], num_hidden, 1)
        sides = np.stack([packed(votes == 0), packed(votes == -1)])
        _switch_on(rows.columns, self.bits, hidden, edges, output, sides)
        negative = output[0, :, -1].reshape(-1)
        lost = np.stack([~negative, negative])[:, None] & rows.right
        digits = np.unpackbits(lost.view(np.uint8), axis=-1).sum((0, 2), dtype=np.int64)
        self._lost = np.array([digits @ (1 << np.arange(len(digits)))], np.int64)
        self._address, self._key = np.array([first, *stream], np.int64), np.array(key, np.uint32)
        self._counts = (hidden, edges, output, sides)
        before = np.full(len(partner), -1)
        before[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
        log_odds = np.zeros(0) if prior is None else prior
        self._kind = partner, before, bounds, log_odds, 2 * float(coupling)
        self._swaps = int(swaps * 2**32)

    @property
    def wrong(self) -> float:
        """Weight of the misclassified rows."""
        return self.rows.unit * float(self._lost[0])

    def run(self, proposals: int, betas: tuple[float, float]) -> int:
        """Make proposals, beta rising from the first to the second; returns the number accepted."""
        taken = _advance(
            self.rows.columns,
            self.rows.right,
            self.bits,
            *self._counts,
            *self._kind,
            proposals,
            betas[0] * self.rows.unit,
            betas[1] * self.rows.unit,
            self._swaps,
            self._address,
            self._key,
            self._lost,
        )
        self._address[0] += proposals
        return taken


@njit(forceinline=True)
def _accepted(change, rough, coin):
    """`anneal.accepted`, decided by a logarithm with an error of at most DOUBT where possible."""
    if change <= 0:
        return True
    if abs(change + rough) > DOUBT:
        return -change > rough
    return accepted(0.0, change, 1.0, coin)


@njit(inline="always")
def _draw(first, chain, net, step, k0, k1, num_inputs, num_bits, place, unit, coin, kind, rough):
    """Draw for as many proposals as the arrays hold, as vector code."""
    for t in range(place.shape[0]):
        which, toss, other, _ = rounds(
            uint64(uint32(first + t)), uint64(chain), uint64(net), uint64(step), k0, k1
        )
        place[t] = int32((which * num_bits) >> uint64(32))
        # offset by a half, so that rounding cannot change the quotient
        unit[t] = int32((float64(place[t]) + 0.5) / num_inputs)
        coin[t] = uint32(toss)
        kind[t] = uint32(other)
        share = (float64(coin[t]) + 0.5) / 4294967296.0
        rough[t] = float64(int32(np.float64(share).view(np.int64) >> 32)) * _SLOPE + _SHIFT


@njit(forceinline=True)
def _add(counts, unit, block, rows, up):
    """Add one to the counts of a unit in some rows of a block, or subtract one if not `up`.

    Returns the rows whose counts are now 0, and those whose counts are −1.
    """
    borrow = filled(uint64(0) if up else _FULL)
    carry, some, every = rows, filled(uint64(0)), filled(_FULL)
    for digit in range(counts.shape[2]):
        old = load(counts, (unit, block, digit * LANES))
        new = old ^ carry
        store(counts, (unit, block, digit * LANES), new)
        carry = carry & (old ^ borrow)
        some, every = some | new, every & new
    return ~some, every


@njit(forceinline=True)
def _change_counts(columns, i, but, up, rises, hidden, edges, unit, output, sides):
    """Add one to a unit's counts in the rows of column i that are not in column `but`.

    If not `up`, subtract one. In rows where the unit switches, the count of the output changes by
    one as well: it `rises` or falls. Counts of the output are stored like those of one unit.
    """
    edge = 1 if up else 0
    for block in range(hidden.shape[1]):
        at = block * LANES
        rows = load(columns, (i, at)) & ~load(columns, (but, at))
        if any_set(rows):
            moved = rows & load(edges, (edge, unit, at))
            zero, minus = _add(hidden, unit, block, rows, up)
            store(edges, (0, unit, at), zero)
            store(edges, (1, unit, at), minus)
            if any_set(moved):
                zero, minus = _add(output, 0, block, moved, rises)
                store(sides, (0, at), zero)
                store(sides, (1, at), minus)


@njit(forceinline=True)
def _fall_delta(rows, right, at):
    """Increase of the energy when the output becomes negative in these rows, per word.

    right (2, B, W): see `PackedRows`.
    """
    delta = filled(uint64(0))
    for digit in range(right.shape[1]):
        cost = popcounts(rows & load(right, (1, digit, at)))
        gain = popcounts(rows & load(right, (0, digit, at)))
        delta = delta + ((cost - gain) << filled(uint64(digit)))
    return delta


@njit(forceinline=True)
def _energy_delta(columns, i, but, edges, edge, unit, sides, side, right):
    """Change in energy when the output falls where both the unit and it are at their thresholds."""
    delta = filled(uint64(0))
    for at in range(0, columns.shape[1], LANES):
        moved = load(columns, (i, at)) & ~load(columns, (but, at))
        moved = moved & load(edges, (edge, unit, at)) & load(sides, (side, at))
        delta = delta + _fall_delta(moved, right, at)
    return total(delta)


@njit(forceinline=True)
def _agreeing(hidden, unit, block, positive):
    """Rows of a block in which a unit agrees with its output weight."""
    negative = load(hidden, (unit, block, (hidden.shape[2] - 1) * LANES))
    return negative ^ filled(_FULL if positive else uint64(0))


@njit(forceinline=True)
def _agreement(bits, start, neighbour, on):
    """1 if a weight that becomes `on` will agree with its neighbour, −1 if not, 0 without one."""
    if neighbour < 0:
        return 0
    return 1 if bits[start + neighbour] == on else -1


@njit(forceinline=True)
def _out_of_bounds(bits, start, bounds, i, on, but):
    """Whether another weight of the unit forbids that of input i to become `on`.

    Input `but` is exchanged with it, and so cannot become the same.
    """
    other = bounds[1 if on else 0, i]
    return other >= 0 and (other == but or bits[start + other] != on)


# Functions that are called seldom are not inlined.


@njit(error_model="numpy")
def _output_weight_delta(hidden, unit, positive, sides, right):
    """Change in energy when an output weight is flipped."""
    delta = filled(uint64(0))
    for block in range(hidden.shape[1]):
        at = block * LANES
        agree = _agreeing(hidden, unit, block, positive)
        delta = delta + _fall_delta(agree & load(sides, (0, at)), right, at)
        delta = delta - _fall_delta(~agree & load(sides, (1, at)), right, at)
    return total(delta)


@njit(error_model="numpy")
def _flip_output_weight(hidden, unit, positive, output, sides):
    """Flip an output weight: rows in which its unit agreed lose a vote, the others gain one."""
    for block in range(hidden.shape[1]):
        agree = _agreeing(hidden, unit, block, positive)
        _add(output, 0, block, agree, False)
        zero, minus = _add(output, 0, block, ~agree, True)
        store(sides, (0, block * LANES), zero)
        store(sides, (1, block * LANES), minus)


@compiled("void(uint64[:, ::1], boolean[::1], uint64[:, :, :, ::1], uint64[:, :, ::1],"
          " uint64[:, :, :, ::1], uint64[:, ::1])")  # fmt: skip
def _switch_on(columns, bits, hidden, edges, output, sides):
    """Set the weights that are +1, starting from counts where all are −1."""
    num_inputs = columns.shape[0] - 1
    votes = hidden.shape[0] * num_inputs
    for q in range(votes):
        if bits[q]:
            unit = q // num_inputs
            _change_counts(
                columns, q % num_inputs, num_inputs, True, bits[votes + unit], hidden, edges, unit,
                output, sides,
            )  # fmt: skip


@compiled("int64(uint64[:, ::1], uint64[:, :, ::1], boolean[::1], uint64[:, :, :, ::1],"
          " uint64[:, :, ::1], uint64[:, :, :, ::1], uint64[:, ::1], int64[::1], int64[::1],"
          " int64[:, ::1], float64[::1], float64, int64, float64, float64, int64, int64[::1],"
          " uint32[::1], int64[::1])")  # fmt: skip
def _advance(
    columns, right, bits, hidden, edges, output, sides, partner, before, bounds, prior, coupling,
    proposals, warm, cold, swaps, address, key, energy,
):  # fmt: skip
    num_inputs = columns.shape[0] - 1
    num_hidden, num_bits = hidden.shape[0], bits.shape[0]
    none, votes = num_inputs, num_hidden * num_inputs
    place, unit_of = np.empty(BATCH, np.int32), np.empty(BATCH, np.int32)
    coin, kind = np.empty(BATCH, np.uint32), np.empty(BATCH, np.uint32)
    rough = np.empty(BATCH, np.float64)
    taken = 0
    for t in range(proposals):
        s = t % BATCH
        if s == 0:
            _draw(
                address[0] + t, address[1], address[2], address[3], uint64(key[0]), uint64(key[1]),
                float64(num_inputs), uint64(uint32(num_bits)), place, unit_of, coin, kind, rough,
            )  # fmt: skip
        beta = warm + (cold - warm) * t / proposals
        q, unit = int64(place[s]), int64(unit_of[s])
        gain = 0.0  # in log prior
        if q >= votes:
            unit = q - votes
            positive = bits[q]
            delta = _output_weight_delta(hidden, unit, positive, sides, right)
            if prior.shape[0] > 0:
                gain = -prior[q] if positive else prior[q]
            if _accepted(beta * delta - gain, rough[s], coin[s]):
                _flip_output_weight(hidden, unit, positive, output, sides)
                bits[q] = not positive
                energy[0] += delta
                taken += 1
            continue
        i = q - unit * num_inputs
        positive = bits[votes + unit]
        on = not bits[q]
        other, moves = none, 1
        if int64(kind[s]) < swaps:
            other, moves = partner[i], 2
            if other < 0 or bits[q - i + other] != on:
                continue
        if bounds.shape[1] > 0:
            if _out_of_bounds(bits, q - i, bounds, i, on, other):
                continue
            if other != none and _out_of_bounds(bits, q - i, bounds, other, not on, i):
                continue
        delta = int64(0)
        this, but, up = i, other, on
        for _ in range(moves):
            rises = up == positive
            edge, side = 1 if up else 0, 1 if rises else 0
            change = _energy_delta(columns, this, but, edges, edge, unit, sides, side, right)
            delta += -change if rises else change
            this, but, up = but, this, not up
        if prior.shape[0] > 0:
            gain = prior[q] if other == none else prior[q] - prior[q - i + other]
            if not on:
                gain = -gain
        if coupling > 0:  # the two weights of an exchange disagree before and after
            last = i if other == none else other
            gain += coupling * _agreement(bits, q - i, before[i], on)
            gain += coupling * _agreement(bits, q - i, partner[last], on == (last == i))
        if _accepted(beta * delta - gain, rough[s], coin[s]):
            this, but, up = i, other, on
            for _ in range(moves):
                _change_counts(
                    columns, this, but, up, up == positive, hidden, edges, unit, output, sides
                )
                bits[q - i + this] = up
                this, but, up = but, this, not up
            energy[0] += delta
            taken += 1
    return taken
