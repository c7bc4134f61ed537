"""All weights of a one-layer net, bit-parallel: the exact optimum of up to about 40 weights.

Write h > 0 as a count. With plus[i] the examples whose x_i is +1 and minus[i] those whose x_i
is −1, an example agrees with weight i when w_i is one and x_i = +1, or w_i is zero and
x_i = −1. Its agreements c then decide the label alone:

    bipolar weights:  h = 2·c − #{x ≠ 0}   so   h > 0  ⇔  c ≥ ⌊#{x ≠ 0}/2⌋ + 1
    0/1 weights:      h = c − #{x = −1}    so   h > 0  ⇔  c ≥ #{x = −1} + 1

Examples are packed into 64-bit words and counters are sliced: plane k of a counter has bit k of 64
examples. The weights are divided in two. For the first LOW_BITS, the counters of all settings are
tabulated. The others follow a Gray code, which updates the slack, the number of agreements still
missing clamped to the table's range, by one sliced addition and one subtraction per flip. Then
"counter ≥ slack" for 64 examples is the carry of one sliced subtraction of four majorities, and the
loop over the table has no dependencies, so it runs in vector registers over several configurations
at once.

Cost: 2^N · ⌈M/64⌉ · about ten word operations, eight words at a time with 512-bit registers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.threads import over_rows
from vitrail.kernels.cpu.words import WORD, Words, packed, popcount

LOW_BITS = 10  # 2¹⁰ settings · 4 planes · 8 bytes fill the first-level cache
TABLE_PLANES = 4  # counters of 0…10 agreements; 15 means "out of reach"
SLACK_PLANES = 7  # two's complement −64…63, so up to 62 weights
OUT_OF_REACH = 63  # slack of the padding of the last word, which is never satisfied
SPLIT_BITS = 7  # 128 ranges, so that threads finish at about the same time
NO_INDEX = 2**62  # above every configuration's index


@dataclass(frozen=True)
class Optima:
    """The best configurations: bit i of `index` is weight i, and `index` is the lowest of them."""

    satisfied: int
    count: int
    index: int
    histogram: NDArray[np.int64] | None  # (M + 1,): configurations by number of satisfied examples


@njit
def _add(counter, bits):
    for k in range(counter.shape[0]):
        plane = counter[k]
        counter[k] = plane ^ bits
        bits = plane & bits


@njit
def _subtract(counter, bits):
    for k in range(counter.shape[0]):
        plane = counter[k]
        counter[k] = plane ^ bits
        bits = ~plane & bits


@compiled("uint64[:, :, ::1](uint64[:, ::1], uint64[:, ::1], int64)")
def _low_table(plus, minus, low_bits):
    """Agreements with the first weights, by setting: (words, TABLE_PLANES, 2^low_bits)."""
    num_words = plus.shape[0]
    table = np.zeros((num_words, TABLE_PLANES, 1 << low_bits), np.uint64)
    for word in range(num_words):
        planes = table[word]
        for i in range(low_bits):
            half = 1 << i
            for j in range(half):
                one = plus[word, i]
                zero = minus[word, i]
                for k in range(TABLE_PLANES):
                    plane = planes[k, j]
                    planes[k, j + half] = plane ^ one
                    one = plane & one
                    planes[k, j] = plane ^ zero
                    zero = plane & zero
    return table


@njit
def _add_satisfied(table, slack, unlabel, satisfied):
    """satisfied[j] += examples of one word that setting j of the low weights satisfies."""
    out = slack[4] | slack[5]
    negative = slack[6]
    not0 = ~((slack[0] | out) & ~negative)
    not1 = ~((slack[1] | out) & ~negative)
    not2 = ~((slack[2] | out) & ~negative)
    not3 = ~((slack[3] | out) & ~negative)
    plane0, plane1, plane2, plane3 = table[0], table[1], table[2], table[3]
    for j in range(satisfied.shape[0]):
        # carry of counter + not slack + 1: one where counter ≥ slack
        carry = plane0[j] | not0
        a = plane1[j]
        carry = (a & not1) | (carry & (a | not1))
        a = plane2[j]
        carry = (a & not2) | (carry & (a | not2))
        a = plane3[j]
        carry = (a & not3) | (carry & (a | not3))
        satisfied[j] += popcount(carry ^ unlabel)


@compiled(
    "UniTuple(int64, 3)(uint64[:, :, ::1], uint64[:, ::1], uint64[:, ::1], uint64[:, ::1],"
    " uint64[::1], int64, int64, int64[::1])",
)
def _search_range(table, plus, minus, slack, unlabel, first, free_bits, histogram):
    """Best, its count and its lowest index over high settings first…first + 2^free_bits − 1.

    plus and minus are those of the high weights. An empty histogram is not filled.
    """
    num_words, num_high = plus.shape
    num_low = table.shape[2]
    slack = slack.copy()
    for word in range(num_words):
        for i in range(num_high):
            _subtract(slack[word], plus[word, i] if (first >> i) & 1 else minus[word, i])
    satisfied = np.empty(num_low, np.uint64)
    best, count, index = np.int64(-1), np.int64(0), np.int64(NO_INDEX)
    high = first
    for step in range(1 << free_bits):
        if step > 0:
            flip = 0
            while not (step >> flip) & 1:
                flip += 1
            gained, lost = (minus, plus) if (high >> flip) & 1 else (plus, minus)
            for word in range(num_words):
                _subtract(slack[word], gained[word, flip])
                _add(slack[word], lost[word, flip])
            high ^= np.int64(1) << flip
        satisfied[:] = 0
        for word in range(num_words):
            _add_satisfied(table[word], slack[word], unlabel[word], satisfied)
        top = np.uint64(0)
        for j in range(num_low):
            top = max(top, satisfied[j])
        if np.int64(top) > best:
            best, count, index = np.int64(top), np.int64(0), np.int64(NO_INDEX)
        if np.int64(top) == best:
            here = 0
            for j in range(num_low):
                here += satisfied[j] == top
            count += here
            if high * num_low < index:
                j = 0
                while satisfied[j] != top:
                    j += 1
                index = high * num_low + j
        if histogram.shape[0] > 0:
            for j in range(num_low):
                histogram[satisfied[j]] += 1
    return best, count, index


def _words(bits: NDArray) -> Words:
    """(M, N) of 0 and 1 → (⌈M/64⌉, N): example e is bit e mod 64 of word e div 64."""
    return np.ascontiguousarray(packed(bits.T).T)


def enumerate_weights(
    inputs: NDArray[np.int8],
    labels: NDArray[np.bool_],
    low: int,
    histogram: bool = False,
) -> Optima:
    """Every configuration of N weights on inputs (M, N) in {−1, 0, 1} and labels (M,).

    low: value of a zero bit, −1 or 0. Threads take ranges of settings of the last weights.
    """
    num_examples, num_weights = inputs.shape
    ones = inputs == 1
    minus_ones = inputs == -1
    negatives = minus_ones.sum(axis=1)
    needed = ((ones.sum(axis=1) + negatives) // 2 if low == -1 else negatives) + 1
    plus, minus = _words(ones), _words(minus_ones)
    num_words = plus.shape[0]
    padding = num_words * WORD - num_examples
    needed = np.concatenate([needed, np.full(padding, OUT_OF_REACH)])
    slack = _words(needed[:, None] >> np.arange(SLACK_PLANES) & 1)
    # padding counts as labelled one, so that an example out of reach is never satisfied
    unlabel = ~packed(np.concatenate([labels, np.ones(padding, np.bool_)]))

    low_bits = min(LOW_BITS, num_weights)
    table = _low_table(plus, minus, low_bits)
    plus, minus = (np.ascontiguousarray(part[:, low_bits:]) for part in (plus, minus))
    num_high = num_weights - low_bits
    free_bits = num_high - min(SPLIT_BITS, num_high)
    num_ranges = 1 << (num_high - free_bits)
    histograms = np.zeros((num_ranges, num_examples + 1 if histogram else 0), np.int64)
    found = np.zeros((num_ranges, 3), np.int64)

    def search(begin: int, end: int) -> None:
        for part in range(begin, end):
            found[part] = _search_range(
                table, plus, minus, slack, unlabel, part << free_bits, free_bits, histograms[part]
            )

    over_rows(search, num_ranges, num_words << (free_bits + low_bits))
    best = found[:, 0].max()
    winners = found[found[:, 0] == best]
    return Optima(
        satisfied=int(best),
        count=int(winners[:, 1].sum()),
        index=int(winners[:, 2].min()),
        histogram=histograms.sum(axis=0) if histogram else None,
    )
