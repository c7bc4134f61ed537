"""A small model that agrees with many networks, for devices.

Several compressors are tried: committees of the teacher's own networks (`teacher`), one net that
learns the teacher's outputs (`distillation`), and linear models (`quantised_linear`). They learn
from some of the rows given, and from crossed rows: pairs of these, every column being taken from
the second with probability 0.3. The compressor is chosen whose student agrees with the teacher on
other crossed rows, and then learns from all rows. No labels are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from vitrail.checks import check_made, checked_count
from vitrail.export.flash import estimated, flash_bytes
from vitrail.export.plan import ExportError
from vitrail.learning.distillation import Distillation
from vitrail.learning.examples import crossed
from vitrail.learning.quantised_linear import QuantisedLinear
from vitrail.learning.teacher import CommitteeCompressor, Compressor, Teacher
from vitrail.model import Model
from vitrail.model.model import transferred

T = TypeVar("T")
MAX_ROWS = 4000  # of those given, at most, that are used
CROSSED_ROWS = 4000  # crossed rows to learn from, and as many to measure agreement on
REAL_WEIGHT = 3.0  # weight of all rows given, relative to all crossed rows
HELD_OUT_STEP = 4  # every fourth row is a parent of crossed rows that measure agreement alone
MIN_ROWS = 20  # fewer do not predict agreement on others
MAX_MEMBERS = 32  # hidden units per net of the largest student tried where `bits` is None
NO_LIMIT = 2**62  # bits, more than any model has
NEAR = 1.1  # times the flash allowed: estimates beyond are not compiled
SMALLEST = 3  # students compiled at most, where none fits, to find the smallest size
TOLERANCE = 0.01  # agreement that the default gives up for a smaller model
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
    flash: int | None  # estimated bytes on a Cortex-M0+; None where it cannot be exported to C
    agreement: float  # share of crossed rows with the same answer as the teacher
    accuracy: float | None  # None without labels


def compress(
    model: Model,
    rows: Any,
    labels: Any = None,
    *,
    bits: int | None = None,
    flash: int | None = None,
) -> Model:
    """A small model that agrees with the model, in at most `bits` bits or `flash` bytes.

    Args:
        model: A model of many networks, as the default predictor returns it.
        rows: A table like the training table, or the training table itself.
        labels: Labels of these rows, to measure accuracy; they do not affect the choice.
        bits: The maximum number of weights; None is the smallest model whose agreement with the
            given one is within 0.01 of the best.
        flash: The maximum bytes of code and constants that `predict` takes on a Cortex-M0+, encoder
            included; linked where arm-none-eabi-gcc is installed, estimated otherwise. The model is
            the one that agrees best.

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
    if bits is not None and flash is not None:
        raise ValueError("expected bits or flash, got both; leave one out")
    for name, limit in (("bits", bits), ("flash", flash)):
        if limit is not None:
            checked_count(name, limit, 1)
    compression = Compression(model, given, truth)
    if flash is None:
        curve = compression.curve(bits)
        if not curve:
            raise ValueError(
                f"{bits} bits are too few: the smallest model has {compression.least}; "
                "give at least as many"
            )
        chosen, candidate = best_of(curve, 0.0 if bits is not None else TOLERANCE)
        small = compression.build(candidate)
    else:
        curve = compression.curve_in_flash(flash)
        chosen, small = compression.best_in_flash(curve, flash)
    notes = {
        "networks": len(model.networks),
        "bits_of_all": model.networks.numel(),
        "chosen": vars(chosen),
        "curve": [vars(point) for point, _ in curve],
    }
    record = {name: value for name, value in model.record.items() if name not in TEACHER_RECORD}
    return replace(small, record={**record, "compressed": notes})


def best_of(
    curve: Sequence[tuple[CurvePoint, Candidate]], tolerance: float
) -> tuple[CurvePoint, Candidate]:
    """The smallest student whose agreement is within `tolerance` of the best."""
    least = max(point.agreement for point, _ in curve) - tolerance
    return next(one for one in curve if one[0].agreement >= least)


def first_within(
    flash: int, candidates: Iterable[T], build: Callable[[T], Model]
) -> tuple[T, Model]:
    """The first of candidates whose model fits into so many bytes of flash, and that model."""
    least = None
    for candidate in candidates:
        model = build(candidate)
        size = flash_bytes(model)
        if size.flash <= flash:
            return candidate, model
        least = size if least is None or size.flash < least.flash else least
    assert least is not None
    about = "has" if least.measured else "has an estimated"
    raise ValueError(
        f"{flash} bytes of flash are too few: the smallest model {about} {least.flash}; "
        "give at least as many"
    )


def flash_or_none(model: Model) -> int | None:
    """Estimated bytes of flash; None where the model cannot be exported to C."""
    try:
        return estimated(model).flash
    except ExportError:
        return None


@dataclass(frozen=True)
class Candidate:
    """How a student was built, so that it can be built again from more rows."""

    way: str  # name of the compressor
    size: Any


