"""A small model that answers as many networks do: what goes onto a device.

Several compressors are tried: committees of the teacher's own hidden units or networks
(`committee`), one net that learns the teacher's outputs (`distillation`), and linear models
(`quantised_linear`), reading all bits of rows or fewer thresholds of its numbers. They learn from
some of the rows given, and from rows made of these: two rows are crossed, every column being taken
from the second with probability 0.3. The compressor is chosen whose student agrees with the teacher
on other rows, and then learns from all of them. No labels are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail.checks import check_made, checked_count
from vitrail.learning.committee import CommitteeCompressor
from vitrail.learning.distillation import Distillation
from vitrail.learning.examples import crossed
from vitrail.learning.quantised_linear import QuantisedLinear
from vitrail.learning.teacher import Compressor, Student, Teacher, View
from vitrail.model import Model
from vitrail.model.model import transferred

MAX_ROWS = 4000  # of those given, at most, that are used
SYNTHETIC_ROWS = 4000  # crossed rows to learn from, and as many to measure agreement on
REAL_WEIGHT = 3.0  # weight of all rows given, relative to all crossed rows
HELD_OUT_STEP = 4  # every fourth row is held out to measure agreement
MIN_ROWS = 20  # fewer say nothing about agreement on others
COARSE_CUTS = 8  # thresholds per column of numbers in the coarser view
MAX_MEMBERS = 32  # of the largest committee tried where `bits` is None
NO_LIMIT = 2**62  # bits, more than any model has
TOLERANCE = 0.01  # agreement that the default gives up for a smaller model
COMPRESSORS: tuple[Callable[[Teacher], Compressor | None], ...] = (
    CommitteeCompressor.units,
    CommitteeCompressor.networks,
    Distillation.of,
    QuantisedLinear.of,
)
TEACHER_RECORD = {  # entries of the record that do not hold for the student
    "train_accuracy", "best_accuracy", "test_accuracy", "test_rows", "seconds", "steps",
    "evaluations", "status",
    "found_by", "mixing",
}  # fmt: skip


@dataclass(frozen=True)
class CurvePoint:
    """A student on the curve of agreement against bits; the fields are keys of the record."""

    way: str  # name of the compressor
    members: int  # networks per net, which vote together
    inputs: int  # number of bits it reads per row
    bits: int  # of all nets
    agreement: float  # share of rows with the same answer as the teacher
    accuracy: float | None  # None without labels


def compress(model: Model, rows: Any, labels: Any = None, *, bits: int | None = None) -> Model:
    """A small model that answers nearly as the model does, in at most `bits` bits.

    Args:
        model: A model of many networks, as the default predictor returns it.
        rows: A table like the training table, or the training table itself.
        labels: Labels of these rows, to measure accuracy; they do not affect the choice.
        bits: The maximum number of weights; None is the smallest model whose agreement with the
            given one is within 0.01 of the best.

    Returns:
        The small model. Its record lists agreement against bits under "compressed".

    Examples:
        >>> from vitrail import BinaryNetClassifier
        >>> rows, labels = [[0, 1], [1, 0]] * 10, ["no", "yes"] * 10
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
    if len(given) < MIN_ROWS:
        raise ValueError(
            f"expected at least {MIN_ROWS} rows like those of training, to learn from and to "
            f"measure agreement on, got {len(given)}; give more"
        )
    truth = None if labels is None else torch.from_numpy(model.labels.encode(np.asarray(labels)))
    if truth is not None and len(truth) != len(given):
        raise ValueError(f"expected one label for each of {len(given)} rows, got {len(truth)}")
    if bits is not None:
        checked_count("bits", bits, 1)
    compression = Compression(model, given, truth)
    curve = compression.curve(bits)
    if not curve:
        raise ValueError(
            f"{bits} bits are too few: the smallest model has {compression.least}; "
            "give at least as many"
        )
    chosen, candidate = best_of(curve, 0.0 if bits is not None else TOLERANCE)
    notes = {
        "networks": len(model.networks),
        "bits_of_all": model.networks.numel(),
        "chosen": vars(chosen),
        "curve": [vars(point) for point, _ in curve],
    }
    record = {name: value for name, value in model.record.items() if name not in TEACHER_RECORD}
    return replace(compression.build(candidate), record={**record, "compressed": notes})


def best_of(
    curve: Sequence[tuple[CurvePoint, Candidate]], tolerance: float
) -> tuple[CurvePoint, Candidate]:
    """The smallest student whose agreement is within `tolerance` of the best."""
    enough = max(point.agreement for point, _ in curve) - tolerance
    return next(one for one in curve if one[0].agreement >= enough)


@dataclass(frozen=True)
class Candidate:
    """How a student was built, so that it can be built again from more rows."""

    view: int
    compressor: int
    size: Any


