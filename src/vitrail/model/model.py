"""A trained network or committee: its bits, encoder and labels, and its predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from vitrail.datasets.dataset import Coding
from vitrail.model import voting
from vitrail.nn import Program
from vitrail.numerics import DEFAULT_MEMORY, chunks
from vitrail.output import atomic_output
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.labels import LabelCoder

PACKED_BYTES = 64  # of a row and a net or an input, with what voting makes of it
MOST_PACKED = 2**31 - 1  # that a score may be in packed prediction
RATES = 100  # steps of the abstention rate for which a model has thresholds
LEAST_HELD_OUT = 100  # rows: a share of 0.3 of them has a standard error of 0.046
ROUNDING = 1e-9  # of shares that are compared


class ModelError(ValueError):
    """A model file cannot be used; the message says why and what to do."""


class Answers(NamedTuple):
    """Answers of a model on rows: class numbers, probabilities in parts of 65535, votes against."""

    numbers: Tensor  # (rows,) int64
    probabilities: Tensor  # (rows, C) int64, probabilities in parts of 65535
    against: Tensor  # (rows,) int64, share of votes against the answer, in parts of 65535

    @property
    def confidence(self) -> Tensor:
        """The probability of the answer, in parts of 65535, (rows,)."""
        return self.probabilities.gather(1, self.numbers[:, None])[:, 0]


class Abstention(NamedTuple):
    """Abstention of a model."""

    threshold: int  # in parts of 65535: those whose answer has a lower probability
    rate: float  # share of held-out rows left out, to the next whole percent


@dataclass(frozen=True, eq=False)
class Model:
    """Networks with encoder, labels and calibration.

    A model has N nets by its scheme: one; with "pairs" one for each pair of classes (i, j), i < j,
    in lexicographic order, whose output is positive for class j; with "one-vs-rest" one per class.
    K networks, each a configuration of all nets, answer together by the rule of
    `vitrail.model.voting`; one for the predictor "best".

    Thresholds are the largest confidences below which at most 0, 1, …, 100 % of held-out rows lie,
    in parts of 65535; empty where too few rows were held out.

    Examples:
        >>> from vitrail import BinaryNetClassifier
        >>> rows, labels = [[0, 1], [1, 0]] * 5, ["no", "yes"] * 5
        >>> model = BinaryNetClassifier(hidden=(), random_state=0).fit(rows, labels).model_
        >>> model.predict([[1, 0]])
        array(['yes'], dtype='<U3')
        >>> model.save("small.safetensors")  # doctest: +SKIP
    """

    encoder: TableEncoder | BitColumns  # how a table becomes bits
    labels: LabelCoder  # names of the classes
    coding: Coding  # how the net reads a bit: "binary" as 0/1, "bipolar" as ±1
    bias: int  # constant inputs after the encoder's bits
    program: Program  # the net
    scheme: voting.Scheme  # classes of each net
    best: Tensor  # (N, A) bool, the best network found
    marginals: Tensor  # (N, A) int64, P(w = 1) in parts of 65535
    networks: Tensor  # (K, N, A) bool, those that vote
    votes: Tensor  # (K, N) int64 > 0, the weight of each
    clip: int  # limit of margins
    calibration: Tensor  # (N, 257) int64, from 0 to 65535, non-decreasing
    thresholds: tuple[int, ...] = ()  # () or RATES + 1 of them, non-decreasing
    record: dict[str, Any] = field(default_factory=dict)  # settings, timings, versions, scores

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return len(self.labels.classes)

    @property
    def bits(self) -> int:
        """The number of one-bit weights of the best network."""
        return self.best.numel()

    @property
    def directions(self) -> dict[str, int]:
        """Monotone columns: 1 where the second class never falls with it, −1 never rises."""
        columns = self.encoder.columns if isinstance(self.encoder, TableEncoder) else ()
        return {code.name: code.direction for code in columns if code.direction}

    @property
    def image_shape(self) -> tuple[int, int] | None:
        """Height and width of the images it was trained on; the record may hold anything."""
        match self.record.get("image_shape"):
            case [int() as height, int() as width] if min(height, width) > 0:
                return height, width
        return None

    def inputs(self, table: Any) -> Tensor:
        """The inputs of the network for a table's rows, (rows, inputs): bits, then constants."""
        given, known = getattr(table, "image_shape", None), self.image_shape
        if given is not None and known is not None and tuple(given) != known:
            sizes = ["×".join(map(str, shape)) for shape in (given, known)]
            raise ModelError(f"the images are {sizes[0]}, the model has {sizes[1]}; scale them")
        return as_inputs(self.encoder.transform(table), self.coding, self.bias)

    def answers(self, table: Any) -> Answers:
        """Answers, probabilities and disagreement on a table's rows, as integers."""
        return self.answers_of(self.inputs(table))

    def answers_of(self, inputs: Tensor) -> Answers:
        """The same for rows as `inputs` makes them."""
        classes, none = self.num_classes, torch.zeros(0, dtype=torch.int64)
        parts = [Answers(none, none.reshape(0, classes), none)]
        for score, agreeing in self.tallies(inputs):
            level = voting.levels(score, self.votes, self.clip)
            probability = voting.net_probabilities(level, self.calibration)
            score = voting.class_scores(probability, classes, self.scheme)
            number = score.argmax(1)
            against = voting.votes_against(agreeing, self.votes, number, classes, self.scheme)
            parts.append(Answers(number, voting.class_probabilities(score), against))
        return Answers(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def tallies(self, inputs: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """`voting.tally` of all networks, a chunk of rows at a time."""
        most = self.clip * int(self.votes.sum(0).max())
        if not (packable(self.program, inputs) and most <= MOST_PACKED):
            for outputs in outputs_of(self.program, self.networks, inputs):
                yield voting.tally(voting.raw_margins(outputs), self.votes, self.clip)
            return
        from vitrail.kernels.cpu.predict import Nets, tally

        (hidden,) = self.program.hidden or (0,)
        nets, votes = Nets.of(self.networks.flatten(0, 1).numpy(), hidden), self.votes.numpy()
        each = PACKED_BYTES * (inputs.shape[1] + votes.shape[1])
        for rows in chunks(len(inputs), each, DEFAULT_MEMORY):
            score, agreeing = tally(inputs[rows].numpy(), nets, votes, self.clip)
            yield torch.from_numpy(score)[..., None], torch.from_numpy(agreeing)[..., None]

    def probabilities(self, table: Any) -> np.ndarray:
        """P(class) of each row, (rows, C) float64; rows add up to 1."""
        return self.answers(table).probabilities.numpy() / voting.ONE

    def decisions(self, table: Any) -> np.ndarray:
        """Log-odds of each class, (rows, C) float64, ordered as the probabilities are.

        Rows whose probabilities are equal are ordered by their scores, before the rounding to
        levels. Column 1 of two classes is positive where class 1 is the answer; of several classes
        the answer has the largest value.
        """
        return self.decisions_of(self.inputs(table))

    def decisions_of(self, inputs: Tensor) -> np.ndarray:
        """The same for rows as `inputs` makes them."""
        finer = [
            voting.decisions(
                score, self.votes, self.clip, self.calibration, self.num_classes, self.scheme
            )
            for score, _ in self.tallies(inputs)
        ]
        return torch.cat([torch.zeros(0, self.num_classes, dtype=torch.float64), *finer]).numpy()

    def importances(self) -> np.ndarray:
        """The importance of each column of training, (columns,) float64 ≥ 0, of sum 1.

        It is the share of the votes' variance that changes of the column account for, by the
        networks alone: `vitrail.model.explanation` has the definition.
        """
        from vitrail.model.explanation import importances

        return importances(self)

    def uncertainty(self, table: Any) -> np.ndarray:
        """Disagreement of the networks on each row, (rows,) float64 in [0, 1].

        It is the share of votes against the answer, and follows 1 − confidence closely. A number
        beyond the training rows is encoded as their largest is: it does not raise the share.
        """
        return self.answers(table).against.numpy() / voting.ONE

    def predict(self, table: Any) -> np.ndarray:
        """The most probable class of each row, as written in training."""
        return self.labels.decode(self.answers(table).numbers)

    def abstention(self, rate: float) -> Abstention:
        """The threshold that leaves out the largest share of rows not above `rate`.

        Rows of equal confidence are left out together or not at all, so the share may be smaller.
        """
        if not 0 <= rate < 1:
            raise ValueError(f"the share of rows left out is from 0 to below 1, got {rate:g}")
        if not self.thresholds:
            raise ValueError(
                f"this model was fitted with fewer than {LEAST_HELD_OUT} rows held out, too few to "
                "say which share of new rows a threshold leaves out; fit it on more rows, or hold "
                "out more with --test-size"
            )
        threshold = self.thresholds[int(rate * RATES + ROUNDING)]
        return Abstention(threshold, self.thresholds.index(threshold) / RATES)

    def save(self, path: str | Path) -> None:
        """Write the model to one .safetensors file, completely or not at all."""
        with atomic_output(path) as stream:
            stream.write(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The file's contents; only the metadata may differ between equal trainings."""
        from vitrail.model.files import model_to_bytes

        return model_to_bytes(self)


def thresholds_of(confidence: Tensor, rows: Tensor | None = None) -> tuple[int, ...]:
    """Thresholds of a model by its confidence (F,) in answers to held-out rows.

    rows (F,): the number of rows of each; None is one. Fewer than LEAST_HELD_OUT give none.
    """
    rows = torch.ones(len(confidence), dtype=torch.float64) if rows is None else rows
    total = float(rows.sum())
    if total < LEAST_HELD_OUT - ROUNDING:
        return ()
    rates = torch.arange(RATES + 1, dtype=torch.float64) / RATES
    return tuple(_largest(confidence, rows / total, rates).tolist())


def transferred(thresholds: tuple[int, ...], before: Tensor, after: Tensor) -> tuple[int, ...]:
    """Thresholds of one model for another, by the confidence of both in answers to the same rows.

    A threshold becomes the largest below which no more of `after` lies than of `before` lay.
    """
    if not thresholds:
        return ()
    at = torch.searchsorted(before.sort().values, torch.tensor(thresholds))
    rows = torch.full((len(after),), 1 / len(after), dtype=torch.float64)
    return tuple(_largest(after, rows, at.double() / len(before)).tolist())


def _largest(values: Tensor, rows: Tensor, shares: Tensor) -> Tensor:
    """The largest of `values` below which at most a share of the rows lies, of each share."""
    distinct, place = values.unique(return_inverse=True)
    own = torch.zeros(len(distinct), dtype=torch.float64).index_add(0, place, rows.double())
    below = own.cumsum(0) - own
    return distinct[torch.searchsorted(below, shares + ROUNDING, right=True) - 1]


def as_inputs(bits: np.ndarray, coding: Coding, bias: int) -> Tensor:
    """Bits (rows, D) as the net reads them, int8, with `bias` constant inputs of +1 appended.

    Whole numbers, uint8, stay as they are.
    """
    inputs = torch.from_numpy(np.ascontiguousarray(bits))
    if coding == "bipolar":
        inputs = 2 * inputs - 1
    return torch.cat([inputs, torch.ones(len(inputs), bias, dtype=inputs.dtype)], dim=1)


def packable(program: Program, inputs: Tensor) -> bool:
    """Whether nets can be evaluated on these rows in packed words."""
    return program.packable and inputs.dtype == torch.int8 and not bool((inputs < 0).any())


def outputs_of(program: Program, networks: Tensor, inputs: Tensor) -> Iterator[Tensor]:
    """Outputs (rows, K, N, O) float32 of networks (K, N, A), a chunk of rows at a time.

    Nets with one hidden layer that read 0/1 are evaluated in packed words, others as they are.
    """
    num, nets, weights = networks.shape
    if packable(program, inputs):
        from vitrail.kernels.cpu.predict import Nets, outputs

        (hidden,) = program.hidden or (0,)
        packed = Nets.of(networks.reshape(num * nets, weights).numpy(), hidden)
        for rows in chunks(len(inputs), PACKED_BYTES * num * nets, DEFAULT_MEMORY):
            found = torch.from_numpy(outputs(inputs[rows].numpy(), packed))
            yield found.reshape(-1, num, nets, 1)
        return
    states = networks.reshape(1, num * nets, weights)
    per_row = 4 * num * nets * max(1, program.scratch_floats - 2 * weights)
    with torch.no_grad():
        for rows in chunks(len(inputs), per_row, DEFAULT_MEMORY):
            x = inputs[rows, None].to(torch.float32).unflatten(-1, program.input_shape)
            yield program.evaluate(states, x).reshape(rows.stop - rows.start, num, nets, -1)
