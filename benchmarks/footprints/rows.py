"""Tables as a device reads them: whole numbers of 16 bits, and words by their number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import labelled_table
from sklearn import datasets

from vitrail.datasets import mnist
from vitrail.lab.rivals import Features, as_integers, device_columns

__all__ = ["Features", "Rows", "all_rows", "names", "read", "split_of"]

IMAGES = 6000  # of MNIST, 14x14 bits each


@dataclass(frozen=True)
class Rows:
    """A table with its labels. Numbers are whole, NaN where missing; all else is words."""

    name: str
    table: pd.DataFrame
    labels: np.ndarray

    def taken(self, rows: np.ndarray, columns: list[str] | None = None) -> Rows:
        """Some of the rows, and some of the columns."""
        table = self.table if columns is None else self.table[columns]
        return Rows(self.name, table.iloc[rows], self.labels[rows])

    @property
    def plain(self) -> bool:
        """Whether every column is a bit."""
        return all(set(column.unique()) <= {0, 1} for _, column in self.table.items())


def read(name: str, folder: Path | None) -> Rows:
    """A table by its name: of scikit-learn, MNIST, or a CSV file in the folder."""
    if name == "mnist":
        images = mnist(coding="binary")
        kept = np.random.default_rng(0).permutation(len(images.inputs))[:IMAGES]
        pixels, labels = images.inputs.numpy()[kept], images.labels.numpy()[kept]
        return Rows(name, _frame(pixels), labels.astype(str))
    if name in KNOWN:
        found: Any = getattr(datasets, f"load_{name}")()
        return Rows(name, _frame(found.data), found.target.astype(str))
    if folder is None:
        raise SystemExit(f"no folder was given to find {name}.csv in")
    table, labels = labelled_table(folder / f"{name}.csv")
    columns = {str(name): np.asarray(table[name]) for name in table.columns}
    return Rows(name, pd.DataFrame(device_columns(columns)), labels.astype(str))


KNOWN = ("iris", "wine", "digits")


def names(folder: Path | None) -> list[str]:
    """All tables, those that take longest first."""
    own = sorted((path.stem for path in folder.glob("*.csv")), key=_size(folder)) if folder else []
    return ["mnist", "digits", *reversed(own), "wine", "iris"]


def _size(folder: Path) -> Any:
    return lambda name: (folder / f"{name}.csv").stat().st_size


def _frame(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({f"x{i}": as_integers(column) for i, column in enumerate(values.T)})


def split_of(labels: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on, two of three, and rows held out; every class is among the first."""
    order = np.random.default_rng(split).permutation(len(labels))
    cut = 2 * len(labels) // 3
    first = {label: place for place, label in reversed(list(enumerate(labels[order])))}
    early = sorted(first.values())
    order = np.concatenate([order[early], np.delete(order, early)])
    return order[:cut], order[cut:]


def all_rows(folder: Path | None, wanted: str) -> Iterator[str]:
    """The names that were asked for, or all."""
    asked = set(filter(None, wanted.split(",")))
    known = names(folder)
    if unknown := asked - set(known):
        raise SystemExit(f"unknown tables: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    return (name for name in known if not asked or name in asked)
