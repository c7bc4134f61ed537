"""Stratified splits of rows: the one way in which the package holds rows out.

Rows of each class are held out in a random order, so a split does not depend on how a file is
sorted. Examples are merged rows. A fold is made of rows, so an example that stands for 500 of them
is divided among the folds: a row that repeats is seen in training as it will be seen later, and a
row with both labels is judged by networks that saw both.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from vitrail.draws import random_order
from vitrail.learning.examples import Examples


def stratified_folds(examples: Examples, folds: int, seed: int) -> Tensor:
    """The share of each example's rows in each fold, (folds, F) float64; columns add up to one.

    The rows of each class, in random order of their examples, are assigned to the folds in turn. An
    example of m rows has max(1, round(m)) of them. Where the examples are all combinations of what
    their columns hold, no new row is unlike those seen: examples of fewer rows than folds are then
    divided evenly, so that none is held out whole.
    """
    by_class = torch.from_numpy(_by_class(examples.labels.numpy(), seed))
    rows = examples.rows.round().clamp(min=1).to(torch.int64)
    end = rows[by_class].cumsum(0)
    start = end - rows[by_class]
    fold = torch.arange(folds)[:, None]
    counts = (end - fold + folds - 1) // folds - (start - fold + folds - 1) // folds
    share = torch.empty(folds, len(examples), dtype=torch.float64)
    share[:, by_class] = counts.double() / rows[by_class]
    if examples.complete:
        share[:, rows < folds] = 1 / folds
    return share


def split_rows(labels: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows held out, ascending: of every class the share, rounded down."""
    _, codes, sizes = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
    by_class = _by_class(codes, seed)
    place = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    held = np.zeros(len(codes), bool)
    held[by_class] = place < np.repeat((share * sizes).astype(np.int64), sizes)
    return np.flatnonzero(~held), np.flatnonzero(held)


def _by_class(labels: np.ndarray, seed: int) -> np.ndarray:
    """Indices of labels (F,) in a random order, class after class."""
    order = random_order(seed, len(labels))
    return order[np.argsort(labels[order], kind="stable")]
