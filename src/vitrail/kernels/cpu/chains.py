"""Metropolis chains of nets with one hidden layer, 64 rows at a time.

The net reads 0/1, its weights and hidden units are ±1, and it has one output: unit u is active
where more than half of a row's ones meet a weight +1, and the output is positive where more than
half of the units agree with their output weight. So all that is kept of a row is how far these
counts are from the edge. The counts of 64 rows are the bit planes of one word each: adding one to
some rows is a chain of carries, and a unit switches only in the rows that stand at 0 or −1. What
a proposal would change is then a few ANDs and a popcount a word; counts are touched only where a
proposal is taken.

A proposal picks a bit at random and flips it. A share `swaps` of those that pick a weight of the
first layer exchanges it with that of the neighbouring input instead (`partner`): between bits of
one column this moves a threshold, which two flips would do by way of something worse. Both kinds
are their own inverse, and a proposal is taken with probability

    min(1, exp(−beta·ΔE + Δ log prior)),   E the weight of the rows on the wrong side,

so the chain samples exp(−beta·E)·prior. `solvers.chains` says the same in plain torch.

Draws: Philox at counter (proposal, chain, net, step): which bit, coin, kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import int64, njit, uint32, uint64
from numpy.typing import NDArray

from vitrail.kernels.cpu.anneal import accepted
from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import philox
from vitrail.kernels.cpu.words import WORD, Words, packed, planes, popcount

MAX_WEIGHT = 2**16  # whole weights below are exact
WEIGHT_STEPS = 2**10 - 1  # others are rounded to this part of the largest

_FULL = uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class PackedRows:
    """The examples of one net, rows in words."""

    columns: Words  # (I + 1, W): inputs, and a column of zeros
    right: Words  # (2, B, W): of rows with label 0 and 1, the binary digits of their weights
    unit: float  # of weight that the lowest digit stands for
    half: NDArray[np.int64]  # (W·64,) half of each row's ones, rounded down

    @staticmethod
    def of(
        inputs: NDArray[np.int8], labels: NDArray[np.int64], weight: NDArray[np.float64]
    ) -> PackedRows:
        """Rows (F, I) of 0/1 with labels 0/1 and weights."""
        num_rows, num_inputs = inputs.shape
        columns = np.zeros((num_inputs + 1, num_rows), np.uint8)
        columns[:num_inputs] = inputs.T
        words = packed(columns)
        half = np.zeros(words.shape[1] * WORD, np.int64)
        half[:num_rows] = inputs.sum(1, dtype=np.int64) // 2
        largest = float(weight.max(initial=1.0))
        whole = bool((weight == np.round(weight)).all()) and largest < MAX_WEIGHT
        unit = 1.0 if whole else largest / WEIGHT_STEPS
        counts = np.round(weight / unit).astype(np.int64)
        digits = (counts[None] >> np.arange(int(counts.max(initial=1)).bit_length())[:, None]) & 1
        right = np.stack([packed(digits * (labels == label)) for label in (0, 1)])
        return PackedRows(words, right, unit, half)


class Chain:
    """One chain: its bits, and how far every count is from its edge."""

    def __init__(self, rows: PackedRows, bits: NDArray[np.bool_], num_hidden: int) -> None:
        self.rows = rows
        self.bits = np.array(bits, np.bool_)
        num_inputs, width = len(rows.columns) - 1, rows.columns.shape[1]
        below = planes(-rows.half - 1, (num_inputs + 2).bit_length() + 1)
        start = np.full(len(rows.half), -(num_hidden // 2) - 1, np.int64)
        self._hidden = np.repeat(below[None], num_hidden, 0)
        self._output = planes(start, (num_hidden + 2).bit_length() + 1)
        self._edges = np.zeros((2, num_hidden, width), np.uint64)
        self._sides = np.zeros((2, width), np.uint64)
        _begin(rows.columns, self.bits, self._hidden, self._edges, self._output, self._sides)

    @property
    def wrong(self) -> float:
        """The weight of the rows on the wrong side."""
        negative = self._output[:, -1]
        lost = np.stack([~negative, negative])[:, None] & self.rows.right
        digits = np.unpackbits(lost.view(np.uint8), axis=-1).sum((0, 2), dtype=np.int64)
        return self.rows.unit * float(digits @ (1 << np.arange(len(digits))))

    def run(
        self,
        proposals: int,
        betas: tuple[float, float],
        address: tuple[int, int, int, int],
        key: tuple[int, int],
        partner: NDArray[np.int64],
        swaps: float = 0.0,
        prior: NDArray[np.float64] | None = None,
    ) -> int:
        """Make proposals, beta going from the first to the second; how many were taken.

        address: the number of the first proposal, chain, net, step. partner (I,): the neighbour
        that an input's weight is exchanged with, −1 for none. prior (A,): log-odds of the bits.
        """
        return _advance(
            self.rows.columns,
            self.rows.right,
            self.bits,
            self._hidden,
            self._edges,
            self._output,
            self._sides,
            partner,
            np.zeros(0) if prior is None else prior,
            proposals,
            betas[0] * self.rows.unit,
            betas[1] * self.rows.unit,
            int(swaps * 2**32),
            np.array(address, np.int64),
            np.array(key, np.uint32),
        )


@njit(inline="always")
def _add(counts, word, rows, borrow):
    """Add one to the counts of some rows (borrow 0) or take one off (all ones): those at 0, −1."""
    some, every = uint64(0), _FULL
    for digit in range(counts.shape[1]):
        old = counts[word, digit]
        new = old ^ rows
        counts[word, digit] = new
        rows &= old ^ borrow
        some |= new
        every &= new
    return ~some, every


@njit(inline="always")
def _toll(rows, but, edge, side, right):
    """What it costs that the output falls in the rows that are at the edge."""
    total = int64(0)
    for digit in range(right.shape[1]):
        cost, gain = uint64(0), uint64(0)
        for w in range(rows.shape[0]):
            moved = rows[w] & ~but[w] & edge[w] & side[w]
            gain += popcount(moved & right[0, digit, w])
            cost += popcount(moved & right[1, digit, w])
        total += (int64(cost) - int64(gain)) << digit
    return total


@njit(inline="always")
def _change(columns, right, edges, sides, unit, i, but, on, positive):
    """Energy after weight i of a unit is switched on or off, in rows without input `but`."""
    rises = on == positive
    toll = _toll(columns[i], columns[but], edges[1 if on else 0, unit], sides[1 if rises else 0],
                 right)  # fmt: skip
    return -toll if rises else toll


# What is called seldom is compiled once, and not into every place that calls it.


@njit(error_model="numpy")
def _switch(columns, hidden, edges, output, sides, unit, i, but, on, positive):
    """Switch weight i of a unit on or off, in rows without input `but`."""
    borrow = uint64(0) if on else _FULL
    borrow_output = uint64(0) if on == positive else _FULL
    for w in range(columns.shape[1]):
        rows = columns[i, w] & ~columns[but, w]
        if rows == 0:
            continue
        moved = rows & edges[1 if on else 0, unit, w]
        edges[0, unit, w], edges[1, unit, w] = _add(hidden[unit], w, rows, borrow)
        if moved != 0:
            sides[0, w], sides[1, w] = _add(output, w, moved, borrow_output)


@njit(error_model="numpy")
def _turning(agree, sides, right):
    """Energy after an output weight is turned: its unit agrees with it in these rows."""
    total = int64(0)
    for digit in range(right.shape[1]):
        cost, gain = uint64(0), uint64(0)
        for w in range(agree.shape[0]):
            fall, rise = agree[w] & sides[0, w], ~agree[w] & sides[1, w]
            cost += popcount(fall & right[1, digit, w]) + popcount(rise & right[0, digit, w])
            gain += popcount(fall & right[0, digit, w]) + popcount(rise & right[1, digit, w])
        total += (int64(cost) - int64(gain)) << digit
    return total


@njit(error_model="numpy")
def _turn(agree, output, sides):
    """Turn an output weight: the rows in which its unit agreed lose a vote, the others gain one."""
    for w in range(agree.shape[0]):
        _add(output, w, agree[w], _FULL)
        sides[0, w], sides[1, w] = _add(output, w, ~agree[w], uint64(0))


@njit(inline="always")
def _agree(hidden, unit, w, positive):
    """The rows in which a unit agrees with its output weight."""
    negative = hidden[unit, w, hidden.shape[2] - 1]
    return ~negative if positive else negative


@compiled("void(uint64[:, ::1], boolean[::1], uint64[:, :, ::1], uint64[:, :, ::1],"
          " uint64[:, ::1], uint64[:, ::1])")  # fmt: skip
def _begin(columns, bits, hidden, edges, output, sides):
    """Count, from counts of nothing."""
    num_inputs, width = columns.shape[0] - 1, columns.shape[1]
    num_hidden = hidden.shape[0]
    for w in range(width):
        for u in range(num_hidden):
            edges[0, u, w], edges[1, u, w] = _add(hidden[u], w, uint64(0), uint64(0))
            for i in range(num_inputs):
                if bits[u * num_inputs + i]:
                    edges[0, u, w], edges[1, u, w] = _add(hidden[u], w, columns[i, w], uint64(0))
            agree = _agree(hidden, u, w, bits[num_hidden * num_inputs + u])
            sides[0, w], sides[1, w] = _add(output, w, agree, uint64(0))


@compiled("int64(uint64[:, ::1], uint64[:, :, ::1], boolean[::1], uint64[:, :, ::1],"
          " uint64[:, :, ::1], uint64[:, ::1], uint64[:, ::1], int64[::1], float64[::1], int64,"
          " float64, float64, int64, int64[::1], uint32[::1])")  # fmt: skip
def _advance(
    columns, right, bits, hidden, edges, output, sides, partner, prior, proposals, warm, cold,
    swaps, address, key,
):  # fmt: skip
    num_inputs, width = columns.shape[0] - 1, columns.shape[1]
    num_hidden, num_bits = hidden.shape[0], bits.shape[0]
    none, votes = num_inputs, num_hidden * num_inputs
    agree = np.empty(width, np.uint64)
    taken = 0
    for t in range(proposals):
        which, coin, kind, _ = philox(
            uint32(address[0] + t), uint32(address[1]), uint32(address[2]), uint32(address[3]),
            key[0], key[1],
        )  # fmt: skip
        beta = warm + (cold - warm) * t / proposals
        q = (int64(which) * num_bits) >> 32
        gain = 0.0  # in log prior
        if q >= votes:
            unit = q - votes
            positive = bits[q]
            for w in range(width):
                agree[w] = _agree(hidden, unit, w, positive)
            delta = _turning(agree, sides, right)
            if prior.shape[0] > 0:
                gain = -prior[q] if positive else prior[q]
            if accepted(0.0, beta * delta - gain, 1.0, coin):
                _turn(agree, output, sides)
                bits[q] = not positive
                taken += 1
            continue
        unit, i = q // num_inputs, q % num_inputs
        positive = bits[votes + unit]
        on = not bits[q]
        other, place = none, q
        if int64(kind) < swaps:
            if partner[i] < 0:
                continue
            place = q - i + partner[i]
            if bits[place] != on:
                continue
            other = partner[i]
        delta = _change(columns, right, edges, sides, unit, i, other, on, positive)
        if other != none:
            delta += _change(columns, right, edges, sides, unit, other, i, not on, positive)
        if prior.shape[0] > 0:
            gain = prior[q] if other == none else prior[q] - prior[place]
            if not on:
                gain = -gain
        if accepted(0.0, beta * delta - gain, 1.0, coin):
            _switch(columns, hidden, edges, output, sides, unit, i, other, on, positive)
            if other != none:
                _switch(columns, hidden, edges, output, sides, unit, other, i, not on, positive)
                bits[place] = not on
            bits[q] = on
            taken += 1
    return taken
