"""A net of one layer as a sum of steps: what each column adds depends on its own value alone.

    score_n = base_n + Σ jump_n over the steps whose test the row passes

A test asks whether a column's value lies above a cut. Weights, votes, thermometer bits and bins of
a column all end up in the jumps; where no row can be clipped, the scores are those of
`vitrail.model.voting` to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd

import numpy as np

from vitrail.export.plan import ExportPlan, layer_bits
from vitrail.export.rule import MOST_SCORES, Rule
from vitrail.model import Model
from vitrail.tables.encoders import TableEncoder

Jump = tuple[int, ...]  # what a step adds to the score of each net


@dataclass(frozen=True)
class Step:
    """What changes where a column's value lies above a region; regions are numbered in order.

    Of numbers, region i lies up to threshold i and above the one before; of words, region i is the
    i-th word, then come any other and none. A missing number is in no region.
    """

    column: int
    place: int  # of the region; −1: the step is for missing numbers alone
    jump: Jump
    missing: bool = False  # whether missing numbers count as above


@dataclass(frozen=True)
class LinearForm:
    """Scores of N nets, in units: score_n = first + unit·(base_n + jumps), bases from 0 on."""

    base: Jump
    steps: tuple[Step, ...]
    first: int
    unit: int


@dataclass(frozen=True)
class Reach:
    """Sums that can occur, an even distance apart: bit i of `seen` is `least` + 2·i."""

    least: int
    seen: int

    def plus(self, numbers: set[int]) -> Reach:
        """Sums of these and any one of the numbers."""
        low, seen = min(numbers), 0
        for number in numbers:
            seen |= self.seen << (number - low) // 2
        return Reach(self.least + low, seen)

    @property
    def all(self) -> np.ndarray:
        """The sums, ascending."""
        octets = self.seen.to_bytes(-(-self.seen.bit_length() // 8), "little")
        bits = np.unpackbits(np.frombuffer(octets, np.uint8), bitorder="little")
        return self.least + 2 * np.flatnonzero(bits)


def linear_form(model: Model, plan: ExportPlan, rule: Rule) -> tuple[LinearForm | None, Rule]:
    """The steps of a model, and its rule by what is then known of scores.

    There are none where it has a hidden layer or rows may be clipped.
    """
    nothing = None, rule
    plain = plan.stages == (plan.last,) and plan.last.windows is None and plan.last_low is None
    if not plain or plan.num_outputs > 1 or model.scheme == "pairs":
        return nothing
    encoder = model.encoder
    if isinstance(encoder, TableEncoder) and any(
        code.numeric and (code.categories or code.other) for code in encoder.columns
    ):
        return nothing
    bits = layer_bits(model, plan.last)[:, :, 0]  # (N, K, inputs)
    weights = np.where(bits, 1, plan.last.weight_low).astype(np.int64)
    low = plan.last.value_low
    outputs = weights[..., len(encoder.bit_names) :].sum(-1)  # of constant inputs
    least, most = outputs.copy(), outputs.copy()
    base = (rule.votes * (2 * outputs - 1)).sum(1)
    steps, reach = [], [Reach(int(score), 1) for score in base]
    for column, (place, states) in enumerate(encoder.states()):
        values = low + (1 - low) * states
        adds = (weights[:, :, None, place] * values).sum(-1)  # (N, K, regions)
        least += adds.min(-1)
        most += adds.max(-1)
        gain = (2 * rule.votes[..., None] * adds).sum(1)  # (N, regions)
        numeric = isinstance(encoder, TableEncoder) and encoder.columns[column].numeric
        start, found = _steps(column, [tuple(row) for row in gain.T.tolist()], numeric)
        base += start
        steps += found
        reach = [scores.plus(set(row)) for scores, row in zip(reach, gain.tolist(), strict=True)]
        if max(scores.seen.bit_length() for scores in reach) > MOST_SCORES:
            return nothing
    if max(abs(2 * least - 1).max(), abs(2 * most - 1).max()) > rule.clip:
        return nothing
    unit = gcd(*(j for step in steps for j in step.jump), *(base - base[0]).tolist()) or 1
    first = int(base.min())
    known = np.unique(np.concatenate([scores.all for scores in reach]))
    form = LinearForm(
        tuple(((base - first) // unit).tolist()),
        tuple(replace(step, jump=tuple(j // unit for j in step.jump)) for step in steps),
        first,
        unit,
    )
    return form, replace(rule, known=known)


def _steps(column: int, gain: list[Jump], numeric: bool) -> tuple[Jump, list[Step]]:
    """What a column adds to begin with, and its steps; of numbers the last gain is of missing."""
    own = gain[:-1] if numeric else gain
    changes = [(i, _difference(b, a)) for i, (a, b) in enumerate(pairwise(own))]
    changes = [(i, jump) for i, jump in changes if any(jump)]
    if not numeric:
        return own[0], [Step(column, i, jump) for i, jump in changes]
    missing = gain[-1]
    among = own.index(missing) if missing in own else 0  # a region that adds the same
    steps = [Step(column, i, jump, missing=i < among) for i, jump in changes]
    if missing not in own:
        steps.append(Step(column, -1, _difference(missing, own[0]), missing=True))
    return own[0], steps


def _difference(a: Jump, b: Jump) -> Jump:
    return tuple(x - y for x, y in zip(a, b, strict=True))
