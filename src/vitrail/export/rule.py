"""The rule of `vitrail.model.voting`, with everything that is known before a row comes worked out.

    level = ((s + c·V)·256) // (2·c·V),   q = table[level],   class 1 where q > 32767

A common factor of a net's votes changes no level, so it is left out. Of two classes only the
smallest score of class 1 is needed to answer. Where the possible scores are few, a table by score
replaces the division. Where all classes share a table that rises, no table is needed to answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import gcd
from typing import Literal

import numpy as np

from vitrail.export.plan import ExportPlan, Layer, layer_bits
from vitrail.model import Model
from vitrail.model.voting import HALF, LEVELS

MOST_SCORES = 2**16  # that are looked at one by one


@dataclass(frozen=True, eq=False)
class Rule:
    """How the outputs of K networks become probabilities, for each of N nets."""

    votes: np.ndarray  # (N, K) int64, without common factors; negative where outputs are turned
    clip: int
    tables: np.ndarray  # (N, 257)
    margins: np.ndarray  # the values that 2·h − 1 can have, ascending, not clipped
    known: np.ndarray | None = None  # the scores that rows can have, ascending, where known

    @property
    def clips(self) -> bool:
        """Whether some margin is clipped."""
        return bool(np.abs(self.margins).max() > self.clip)

    @cached_property
    def most(self) -> list[int]:
        """c·V of each net: no score is larger."""
        return [self.clip * sum(map(abs, row)) for row in self.votes.tolist()]

    def levels(self, scores: Sequence[int] | np.ndarray, net: int = 0) -> np.ndarray:
        """The level of scores of a net."""
        most = self.most[net]
        return (np.asarray(scores) + most) * LEVELS // (2 * most)

    def probabilities(self, scores: Sequence[int], net: int) -> list[int]:
        """q of scores of a net."""
        return self.tables[net, self.levels(scores, net)].tolist()

    @cached_property
    def _lattices(self) -> list[range]:
        """Scores among which are all that bits may have, of each net that differs in them."""
        margins = np.clip(self.margins, -self.clip, self.clip).tolist()
        step = gcd(*(margin - margins[0] for margin in margins)) or 1
        totals = set(np.abs(self.votes).sum(1).tolist())
        return [range(margins[0] * v, margins[-1] * v + 1, step) for v in totals]

    @property
    def scores(self) -> range | None:
        """The scores of every net, where all nets have the same and they are at most 257."""
        first, *others = self._lattices
        return None if others or len(first) > LEVELS + 1 else first

    @cached_property
    def score_tables(self) -> list[list[int]]:
        """q by place among `scores`, for each net."""
        assert self.scores is not None
        return [self.probabilities(self.scores, net) for net in range(len(self.votes))]

    @cached_property
    def reach(self) -> np.ndarray | None:
        """Scores among which are all that bits may have; None where too many to look at."""
        if max(map(len, self._lattices)) > MOST_SCORES:
            return None
        return np.unique(np.concatenate([np.array(scores) for scores in self._lattices]))

    @cached_property
    def rank(self) -> Literal["score", "level"] | None:
        """What is largest where the probability is, in all nets: no table is needed to answer."""
        if len(set(self.most)) > 1 or (self.tables != self.tables[0]).any():
            return None
        reach = self.reach if self.known is None else self.known
        levels = np.arange(LEVELS + 1) if reach is None else self.levels(reach)
        if not (np.diff(self.tables[0][np.unique(levels)]) > 0).all():
            return None
        if reach is not None and (np.diff(levels) > 0).all():
            return "score"
        return "level" if self.scores is None else None

    @cached_property
    def product(self) -> tuple[int, int] | None:
        """Multiplier and shift with ((s + most)·multiplier) >> shift the level of every score."""
        if len(set(self.most)) > 1 or self.reach is None:
            return None
        sums, levels = self.reach + self.most[0], self.levels(self.reach)
        for shift in range(32):
            multiplier = -(-LEVELS * 2**shift // (2 * self.most[0]))
            if multiplier * int(sums[-1]) >= 2**32:
                return None
            if ((sums * multiplier) >> shift == levels).all():
                return multiplier, shift
        return None

    @cached_property
    def cut(self) -> int:
        """The smallest score of the first net that means class 1."""
        level = int(np.searchsorted(self.tables[0], HALF, side="right"))
        return -(-level * 2 * self.most[0] // LEVELS) - self.most[0]


def class_order(tables: list[list[int]], classes: int) -> list[int]:
    """Small numbers in the place of probabilities, of one table or one per class: the same class
    has the largest, and the first of equals.

    Probabilities ascend, of equal ones that of the last class first. Neighbours may become equal
    where that of the earlier class comes later: it wins as it did.
    """
    own = len(tables) > 1
    order = sorted(
        (q, -c, level) for c in range(classes) for level, q in enumerate(tables[c if own else 0])
    )
    found, number, before = {}, 0, classes
    for _, c, level in order:
        number += -c > before
        before = -c
        found[-c if own else 0, level] = number
    return [found[c, level] for c in range(len(tables)) for level in range(len(tables[c]))]


def sides(model: Model) -> list[tuple[int | None, int]]:
    """The two classes that each net of one output distinguishes: its answer where its output is not
    positive (none: any of the others), and its answer otherwise."""
    if model.scheme == "pairs":
        return list(combinations(range(model.num_classes), 2))
    if model.scheme == "one-vs-rest":
        return [(None, own) for own in range(model.num_classes)]
    return [(0, 1)]


def fold_sign(model: Model, plan: ExportPlan, rule: Rule) -> tuple[ExportPlan, Rule]:
    """A last weight of one hidden unit, +1 or −1, as the sign of its network's vote.

    The network answers as the unit does, or the opposite. Only where all margins have size 1.
    """
    before, last = plan.stages[:-1], plan.last
    alone = last.outputs == 1 and last.fan_in == 1 and not last.windows
    signs = last.kind == "sign_sign" and rule.clip == 1
    if not (alone and signs and before and isinstance(before[-1], Layer)):
        return plan, rule
    sign = np.where(layer_bits(model, last)[:, :, 0, 0], 1, -1)
    margins = np.array([-1, 1])  # of outputs 0 and 1
    return (
        replace(plan, stages=before, last_low=0),
        replace(rule, votes=rule.votes * sign, margins=margins),
    )


def rule_of(model: Model, plan: ExportPlan) -> Rule:
    """The rule of a model whose net runs as planned."""
    size, distance = plan.last.lattice
    outputs = np.arange(-size, size + 1, distance)
    if plan.last_low is not None:
        outputs = np.array([plan.last_low, 1])
    if plan.num_outputs > 1:
        outputs = np.arange(-2 * size, 2 * size + 2)  # the lead over the strongest rival
    votes = model.votes.numpy().T.astype(np.int64)
    votes = votes // np.gcd.reduce(votes, axis=None)
    if len(set(votes.sum(1).tolist())) > 1:  # else all nets have the same scores already
        votes = votes // np.gcd.reduce(votes, axis=1, keepdims=True)
    return Rule(votes, model.clip, model.calibration.numpy(), 2 * outputs - 1)
