"""What every maker of data returns, and the few steps they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from vitrail.checks import checked_count
from vitrail.draws import random_order

Coding = Literal["bipolar", "binary"]
"""How a bit is written: -1/+1 or 0/1."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled bit vectors, with a test part that may be empty."""

    inputs: Tensor  # (F, D) int8, −1/+1 (bipolar) or 0/1 (binary); (F, *shape) after `shaped`
    labels: Tensor  # (F,) int64, k for an example of classes[k]
    test_inputs: Tensor  # as inputs
    test_labels: Tensor  # as labels
    name: str  # of the data set
    classes: tuple[int, ...]  # meaning of the labels
    shape: tuple[int, ...]  # of one example: (D,), or (channels, height, width) for images

    def shaped(self) -> Dataset:
        """The same examples as (F, *shape), the way a convolution reads them."""
        return replace(
            self,
            inputs=self.inputs.reshape(-1, *self.shape),
            test_inputs=self.test_inputs.reshape(-1, *self.shape),
        )

    def take(self, count: int, seed: int = 0) -> Dataset:
        """`count` of the training examples, drawn by the seed; the test part stays whole.

        The examples of a smaller count are the first of a larger one's.
        """
        checked_count("count", count, 1, len(self.inputs))
        chosen = torch.from_numpy(random_order(seed, len(self.inputs))[:count])
        return replace(self, inputs=self.inputs[chosen], labels=self.labels[chosen])


Part = tuple[np.ndarray, np.ndarray]  # bits (F, …) of 0/1 and raw labels (F,)


def dataset_of(
    name: str,
    train: Part,
    test: Part,
    coding: Coding,
    classes: Sequence[int] = (0, 1),
    shape: tuple[int, ...] | None = None,
) -> Dataset:
    """Bits and labels as a data set; `shape` is that of an example, None for the shape of bits."""
    return Dataset(
        inputs=encode(train[0], coding),
        labels=class_indices(train[1], classes),
        test_inputs=encode(test[0], coding),
        test_labels=class_indices(test[1], classes),
        name=name,
        classes=tuple(classes),
        shape=shape or train[0].shape[1:],
    )


def encode(bits: np.ndarray, coding: Coding) -> Tensor:
    """Bits (F, ...) of 0/1 or bool as int8 inputs (F, D) in the coding asked for."""
    if coding not in get_args(Coding):
        raise ValueError(f"coding must be 'bipolar' or 'binary', got {coding!r}; choose one")
    flat = torch.from_numpy(bits.reshape(len(bits), prod(bits.shape[1:])).astype(np.int8))
    return 2 * flat - 1 if coding == "bipolar" else flat


def binarise(pixels: np.ndarray, full: int, threshold: float) -> np.ndarray:
    """Bits of the pixels strictly above the fraction `threshold` of full intensity."""
    if not 0 <= threshold < 1:
        raise ValueError(
            f"threshold is a fraction of full intensity, 0 <= threshold < 1, got {threshold}; "
            "0.5 is half intensity"
        )
    return pixels > threshold * full


def indices_of_pair(labels: np.ndarray, pair: Sequence[int]) -> np.ndarray:
    """Indices of the examples that belong to either class of the pair, in their order."""
    present = sorted({int(label) for label in np.unique(labels)})
    if len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(present):
        raise ValueError(
            f"pair must name two different classes out of {present}, got {tuple(pair)}; "
            f"for example pair=({present[0]}, {present[-1]})"
        )
    return np.flatnonzero(np.isin(labels, pair))


def class_indices(labels: np.ndarray, classes: Sequence[int]) -> Tensor:
    """Each label's place in `classes`, (F,) int64; every label must be one of them."""
    order = np.argsort(np.asarray(classes))
    places = order[np.searchsorted(np.asarray(classes)[order], labels)]
    return torch.from_numpy(places.astype(np.int64))
