"""The numbers of a report on a model, measured on rows with labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from vitrail.draws import random_order
from vitrail.model import Explanation, Model, explain
from vitrail.model.explanation import LEAST_PAIRS
from vitrail.model.importance import column_bits
from vitrail.model.model import outputs_of
from vitrail.model.voting import ONE, raw_margins
from vitrail.scores import area_under_curve, calibration_error, coverage, log_loss, reliability
from vitrail.tables.bits import BitColumns

SHOWN_ROWS = 8  # hardest rows
SHOWN_CELLS = 6  # per row
SHOWN_COLUMNS = 12
SHOWN_BITS = 3  # per column
WORK = 3e7  # evaluations of a net on a row per part of the report: a second or two
LEAST_ROWS = 50
EXPLAINED_ROWS = 32  # besides those shown, to find the columns whose curves are drawn
EXPLAINED_WORK = 5e10  # weights read for reasons: a few seconds in packed words
SHUFFLES = 3  # of a column
MOST_NETWORKS = 32  # networks whose response to a bit is measured


@dataclass(frozen=True)
class ShownRow:
    """A row worth looking at."""

    place: str  # in its file
    label: str
    answer: str
    probability: float  # of the label
    reasons: str  # the columns that moved the log-odds most
    against: float  # share of votes against the answer
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Bit:
    """The class that one bit of a column favours."""

    name: str
    favours: str  # a class
    agreement: float  # share of networks that agree, from ½


@dataclass(frozen=True)
class Column:
    """Permutation importance of a column: the accuracy lost when its values are shuffled."""

    name: str
    loss: float
    error: float  # standard error of the loss
    bits: tuple[Bit, ...]


@dataclass(frozen=True)
class Measures:
    """All numbers of a report."""

    rows: int
    accuracy: float
    error: float  # standard error of the accuracy
    auc: float  # of two classes, or the mean of each class against the rest; NaN for one class
    log_loss: float
    base_accuracy: float  # of answering the most frequent class
    base_log_loss: float  # of giving every class its share of these rows
    classes: tuple[str, ...]
    confusion: np.ndarray  # (C, C): label, answer
    reliability: tuple[tuple[float, float, int], ...]  # confidence, share right, rows
    calibration_error: float
    coverage: tuple[tuple[float, float], ...]  # share answered, accuracy there
    columns: tuple[Column, ...]
    picture: np.ndarray | None  # (C, height, width) from −1 to 1, for images
    cell_names: tuple[str, ...]
    hardest: tuple[ShownRow, ...]
    explanation: Explanation | None  # None for images


def measure(model: Model, table: Any, labels: np.ndarray, seed: int = 0) -> Measures:
    """Measure a model on a table's rows, preferably rows that it was not trained on."""
    if not len(labels):
        raise ValueError("expected rows with labels, got none; give a table that has some")
    truth = model.labels.encode(labels, table.place)
    inputs = model.inputs(table)
    answers = model.answers_of(inputs)
    numbers, probabilities = answers.numbers.numpy(), answers.probabilities.numpy() / ONE
    right = numbers == truth
    confusion = np.zeros((model.num_classes, model.num_classes), np.int64)
    np.add.at(confusion, (truth, numbers), 1)
    confidence = probabilities[np.arange(len(truth)), numbers]
    own = probabilities[np.arange(len(truth)), truth]
    against = answers.against.numpy() / ONE
    names = tuple(_cell_names(model))

    share = np.bincount(truth, minlength=model.num_classes) / len(truth)
    decisions = model.decisions_of(inputs)
    positive = range(1, 2) if model.num_classes == 2 else np.flatnonzero(share)
    areas = [area_under_curve(decisions[:, one], truth == one) for one in positive]
    shape = _image_shape(model)
    hardest = np.argsort(own, kind="stable")[:SHOWN_ROWS]
    some = random_order(seed, len(truth))[:EXPLAINED_ROWS]
    explained = np.array([*dict.fromkeys([*hardest, *some])])[: _explainable(model)]
    explanation = None
    if not shape and len(explained):
        explanation = explain(model, table.take(explained), background=table)
    place_of = {place: row for row, place in enumerate(explained.tolist())}

    cells = table.take(hardest)
    written = [[_text(value) for value in cells[name]] for name in names]
    rows = [
        ShownRow(
            table.place(int(row)),
            str(labels[row]),
            str(model.labels.classes[numbers[row]]),
            float(own[row]),
            explanation.words(place_of[row]) if explanation and row in place_of else "",
            float(against[row]),
            tuple(column[i] for column in written),
        )
        for i, row in enumerate(hardest.tolist())
    ]
    accuracy = float(right.mean())
    agreement = _agreement(model, inputs, seed)
    return Measures(
        rows=len(truth),
        accuracy=accuracy,
        error=_error(int(right.sum()), len(truth)),
        auc=float(np.mean(areas)),
        log_loss=log_loss(own),
        base_accuracy=float(share.max()),
        base_log_loss=log_loss(share[truth]),
        classes=tuple(str(label) for label in model.labels.classes),
        confusion=confusion,
        reliability=tuple(reliability(confidence, right)),
        calibration_error=calibration_error(confidence, right),
        coverage=tuple((n / len(truth), share) for n, share in coverage(confidence, right, 20)),
        columns=() if shape else _columns(model, inputs, truth, agreement, seed),
        picture=agreement.T.reshape(model.num_classes, -1, *shape).mean(1) if shape else None,
        cell_names=names,
        hardest=tuple(rows),
        explanation=explanation,
    )


