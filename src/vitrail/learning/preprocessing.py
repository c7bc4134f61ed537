"""How rows and labels become inputs and numbers, fixed by the first training; nets that read them.

A module says by the channels that its first convolution reads how images become bits. Of C channels
of pixels, k bits each, and one channel of ones it reads k·C + 1. Where all of a window is
background, ones let a unit say what its weights say, which else were a tie in all images.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from vitrail.datasets.dataset import Coding
from vitrail.errors import counted, listed
from vitrail.learning.examples import Examples
from vitrail.model.model import as_inputs
from vitrail.model.voting import Scheme, num_nets
from vitrail.nn import Program
from vitrail.nn.nets import has_levels, image_channels
from vitrail.nn.nodes import MAX_SIZE, Flatten, Linear, Node, Step
from vitrail.tables.bits import MOST_CUTS, SIGNS, BitColumns
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.labels import Label, LabelCoder

BIAS: dict[Coding, int] = {"binary": 3, "bipolar": 1}
"""Constant inputs by default: a few for a net that reads 0/1, one for a net that reads ±1."""
MOST_NAMED = 20  # columns in an error


@dataclass(frozen=True)
class Preprocessing:
    """What the first training fixes: how rows and labels become bits and numbers."""

    encoder: TableEncoder | BitColumns
    coder: LabelCoder
    coding: Coding
    bias: int
    scheme: Scheme
    image: tuple[int, ...] | None = None  # (channels, height, width) where rows are images
    directions: Mapping[str, int] = field(default_factory=dict)  # 1 or −1, of monotone columns

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

    def inputs(self, table: Any) -> Tensor:
        """What a net reads of a table's rows, (rows, inputs) int8, or uint8 of whole numbers."""
        return as_inputs(self.encoder.transform(table), self.coding, self.bias)

    def class_weights(self, examples: Examples, class_weight: Any) -> Tensor:
        """The weight of each class, (C,)."""
        _check_class_weight(class_weight, self.coder.classes)
        if isinstance(class_weight, Mapping):
            each = [class_weight.get(label, 1.0) for label in self.coder.classes]
            return torch.tensor(each, dtype=torch.float64)
        counts = torch.bincount(examples.labels, examples.rows, self.num_classes)
        present = counts > 0
        balanced = counts.sum() / (present.sum() * counts.clamp(min=1e-300))
        return torch.where(present, balanced, 1.0)


def _check_class_weight(class_weight: Any, classes: tuple[Label, ...]) -> None:
    if isinstance(class_weight, str) and class_weight == "balanced":
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight is None, 'balanced' or a mapping of labels to weights, got "
            f"{class_weight!r}"
        )
    for label, weight in class_weight.items():
        if label not in classes:
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


def directions_of(given: Any, columns: Sequence[str], coder: LabelCoder) -> dict[str, int]:
    """The columns whose growth moves P(second class) one way only: 1 up, −1 down, by name.

    given: a number for each column, or a mapping of names to numbers; 0 leaves a column free.
    """
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in columns]
        if unknown:
            raise ValueError(
                f"monotonic_cst names {unknown[0]!r}, which is none of the columns; they are "
                f"{listed(columns, MOST_NAMED)}"
            )
        named = dict(given)
    else:
        numbers = np.asarray(given, object)
        if numbers.shape != (len(columns),):
            raise ValueError(
                f"monotonic_cst has one number for each of {len(columns)} columns, or a mapping of "
                f"names to numbers, got {given!r}"
            )
        named = dict(zip(columns, numbers.tolist(), strict=True))
    for name, value in named.items():
        if not isinstance(value, Real) or value not in (-1, 0, 1):
            raise ValueError(f"monotonic_cst of {name!r} is −1, 0 or 1, got {value!r}")
    directions = {name: int(value) for name, value in named.items() if value}
    if directions and len(coder.classes) > 2:
        raise ValueError(
            f"monotonic_cst orders the probability of one of two classes, and there are "
            f"{len(coder.classes)}; leave it out, or join classes"
        )
    return directions


def default_coding(encoder: TableEncoder | BitColumns) -> Coding:
    """How nets read bits: as ±1 where rows are signs, else as 0/1."""
    signs = isinstance(encoder, BitColumns) and (encoder.low, encoder.high) == SIGNS
    return "bipolar" if signs else "binary"


class ImageInputs(NamedTuple):
    """How a net reads images."""

    shape: tuple[int, ...]  # (channels, height, width), of bits and ones together
    cuts: int = 1  # bits per pixel
    ones: int = 0  # constant inputs after the bits
    whole: bool = False  # whether pixels are read as whole numbers


def image_inputs(
    shape: tuple[int, ...], module: nn.Module | Program | None, ones: int | None
) -> ImageInputs:
    """How a net reads images of a shape (channels, height, width).

    A module with activations of a few bits reads pixels as whole numbers.

    ones: constant inputs as the user wants them; None is none where the module reads as many
    channels as there are, else one channel of them.
    """
    given, size = shape[0], math.prod(shape[1:])
    channels = None if module is None else image_channels(module)
    if module is None or channels is None:
        return ImageInputs(shape, 1, ones or 0)
    if has_levels(module):
        return ImageInputs(shape, whole=True)
    if ones is None:
        ones = 0 if channels == given else size
    constant, rest = divmod(ones, size)
    if rest:
        raise ValueError(
            f"bias counts ones after the pixels of images, {size} per channel, got {ones}; "
            f"give 0 or {size}"
        )
    cuts, rest = divmod(channels - constant, given)
    if rest or not 1 <= cuts <= MOST_CUTS:
        nearest = given * min(MOST_CUTS, max(1, round((channels - constant) / given))) + constant
        raise ValueError(
            f"images of {counted(given, 'channel')} are read as k·{given} + {constant}, k bits per "
            f"pixel and {counted(constant, 'channel')} of ones, and the module's first convolution "
            f"reads {channels}; give it {nearest}, or another bias"
        )
    return ImageInputs((channels, *shape[1:]), cuts, ones)


def multilayer(shape: tuple[int, ...], hidden: Iterable[int], outputs: int) -> Program:
    """A net of fully connected layers that reads examples of a shape."""
    inputs, hidden = math.prod(shape), tuple(hidden)
    most = max(1, MAX_SIZE // inputs)
    for units in hidden:
        if units > most:
            raise ValueError(
                f"a hidden layer of {units} units on {inputs} inputs has too many "
                f"weights; take at most {most} units"
            )
    nodes: list[Node] = [] if len(shape) == 1 else [Flatten()]
    for before, after in pairwise([inputs, *hidden, outputs]):
        nodes += [Linear(-1, before, after), Step(-1, math.sqrt(before))]
    return Program(shape, tuple(nodes[:-1]))
