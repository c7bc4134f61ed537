"""Which net, and whether to search on after message passing: decided on rows held out.

Local search fits training rows better than anything, which is right where labels follow a rule
and wrong where they are noisy; the same goes for hidden units. So each candidate is trained on
some rows and scored on others. All folds are problems of one graph, and one run gives both the
network that message passing found and the one that local search made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from vitrail.data.draws import random_order
from vitrail.model import Shape, class_chances, iter_margins, net_chances
from vitrail.nn import Program
from vitrail.settings import Plan
from vitrail.solvers import Status
from vitrail.training import Examples, nets_of, train

FOLDS = 5
STANDARD_ERRORS = 2.0
ROWS_IN_ALL = 3000  # train on about so many rows: all folds of a small table, one of a large one


@dataclass(frozen=True)
class Choice:
    """A candidate, and which rows held out it classifies rightly."""

    hidden: tuple[int, ...]
    polish: int
    hits: Tensor  # (rows,) bool


@dataclass(frozen=True)
class Choosing:
    """What is the same for every candidate."""

    examples: Examples
    num_classes: int
    pairs: bool
    seed: int
    device: str
    progress: bool = False  # bars on a terminal

    def folds(self) -> list[tuple[Examples, Examples]]:
        """(train, held out) parts: the same share of every class, and few if there are many rows.

        A fold that would leave a class without an example to train on is left out.
        """
        labels = self.examples.labels.numpy()
        order = random_order(self.seed, len(labels))
        fold = np.empty(len(labels), np.int64)
        for label in np.unique(labels):
            members = order[labels[order] == label]
            fold[members] = np.arange(len(members)) % FOLDS
        parts = []
        for number in range(min(FOLDS, max(1, ROWS_IN_ALL // len(labels)))):
            held = torch.from_numpy(fold == number)
            seen = set(labels[fold != number].tolist())
            if bool(held.any()) and len(seen) == self.num_classes:
                parts.append((self.examples.where(~held), self.examples.where(held)))
        return parts

    def hits(
        self, program: Program, best: Tensor, parts: Sequence[tuple[Examples, Examples]]
    ) -> Tensor:
        """Which held-out rows, fold by fold, nets (folds·N, A) classify rightly: (rows,) bool."""
        found = []
        folds = best.reshape(len(parts), 1, -1, best.shape[1])
        for nets, (_, held) in zip(folds, parts, strict=True):
            shares = torch.ones(nets.shape[:2], dtype=torch.float64)
            for margins in iter_margins(program, nets, held.inputs):
                chances = net_chances(margins, 1.0)
                found.append(class_chances(chances, shares, self.num_classes, self.pairs).argmax(1))
        return torch.cat(found) == torch.cat([held.labels for _, held in parts])


def choose(
    choosing: Choosing,
    shapes: Sequence[Shape],
    plan_of: Callable[[Shape], Plan],
) -> tuple[Choice | None, bool]:
    """The simplest candidate that none after it clearly beats; and whether Ctrl-C came.

    shapes: from simple to large; with local search comes before without. None where there are too
    few rows to hold any out.
    """
    parts = choosing.folds()
    best: Choice | None = None
    if not parts:
        return None, False
    weight = torch.cat([held.weight for _, held in parts])
    nets = [net for seen, _ in parts for net in nets_of(seen, choosing.num_classes, choosing.pairs)]
    for shape in shapes:
        program, plan = shape.build(), replace(plan_of(shape), restarts=1)
        found = train(
            program,
            nets,
            plan,
            seed=choosing.seed,
            device=choosing.device,
            progress=choosing.progress,
        )
        for polish, bits in ((plan.polish, found.best), (0, found.unpolished)):
            candidate = Choice(shape.hidden or (), polish, choosing.hits(program, bits, parts))
            if best is None or clearly_better(candidate.hits, best.hits, weight):
                best = candidate
        if Status.INTERRUPTED in found.status:
            return best, True
    return best, False


def clearly_better(new: Tensor, old: Tensor, weight: Tensor) -> bool:
    """Whether Σ w·d > 2·√(Σ w²·d²), d = new − old on each row: by more than two standard errors.

    With one standard error, small noisy tables often got a larger net that did worse.
    """
    gain = weight * (new.double() - old.double())
    return bool(gain.sum() > STANDARD_ERRORS * gain.square().sum().sqrt())
