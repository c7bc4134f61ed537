"""How rows and labels become bits and numbers: fixed by the first training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_random_state
from torch import Tensor

from vitrail import ranks
from vitrail.datasets.dataset import Coding
from vitrail.learning.checks import checked_setting
from vitrail.learning.examples import Examples
from vitrail.learning.problem import AUTO
from vitrail.model.model import as_inputs
from vitrail.model.voting import Scheme, num_nets
from vitrail.tables.bits import SIGNS, BitColumns
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.labels import LabelCoder

GPU_MESSAGES = 5_000_000  # below, a few cores are done before a GPU has started


@dataclass(frozen=True)
class Preprocessing:
    """What the first training fixes: how rows and labels become bits and numbers."""

    encoder: TableEncoder | BitColumns
    coder: LabelCoder
    coding: Coding
    bias: int
    scheme: Scheme
    image: tuple[int, ...] | None = None  # (channels, height, width) where rows are images

    @property
    def num_classes(self) -> int:
        return len(self.coder.classes)

    @property
    def num_inputs(self) -> int:
        return len(self.encoder.bit_names) + self.bias

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one example, as a net reads it."""
        return (self.num_inputs,) if self.image is None else self.image

    @property
    def num_outputs(self) -> int:
        return num_nets(self.num_classes, self.scheme)[1]

    @property
    def classes(self) -> np.ndarray:
        """The classes as they were written, (C,)."""
        return self.coder.decode(np.arange(self.num_classes))

    def inputs(self, table: Any) -> Tensor:
        """What a net reads of a table's rows, (rows, inputs) int8."""
        return as_inputs(self.encoder.transform(table), self.coding, self.bias)

    def examples(self, table: Any, y: np.ndarray, sample_weight: np.ndarray) -> Examples:
        """The distinct examples of rows with labels and weights."""
        labels = torch.from_numpy(self.coder.encode(y))
        return Examples.distinct(self.inputs(table), labels, torch.from_numpy(sample_weight))

    @property
    def columns(self) -> Tensor:
        """The column of each input, (I,) int64; −1 for constant inputs."""
        return input_columns(self.encoder, self.bias)

    def class_weights(self, examples: Examples, class_weight: Any) -> Tensor | None:
        """The weight of each class, (C,); None where all weigh alike."""
        if class_weight is None:
            return None
        _check_class_weight(class_weight, self.classes)
        if isinstance(class_weight, Mapping):
            labels = self.classes.tolist()
            each = [class_weight.get(label, 1.0) for label in labels]
            return torch.tensor(each, dtype=torch.float64)
        counts = torch.bincount(examples.labels, examples.rows, self.num_classes)
        present = counts > 0
        balanced = counts.sum() / (present.sum() * counts.clamp(min=1e-300))
        return torch.where(present, balanced, 1.0)


def input_columns(encoder: TableEncoder | BitColumns, bias: int) -> Tensor:
    """The column of each input of a net, (I,) int64; −1 for constant inputs."""
    sizes = [1] * len(encoder.bit_names)
    if isinstance(encoder, TableEncoder):
        sizes = [len(code.bit_names) for code in encoder.columns]
    column = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes, dtype=torch.int64))
    return torch.cat([column, torch.full((bias,), -1)])


def _check_class_weight(class_weight: Any, classes: np.ndarray) -> None:
    if isinstance(class_weight, str) and class_weight == "balanced":
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight is None, 'balanced' or a mapping of labels to weights, got "
            f"{class_weight!r}"
        )
    known = set(classes.tolist())
    for label, weight in class_weight.items():
        if label not in known:
            raise ValueError(
                f"class_weight names {label!r}, which is none of the classes; "
                "give the weights of labels that are there"
            )
        number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if not number or not np.isfinite(weight) or weight <= 0:
            raise ValueError(
                f"the class weight of {label!r} must be a positive number, got {weight!r}; "
                "leave the rows of a class out where it should not count"
            )


def auto_coding(encoder: TableEncoder | BitColumns) -> Coding:
    """How nets read bits: as ±1 where rows are signs, else as 0/1."""
    signs = isinstance(encoder, BitColumns) and (encoder.low, encoder.high) == SIGNS
    return "bipolar" if signs else "binary"


def auto_bias(coding: Coding) -> int:
    """Constant inputs: a few for a net that reads 0/1, one for a net that reads ±1."""
    return 3 if coding == "binary" else 1


def seed_of(random_state: Any) -> int:
    """A number as it is; any other random state is asked for one, that of rank 0 for all ranks."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(ranks.here().broadcast(str(check_random_state(random_state).randint(2**31))))


def device_for(name: str, num_factors: int, num_weights: int) -> str:
    """The device asked for; "auto" is a GPU where there is one and enough messages to fill it."""
    if checked_setting("device", name) != AUTO:
        return name
    large = num_factors * num_weights >= GPU_MESSAGES
    return "cuda" if large and torch.cuda.is_available() else "cpu"
