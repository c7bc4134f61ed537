"""A small model that answers as many networks do: what goes onto a device.

Several ways are tried: committees of the model's own hidden units or networks (`picking`), and one
net that learns what the model says (`distilling`), reading all bits of rows or fewer cuts of its
numbers. They learn from some of the rows given, and from rows made of these: two rows are crossed,
every column being taken from the second with a chance of 3 in 10. The way is taken that agrees
with the model on other rows, and then learns from all of them. No labels are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail.data.checks import check_made, checked_count
from vitrail.fitting.crossing import crossed
from vitrail.fitting.distilling import Distilled
from vitrail.fitting.picking import Picked
from vitrail.fitting.planes import Planes
from vitrail.fitting.whole import Small, View, Way, Whole
from vitrail.model import Model, transferred

ROWS = 4000  # of those given that are looked at
MADE = 4000  # rows made to learn from, and as many to judge by
REAL = 3.0  # weight of all rows given, for one of all that are made
HELD = 4  # one row of so many judges; none of fewer than
FEW = 20
CUTS = 8  # of a column of numbers, where fewer are read
MEMBERS = 32  # of the largest committee that is tried, where no bits are given
ANY = 2**62  # bits: no model has more
NEAR = 0.01  # of agreement that the default gives away against the best
WAYS: tuple[Callable[[Whole], Way | None], ...] = (
    Picked.units,
    Picked.networks,
    Distilled.of,
    Planes.of,
)
OF_THE_WHOLE = {  # notes that are not true of the small model
    "train_accuracy", "best_accuracy", "test_accuracy", "test_rows", "seconds", "steps",
    "evaluations", "status",
    "found_by", "mixing",
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """A small model on the curve of agreement against bits."""

    way: str
    members: int  # of a net, which answer together
    inputs: int  # bits of a row that it reads
    bits: int  # of all nets
    agreement: float  # share of rows answered as by the whole model
    accuracy: float | None  # on rows with labels, where some were given


def compress(model: Model, rows: Any, labels: Any = None, *, bits: int | None = None) -> Model:
    """A small model that says nearly what the model says, in at most `bits` bits.

    Args:
        model: A model of many networks, as the default predictor makes it.
        rows: A table like that of training, with or without labels; training rows will do.
        labels: Of these rows, to measure accuracy with; the choice does not look at them.
        bits: The most weights in all; None is the smallest model that agrees with the given one as
            often as the best that is tried, but for one row in a hundred.

    Returns:
        The small model. Its record says under "compressed" how agreement grows with bits.

    Examples:
        >>> from vitrail import BinaryNetClassifier
        >>> rows, labels = [[0, 1], [1, 0]] * 5, ["no", "yes"] * 5
        >>> model = BinaryNetClassifier(random_state=0).fit(rows, labels).model_
        >>> compress(model, rows).networks.numel() < model.networks.numel()
        True
    """
    check_made(model, "answers_of", "`load_model` or `BinaryNetClassifier.fit(…).model_`")
    if len(model.networks) < 2:
        raise ValueError(
            "expected a model of many networks, got one that answers with a single network; fit it "
            "with predictor='posterior'"
        )
    given = model.inputs(rows)
    if not len(given):
        raise ValueError("got no rows to compress by; give some that are like those of training")
    truth = None if labels is None else torch.from_numpy(model.labels.encode(np.asarray(labels)))
    if truth is not None and len(truth) != len(given):
        raise ValueError(f"expected one label for each of {len(given)} rows, got {len(truth)}")
    if bits is not None:
        checked_count("bits", bits, 1)
    tried = Compression(model, given, truth)
    curve = tried.curve(bits)
    if not curve:
        raise ValueError(
            f"{bits} bits are too few: the smallest model that is tried has {tried.least}; "
            "give as many"
        )
    chosen, one = best_of(curve, 0.0 if bits is not None else NEAR)
    notes = {
        "networks": len(model.networks),
        "bits_of_all": model.networks.numel(),
        "chosen": vars(chosen),
        "curve": [vars(point) for point, _ in curve],
    }
    record = {name: value for name, value in model.record.items() if name not in OF_THE_WHOLE}
    return replace(tried.made(one), record={**record, "compressed": notes})


def best_of(curve: Sequence[tuple[Size, Tried]], near: float) -> tuple[Size, Tried]:
    """The smallest that agrees as often as the best, but for a share of the rows."""
    enough = max(point.agreement for point, _ in curve) - near
    return next(one for one in curve if one[0].agreement >= enough)


@dataclass(frozen=True)
class Tried:
    """How a small model was made, so that it can be made again of more rows."""

    view: int
    way: int
    size: Any


class Compression:
    """All small models of a model, tried on some of the rows given and judged on others."""

    def __init__(self, model: Model, given: Tensor, truth: Tensor | None = None) -> None:
        self.model, self.given, self.truth = model, given, truth
        self.known = given[:: -(-len(given) // ROWS)]
        held = torch.zeros(len(self.known), dtype=torch.bool)
        held[HELD - 1 :: HELD] = len(self.known) >= FEW
        self.judge = _Judge(model, *_with_made(model, self.known[held], self.known, seed=1))
        learned = self.known[~held]
        self.some = _Ways(Whole(model, *_with_made(model, learned, learned, seed=0)))

    @cached_property
    def all(self) -> _Ways:
        """Ways that learn from all rows."""
        return _Ways(Whole(self.model, *_with_made(self.model, self.known, self.known, seed=0)))

    def curve(self, bits: int | None = None) -> list[tuple[Size, Tried]]:
        """What was tried, by bits: many sizes, or the largest of every way within so many bits."""
        nets = self.model.networks.shape[1]
        most = MEMBERS * (self.model.program.num_inputs + 1) * nets
        found = [
            (self.measured(one), one)
            for one, way in self.some
            for size in (way.sizes(most) if bits is None else way.largest(bits))
            for one in [replace(one, size=size)]
        ]
        return sorted(found, key=lambda point: point[0].bits)

    @property
    def least(self) -> int:
        """Bits of the smallest model."""
        return min(way.cost(size) for _, way in self.some for size in way.sizes(ANY)[:1])

    def measured(self, tried: Tried) -> Size:
        """A model that learned from some rows, judged by the others."""
        way = self.some[tried]
        small, right = way.made(tried.size), None
        if self.truth is not None:
            said = small.model.answers_of(self.given[:, small.view.left]).numbers
            right = float((said == self.truth).double().mean())
        agreement = self.judge.heard(small)
        networks = small.model.networks
        reads = len(small.view.left)
        return Size(way.name, len(networks), reads, networks.numel(), agreement, right)

    def made(self, tried: Tried) -> Model:
        """The same model, but of all rows."""
        small, rows = self.all[tried].made(tried.size), self.judge.rows
        before, after = (
            self.model.answers_of(rows).sureness,
            small.model.answers_of(rows[:, small.view.left]).sureness,
        )
        return replace(small.model, thresholds=transferred(self.model.thresholds, before, after))


class _Ways:
    """All ways to make small models of what a whole one says on rows, each begun once."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.views = whole, View.all(whole.model, CUTS)
        self.found: dict[tuple[int, int], Way | None] = {}

    def __iter__(self) -> Iterator[tuple[Tried, Way]]:
        for view in range(len(self.views)):
            for number in range(len(WAYS)):
                way = self._begun(view, number)
                if way is not None:
                    yield Tried(view, number, None), way

    def __getitem__(self, tried: Tried) -> Way:
        way = self._begun(tried.view, tried.way)
        assert way is not None
        return way

    def _begun(self, view: int, number: int) -> Way | None:
        if (view, number) not in self.found:
            self.found[view, number] = WAYS[number](self.whole.through(self.views[view]))
        return self.found[view, number]


class _Judge:
    """How often small models agree with a model, on rows that they did not learn from."""

    def __init__(self, model: Model, rows: Tensor, weight: Tensor) -> None:
        self.rows, self.weight = rows, weight / weight.sum()
        self.numbers = model.answers_of(rows).numbers

    def heard(self, small: Small) -> float:
        said = small.model.answers_of(self.rows[:, small.view.left]).numbers
        return float(self.weight @ (said == self.numbers).double())


def _with_made(model: Model, rows: Tensor, parents: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Rows and others made of their parents, with their weights."""
    weight = torch.ones(len(rows) + MADE, dtype=torch.float64)
    weight[: len(rows)] = REAL * MADE / max(1, len(rows))
    return torch.cat([rows, crossed(parents, model.encoder.spans, MADE, seed)]), weight