class Compression:
    """All students of a model, trained on some of the rows given and compared with it on others."""

    def __init__(self, model: Model, given: Tensor, truth: Tensor | None = None) -> None:
        self.model, self.given, self.truth = model, given, truth
        self.known = given[:: -(-len(given) // MAX_ROWS)]
        held = torch.zeros(len(self.known), dtype=torch.bool)
        held[HELD_OUT_STEP - 1 :: HELD_OUT_STEP] = True
        self.judge = _Judge(model, *_with_synthetic(model, self.known[held], self.known, seed=1))
        learned = self.known[~held]
        self.some = _Compressors(Teacher(model, *_with_synthetic(model, learned, learned, seed=0)))

    @cached_property
    def all(self) -> _Compressors:
        """Compressors that learn from all rows."""
        return _Compressors(
            Teacher(self.model, *_with_synthetic(self.model, self.known, self.known, seed=0))
        )

    def curve(self, bits: int | None = None) -> list[tuple[CurvePoint, Candidate]]:
        """Students by bits: many sizes, or the largest of every compressor within `bits`."""
        unit = (self.model.program.num_inputs + 1) * self.model.networks.shape[1]
        most = MAX_MEMBERS * max(unit, self.least)  # without units the members are networks
        found = [
            (self.measured(one), one)
            for one, compressor in self.some
            for size in (compressor.sizes(most) if bits is None else compressor.largest(bits))
            for one in [replace(one, size=size)]
        ]
        return sorted(found, key=lambda point: point[0].bits)

    @property
    def least(self) -> int:
        """Bits of the smallest student."""
        return min(
            compressor.cost(size)
            for _, compressor in self.some
            for size in compressor.sizes(NO_LIMIT)[:1]
        )

    def measured(self, candidate: Candidate) -> CurvePoint:
        """A student of some rows, measured on the others."""
        compressor = self.some[candidate]
        student, accuracy = compressor.build(candidate.size), None
        if self.truth is not None:
            numbers = student.model.answers_of(self.given[:, student.view.kept]).numbers
            accuracy = float((numbers == self.truth).double().mean())
        agreement = self.judge.agreement(student)
        networks = student.model.networks
        inputs = len(student.view.kept)
        name, members, bits = compressor.name, len(networks), networks.numel()
        return CurvePoint(name, members, inputs, bits, agreement, accuracy)

    def build(self, candidate: Candidate) -> Model:
        """The same student, built from all rows, with thresholds that leave out as many rows."""
        student, rows = self.all[candidate].build(candidate.size), self.judge.rows
        before = self.model.answers_of(rows).confidence
        after = student.model.answers_of(rows[:, student.view.kept]).confidence
        return replace(student.model, thresholds=transferred(self.model.thresholds, before, after))


class _Compressors:
    """All compressors of a teacher in every view, each started once."""

    def __init__(self, teacher: Teacher) -> None:
        self.teacher, self.views = teacher, View.all(teacher.model, COARSE_CUTS)
        self.started: dict[tuple[int, int], Compressor | None] = {}

    def __iter__(self) -> Iterator[tuple[Candidate, Compressor]]:
        for view in range(len(self.views)):
            for number in range(len(COMPRESSORS)):
                compressor = self._started(view, number)
                if compressor is not None:
                    yield Candidate(view, number, None), compressor

    def __getitem__(self, candidate: Candidate) -> Compressor:
        compressor = self._started(candidate.view, candidate.compressor)
        assert compressor is not None
        return compressor

    def _started(self, view: int, number: int) -> Compressor | None:
        if (view, number) not in self.started:
            self.started[view, number] = COMPRESSORS[number](self.teacher.through(self.views[view]))
        return self.started[view, number]


class _Judge:
    """Agreement of students with a model, on rows that they did not learn from."""

    def __init__(self, model: Model, rows: Tensor, weight: Tensor) -> None:
        self.rows, self.weight = rows, weight / weight.sum()
        self.numbers = model.answers_of(rows).numbers

    def agreement(self, student: Student) -> float:
        numbers = student.model.answers_of(self.rows[:, student.view.kept]).numbers
        return float(self.weight @ (numbers == self.numbers).double())


def _with_synthetic(
    model: Model, rows: Tensor, parents: Tensor, seed: int
) -> tuple[Tensor, Tensor]:
    """Rows and crossed rows of the parents, with their weights."""
    weight = torch.ones(len(rows) + SYNTHETIC_ROWS, dtype=torch.float64)
    weight[: len(rows)] = REAL_WEIGHT * SYNTHETIC_ROWS / len(rows)
    return torch.cat([rows, crossed(parents, model.encoder.spans, SYNTHETIC_ROWS, seed)]), weight