class Compression:
    """All students of a model, trained on some of the rows given and compared with it on others."""

    def __init__(self, model: Model, given: Tensor, truth: Tensor | None = None) -> None:
        self.model, self.given, self.truth = model, given, truth
        self.known = given[:: -(-len(given) // MAX_ROWS)]
        # Networks of the teacher have learned the rows given, and agree there more than elsewhere.
        self.held_out = crossed(self.known, model.encoder.spans, CROSSED_ROWS, seed=1)
        self.answers = model.answers_of(self.held_out)
        step = torch.arange(len(self.known)) % HELD_OUT_STEP
        self.compressors = self._compressors(self.known[step < HELD_OUT_STEP - 1])

    def curve(
        self, bits: int | None = None, most: int = NO_LIMIT
    ) -> list[tuple[CurvePoint, Candidate]]:
        """Students by bits: many sizes up to `most`, or the largest of every compressor within
        `bits`."""
        unit = (self.model.program.num_inputs + 1) * self.model.networks.shape[1]
        unit = max(unit, self.least)  # a net may have no units, but networks
        most = min(most, MAX_MEMBERS * unit)
        found = []
        for way, compressor in self.compressors.items():
            for size in compressor.sizes(most) if bits is None else compressor.largest(bits):
                candidate = Candidate(way, size)
                found.append((self.evaluated(candidate), candidate))
        return sorted(found, key=lambda point: point[0].bits)

    def curve_in_flash(self, flash: int) -> list[tuple[CurvePoint, Candidate]]:
        """Students of many sizes, and of each compressor the largest that should fit."""
        curve = self.curve(most=8 * max(flash, self.least))  # a bit is stored in a bit at least
        for way, compressor in self.compressors.items():
            points = [(point.flash or 0, point.bits) for point, one in curve if one.way == way]
            known = {one.size for _, one in curve if one.way == way}
            fits = max((point for point in points if point[0] <= flash), default=None)
            too_large = min((point for point in points if point[0] > flash), default=None)
            if fits is None or too_large is None:
                continue
            share = (flash - fits[0]) / (too_large[0] - fits[0])
            between = int(fits[1] + share * (too_large[1] - fits[1]))
            more = [Candidate(way, size) for size in compressor.largest(between)]
            curve += [(self.evaluated(one), one) for one in more if one.size not in known]
        return sorted(curve, key=lambda point: point[0].bits)

    def best_in_flash(
        self, curve: Sequence[tuple[CurvePoint, Candidate]], flash: int
    ) -> tuple[CurvePoint, Model]:
        """The student that agrees best of those that fit, built from all rows."""
        near = [one for one in curve if (one[0].flash or 0) <= NEAR * flash]
        near.sort(key=lambda one: (-one[0].agreement, one[0].flash or 0))
        smallest = sorted(curve, key=lambda one: one[0].flash or 0)[:SMALLEST]
        order = [*near, *(one for one in smallest if one not in near)]
        (point, _), student = first_within(flash, order, lambda one: self.build(one[1]))
        return point, student

    @property
    def least(self) -> int:
        """Bits of the smallest student."""
        return min(
            compressor.cost(size)
            for compressor in self.compressors.values()
            for size in compressor.sizes(NO_LIMIT)[:1]
        )

    def evaluated(self, candidate: Candidate) -> CurvePoint:
        """A student of some rows, measured on the others."""
        student, accuracy = self.compressors[candidate.way].build(candidate.size), None
        if self.truth is not None:
            accuracy = float((student.answers(self.given) == self.truth).double().mean())
        same = student.answers(self.held_out) == self.answers.numbers
        networks = student.model.networks
        return CurvePoint(
            way=candidate.way,
            members=len(networks),
            inputs=len(student.places),
            bits=networks.numel(),
            flash=flash_or_none(student.model),
            agreement=float(same.double().mean()),
            accuracy=accuracy,
        )

    def build(self, candidate: Candidate) -> Model:
        """The same student, built from all rows, with thresholds that leave out as many rows."""
        student = self._from_all_rows[candidate.way].build(candidate.size)
        confidence = student.model.answers_of(self.held_out[:, student.places]).confidence
        before = self.answers.confidence
        thresholds = transferred(self.model.thresholds, before, confidence)
        return replace(student.model, thresholds=thresholds)

    @cached_property
    def _from_all_rows(self) -> dict[str, Compressor]:
        return self._compressors(self.known)

    def _compressors(self, rows: Tensor) -> dict[str, Compressor]:
        """The compressors that can build students of the model, by name; they learn from rows."""
        weight = torch.ones(len(rows) + CROSSED_ROWS, dtype=torch.float64)
        weight[: len(rows)] = REAL_WEIGHT * CROSSED_ROWS / len(rows)
        new = crossed(rows, self.model.encoder.spans, CROSSED_ROWS, seed=0)
        teacher = Teacher(self.model, torch.cat([rows, new]), weight)
        columns = getattr(self.model.encoder, "columns", ())
        if any(code.direction and not code.both for code in columns):
            return {QuantisedLinear.name: QuantisedLinear(teacher)}  # digits are not monotone alone
        found: list[Compressor] = [CommitteeCompressor(teacher)]
        if teacher.plain and self.model.coding == "binary":
            found.append(Distillation(teacher))
        if teacher.plain:
            found.append(QuantisedLinear(teacher))
        return {compressor.name: compressor for compressor in found}
