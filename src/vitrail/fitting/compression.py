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
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail.data.checks import check_made, checked_count
from vitrail.data.draws import Purpose, random_words
from vitrail.data.encoders import TableEncoder
from vitrail.fitting.distilling import Distilled
from vitrail.fitting.picking import Picked
from vitrail.fitting.planes import Planes
from vitrail.fitting.whole import View, Way, Whole
from vitrail.model import Model

ROWS = 4000  # of those given that are looked at
MADE = 4000  # rows made to learn from, and as many to judge by
REAL = 3.0  # weight of all rows given, for one of all that are made
HELD = 4  # one row of so many judges; none of fewer than
FEW = 20
CROSSED = 0.3  # chance of a column to come from another row
CUTS = 8  # of a column of numbers, where fewer are read
MEMBERS = 32  # of the largest committee that is tried, where no bits are given
NEAR = 0.01  # of agreement that the default gives away against the best
WAYS: tuple[Callable[[Whole], Way | None], ...] = (
    Picked.units,
    Picked.networks,
    Distilled.of,
    Planes.of,
)
OF_THE_WHOLE = {  # notes that are not true of the small model
    "train_accuracy", "test_accuracy", "test_rows", "seconds", "steps", "evaluations", "status",
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
    unit = model.program.num_inputs + 1 if model.program.packable else model.program.num_bits
    least = unit * model.networks.shape[1]
    if bits is not None and checked_count("bits", bits, 1) < least:
        raise ValueError(
            f"{bits} bits are too few: a committee of one member a net has {least}; give as many"
        )
    known = given[:: -(-len(given) // ROWS)]
    held = torch.zeros(len(known), dtype=torch.bool)
    held[HELD - 1 :: HELD] = len(known) >= FEW
    judge = _Judge(model, *_with_made(model, known[held], known, seed=1))
    some = Whole(model, *_with_made(model, known[~held], known[~held], seed=0))
    curve: list[tuple[Size, _Tried]] = []
    for tried, way in _ways(some):
        sizes = way.sizes(bits or MEMBERS * least)
        for size in sizes if bits is None else sizes[-1:]:
            small, right = way.made(size), None
            if truth is not None:
                said = small.answers_of(given[:, tried.view.left]).numbers
                right = float((said == truth).double().mean())
            agreement = judge.heard(small, tried.view)
            members, reads = len(small.networks), len(tried.view.left)
            point = Size(way.name, members, reads, small.networks.numel(), agreement, right)
            curve.append((point, replace(tried, size=size)))
    curve.sort(key=lambda one: one[0].bits)
    best = max(point.agreement for point, _ in curve)
    near = best if bits is not None else best - NEAR
    chosen, tried = next(one for one in curve if one[0].agreement >= near)
    small = tried.made(Whole(model, *_with_made(model, known, known, seed=0)))
    notes = {
        "networks": len(model.networks),
        "bits_of_all": model.networks.numel(),
        "chosen": vars(chosen),
        "curve": [vars(point) for point, _ in curve],
    }
    record = {name: value for name, value in model.record.items() if name not in OF_THE_WHOLE}
    return replace(small, record={**record, "compressed": notes})


@dataclass(frozen=True)
class _Tried:
    """How a small model was made, so that it can be made again of more rows."""

    view: View
    way: Callable[[Whole], Way | None]
    size: int = 0

    def made(self, whole: Whole) -> Model:
        way = self.way(whole.through(self.view))
        assert way is not None
        return way.made(self.size)


def _ways(whole: Whole) -> Iterator[tuple[_Tried, Way]]:
    """All that may be tried."""
    for view in View.all(whole.model, CUTS):
        for make in WAYS:
            way = make(whole.through(view))
            if way is not None:
                yield _Tried(view, make), way


class _Judge:
    """How often small models agree with a model, on rows that they did not learn from."""

    def __init__(self, model: Model, rows: Tensor, weight: Tensor) -> None:
        self.rows, self.weight = rows, weight / weight.sum()
        self.numbers = model.answers_of(rows).numbers

    def heard(self, small: Model, view: View) -> float:
        said = small.answers_of(self.rows[:, view.left]).numbers
        return float(self.weight @ (said == self.numbers).double())


def _with_made(model: Model, rows: Tensor, parents: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Rows and others made of their parents, with their weights."""
    weight = torch.ones(len(rows) + MADE, dtype=torch.float64)
    weight[: len(rows)] = REAL * MADE / max(1, len(rows))
    return torch.cat([rows, crossed(parents, columns_of(model), MADE, seed)]), weight


def columns_of(model: Model) -> list[slice]:
    """The bits of each column of the table; constants belong to none."""
    if not isinstance(model.encoder, TableEncoder):
        return [model.encoder.bits_of(place) for place in range(len(model.encoder.names))]
    found, first = [], 0
    for code in model.encoder.columns:
        found.append(slice(first, first := first + len(code.bit_names)))
    return found


def crossed(rows: Tensor, columns: Sequence[slice], count: int, seed: int) -> Tensor:
    """`count` rows, each of one of `rows` with some columns of another, (count, I)."""
    words = random_words(seed, Purpose.ROWS, count * (2 + len(columns))).reshape(count, -1)
    first, second = (torch.from_numpy((words[:, k] % len(rows)).astype(np.int64)) for k in (0, 1))
    taken = torch.from_numpy(words[:, 2:] < np.uint64(CROSSED * 2**64))
    made, other = rows[first].clone(), rows[second]
    for number, column in enumerate(columns):
        made[:, column] = torch.where(taken[:, number, None], other[:, column], made[:, column])
    return made
