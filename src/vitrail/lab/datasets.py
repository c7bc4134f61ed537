"""Data of the demo and of the benchmarks: labelled tables, MNIST files, a few images per class."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vitrail.datasets.idx import read_idx
from vitrail.draws import random_order
from vitrail.tables.table import Table, read_table

LABEL = "class"  # the column of labels in every table of a benchmark


def labelled_table(path: Path) -> tuple[Table, np.ndarray]:
    """The feature columns of a file and its labels, the column `class`."""
    table = read_table(path)
    return table.without(LABEL), table[LABEL]


def mnist_files(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (rows, 28, 28) uint8 and labels (rows,) of the idx files of `train` or `t10k`."""
    images, labels = (
        read_idx(next(folder.glob(f"{part}-{kind}-idx{axes}-ubyte*")), axes)
        for kind, axes in (("images", 3), ("labels", 1))
    )
    return images, labels


def few_per_class(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Row numbers of `count` randomly drawn examples of every class."""
    order = random_order(seed, len(labels))
    return np.concatenate([order[labels[order] == label][:count] for label in np.unique(labels)])
