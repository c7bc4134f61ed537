"""Tables as a device reads them: whole numbers of 16 bits, and words by their number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn import datasets

from vitrail.data import mnist
from vitrail.data.tables import read_table

MOST = 32767
MISSING = -32768  # of a number
NO_WORD = 255
IMAGES = 6000  # of MNIST, 14x14 bits each
MOST_DIGITS = 4  # behind the point, of numbers that are made whole


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
    table = read_table(folder / f"{name}.csv")
    columns = {str(name): _cells(np.asarray(table[name])) for name in table.columns}
    labels = np.asarray(table["class"]).astype(str)
    columns.pop("class")
    return Rows(name, pd.DataFrame(columns), labels)


KNOWN = ("iris", "wine", "digits")


def names(folder: Path | None) -> list[str]:
    """All tables, those that take longest first."""
    own = sorted((path.stem for path in folder.glob("*.csv")), key=_size(folder)) if folder else []
    return ["mnist", "digits", *reversed(own), "wine", "iris"]


def _size(folder: Path) -> Any:
    return lambda name: (folder / f"{name}.csv").stat().st_size


def _frame(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({f"x{i}": whole(column) for i, column in enumerate(values.T)})


def _cells(values: np.ndarray) -> np.ndarray:
    try:
        known = [np.nan if cell in ("", "?", None) else float(cell) for cell in values]
    except ValueError:
        return values.astype(str).astype(object)
    return whole(np.array(known))


def whole(values: np.ndarray) -> np.ndarray:
    """Numbers in the largest unit in which all are whole, or the finest that 16 bits hold."""
    values = values.astype(np.float64)
    known = values[~np.isnan(values)]
    digits = next((d for d in range(MOST_DIGITS) if _all_whole(known * 10**d)), MOST_DIGITS)
    while digits and np.abs(known).max() * 10**digits > MOST:
        digits -= 1
    return np.clip(np.rint(values * 10**digits), -MOST, MOST)


def _all_whole(values: np.ndarray) -> bool:
    return bool(np.allclose(values, np.rint(values), rtol=0, atol=1e-6))


def split_of(labels: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on, two of three, and rows held out; every class is among the first."""
    order = np.random.default_rng(split).permutation(len(labels))
    cut = 2 * len(labels) // 3
    first = {label: place for place, label in reversed(list(enumerate(labels[order])))}
    early = sorted(first.values())
    order = np.concatenate([order[early], np.delete(order, early)])
    return order[:cut], order[cut:]


@dataclass(frozen=True)
class Features:
    """What rivals read: all numbers, then a column of 0 and 1 for each word of training."""

    numbers: tuple[str, ...]
    words: dict[str, tuple[str, ...]]

    @staticmethod
    def fit(table: pd.DataFrame) -> Features:
        numbers = tuple(name for name in table if is_numeric_dtype(table[name]))
        words = {name: tuple(sorted(set(table[name]))) for name in table if name not in numbers}
        return Features(numbers, words)

    @cached_property
    def columns(self) -> list[tuple[str, str | None]]:
        """The column of the table that a feature is of, and its word."""
        one_hot = [(name, word) for name, words in self.words.items() for word in words]
        return [*((name, None) for name in self.numbers), *one_hot]

    def matrix(self, table: pd.DataFrame) -> np.ndarray:
        """(rows, features) int16."""
        parts = [
            table[name].fillna(MISSING).to_numpy()
            if word is None
            else table[name].to_numpy() == word
            for name, word in self.columns
        ]
        return np.stack(parts, 1).astype(np.int16)

    def in_c(self, table: pd.DataFrame) -> list[str]:
        """Initialisers of the struct that holds rows: numbers, then the places of words."""
        numbers = self.matrix(table)[:, : len(self.numbers)].tolist()
        places = [
            [words.index(cell) if cell in words else NO_WORD for cell in table[name]]
            for name, words in self.words.items()
        ]
        listed = []
        for row, cells in enumerate(numbers):
            own = [places[column][row] for column in range(len(places))]
            listed.append(f"{{{{{_joined(cells or [0])}}}, {{{_joined(own or [0])}}}}}")
        return listed

    @property
    def struct(self) -> str:
        """The struct that the device fills in."""
        sizes = max(len(self.numbers), 1), max(len(self.words), 1)
        return f"typedef struct {{ int16_t n[{sizes[0]}]; uint8_t w[{sizes[1]}]; }} tiny_row;"

    def expression(self, feature: int) -> str:
        """A feature of `row` in C."""
        name, word = self.columns[feature]
        if word is None:
            return f"row->n[{feature}]"
        return f"(row->w[{list(self.words).index(name)}] == {self.words[name].index(word)})"


def _joined(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def all_rows(folder: Path | None, wanted: str) -> Iterator[str]:
    """The names that were asked for, or all."""
    asked = set(filter(None, wanted.split(",")))
    known = names(folder)
    if unknown := asked - set(known):
        raise SystemExit(f"unknown tables: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    return (name for name in known if not asked or name in asked)
