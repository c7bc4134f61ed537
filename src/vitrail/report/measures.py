"""The numbers of a report on a model, measured on rows with labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from vitrail.draws import random_order
from vitrail.model import Explanation, Model, explain
from vitrail.model.explanation import LEAST_PAIRS, column_bits
from vitrail.model.voting import ONE, class_scores
from vitrail.scores import area_under_curve, calibration_error, coverage, log_loss, reliability
from vitrail.tables.bits import BitColumns

SHOWN_ROWS = 8  # hardest rows
SHOWN_CELLS = 6  # per row
SHOWN_COLUMNS = 12
WORK = 3e7  # evaluations of a net on a row: a second or two
LEAST_ROWS = 50
SHUFFLES = 3  # of a column
UNCLIPPED = 2**16  # margin that no pixel reaches
EXPLAINED_ROWS = 32  # in addition to those shown, to select the columns with curves
EXPLAINED_WORK = 5e10  # weights read for reasons: a few seconds in packed words


@dataclass(frozen=True)
class ShownRow:
    """A row of the page: one of the hardest."""

    place: str  # in its file
    label: str
    answer: str
    probability: float  # of the label
    reasons: str  # the columns that moved the log-odds most
    against: float  # share of votes against the answer
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """Permutation importance of a column: the accuracy lost when its values are shuffled."""

    name: str
    loss: float
    error: float  # standard error of the loss


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
    encoder, shape = model.encoder, _image_shape(model)
    bits = isinstance(encoder, BitColumns)
    names = () if bits else tuple(code.name for code in encoder.columns)[:SHOWN_CELLS]

    share = np.bincount(truth, minlength=model.num_classes) / len(truth)
    decisions = model.decisions_of(inputs)
    positive = range(1, 2) if model.num_classes == 2 else np.flatnonzero(share)
    areas = [area_under_curve(decisions[:, one], truth == one) for one in positive]
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
        columns=() if shape else _columns(model, inputs, truth, seed),
        picture=_picture(model, inputs[some], shape) if shape else None,
        cell_names=names,
        hardest=tuple(rows),
        explanation=explanation,
    )


def _error(right: int, rows: int) -> float:
    """Standard error of an accuracy, with two more rows right and two more wrong: never 0."""
    share = (right + 2) / (rows + 4)
    return math.sqrt(share * (1 - share) / (rows + 4))


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


def _picture(model: Model, rows: torch.Tensor, shape: tuple[int, int]) -> np.ndarray:
    """Share of rows whose score of a class a pixel raises, minus that it lowers, (C, *shape)."""
    low = -1 if model.coding == "bipolar" else 0
    unclipped = replace(model, clip=UNCLIPPED)
    found = np.zeros((len(model.encoder.bit_names), model.num_classes))
    for bit, effect in enumerate(found):
        both = torch.cat([rows, rows])
        both[: len(rows), bit], both[len(rows) :, bit] = 1, low
        margins = torch.cat([score for score, _ in unclipped.tallies(both)])
        on, off = class_scores(margins, model.num_classes, model.scheme).chunk(2)
        effect[:] = (on - off).sign().double().mean(0)
    return found.T.reshape(model.num_classes, -1, *shape).mean(1)


def _columns(
    model: Model, inputs: torch.Tensor, truth: np.ndarray, seed: int
) -> tuple[Column, ...]:
    """The columns of highest importance, on as many rows as the work allows."""
    spans = column_bits(model)
    cost = SHUFFLES * len(spans) * model.networks.shape[:2].numel()
    most = int(max(LEAST_ROWS, WORK // max(1, cost)))
    rows = np.sort(random_order(seed, len(inputs))[:most])
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
        found.append(Column(name, float(lost.mean()), error))
    return tuple(sorted(found, key=lambda one: -one.loss)[:SHOWN_COLUMNS])