def _error(right: int, rows: int) -> float:
    """Standard error of an accuracy, with two more rows right and two more wrong: never 0."""
    share = (right + 2) / (rows + 4)
    return math.sqrt(share * (1 - share) / (rows + 4))


def _cell_names(model: Model) -> list[str]:
    """The columns whose cells are shown with a row."""
    if isinstance(model.encoder, BitColumns):
        return []
    return [code.name for code in model.encoder.columns][:SHOWN_CELLS]


def _text(value: Any) -> str:
    if value is None or value != value:  # NaN
        return ""
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def _image_shape(model: Model) -> tuple[int, int] | None:
    """Height and width, where the inputs are an image's pixels."""
    shape = model.image_shape if isinstance(model.encoder, BitColumns) else None
    return shape if shape and math.prod(shape) == len(model.encoder.names) else None


def _explainable(model: Model) -> int:
    """How many rows can be explained in a few seconds."""
    return int(
        EXPLAINED_WORK // (2 * LEAST_PAIRS * len(column_bits(model)) * model.networks.numel())
    )


def _some(inputs: torch.Tensor, cost: float, seed: int) -> np.ndarray:
    """As many rows as the work allows, drawn by the seed."""
    most = int(min(len(inputs), max(LEAST_ROWS, WORK // max(1.0, cost))))
    return np.sort(random_order(seed, len(inputs))[:most])


def _agreement(model: Model, inputs: torch.Tensor, seed: int) -> np.ndarray:
    """Classes that networks associate with each bit, (bits, C): −1 all against, 1 all for.

    A network associates a bit with a class where setting it, on the rows given, raises the lead of
    the class, on average.
    """
    networks = model.networks[:MOST_NETWORKS]
    bits = len(model.encoder.bit_names)
    cost = 2.0 * bits * len(networks) * networks.shape[1]
    rows = inputs[_some(inputs, cost * 4, seed)[:64]]
    low = -1 if model.coding == "bipolar" else 0
    found = np.zeros((bits, model.num_classes))
    for bit in range(bits):
        both = torch.cat([rows, rows])
        both[: len(rows), bit], both[len(rows) :, bit] = 1, low
        for_class = torch.cat([_for_classes(model, part) for part in outputs_of(
            model.program, networks, both
        )])  # fmt: skip
        effect = (for_class[: len(rows)] - for_class[len(rows) :]).mean(0)  # (K, C)
        found[bit] = effect.sign().mean(0).numpy()
    return found


def _for_classes(model: Model, outputs: torch.Tensor) -> torch.Tensor:
    """Leads of each class: outputs (rows, K, N, O) → (rows, K, C)."""
    raw = raw_margins(outputs).double()
    if model.num_classes == 2:
        for_class = raw[:, :, 0, 0]
        return torch.stack([-for_class, for_class], -1)
    if model.scheme == "one-vs-rest":
        return raw[..., 0]
    if model.scheme == "argmax":
        return raw[:, :, 0]
    first, second = torch.triu_indices(model.num_classes, model.num_classes, 1)
    for_class = raw.new_zeros(*raw.shape[:2], model.num_classes)
    for_class.index_add_(2, second, raw[..., 0])
    return for_class.index_add_(2, first, -raw[..., 0])


def _columns(
    model: Model, inputs: torch.Tensor, truth: np.ndarray, agreement: np.ndarray, seed: int
) -> tuple[Column, ...]:
    """The columns of highest importance, with the bits that networks agree on most."""
    spans = column_bits(model)
    cost = float(SHUFFLES * len(spans) * model.networks.shape[0] * model.networks.shape[1])
    rows = _some(inputs, cost, seed)
    kept, labels = inputs[rows], truth[rows]

    def right(changed: torch.Tensor) -> np.ndarray:
        return (model.answers_of(changed).numbers.numpy() == labels).astype(float)

    baseline = right(kept)
    orders = [random_order(seed + 1 + turn, len(rows)) for turn in range(SHUFFLES)]
    found = []
    for name, span in spans:
        lost = np.zeros(len(rows))
        for order in orders:
            changed = kept.clone()
            changed[:, span] = kept[torch.from_numpy(order)][:, span]
            lost += (baseline - right(changed)) / SHUFFLES
        error = float(lost.std() / math.sqrt(max(1, len(rows) - 1)))
        found.append(Column(name, float(lost.mean()), error, _bits(model, agreement, span)))
    return tuple(sorted(found, key=lambda one: -one.loss)[:SHOWN_COLUMNS])


def _bits(model: Model, agreement: np.ndarray, span: slice) -> tuple[Bit, ...]:
    """The bits of a column that networks agree on most."""
    mine, names = agreement[span], model.encoder.bit_names[span]
    strongest = np.argsort(-mine.max(1), kind="stable")[:SHOWN_BITS]
    return tuple(
        Bit(
            names[bit],
            str(model.labels.classes[int(mine[bit].argmax())]),
            float(1 + mine[bit].max()) / 2,
        )
        for bit in strongest
        if mine[bit].max() > 0
    )
