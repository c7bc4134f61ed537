"""Rows as a device reads them: 16-bit integers and words by number, and features made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.export.c.text import templates

MOST = 32767
MISSING = -32768  # of a number
UNKNOWN_WORD = 255  # a word that was not in training
MOST_DIGITS = 4  # decimals that are kept
EMPTY = ("", "?", None)

Columns = Any  # by name, a mapping or a data frame: whole numbers, NaN where missing, or words


def device_columns(columns: Mapping[str, Iterable[Any]]) -> dict[str, np.ndarray]:
    """Integers where every cell is a number or missing, words otherwise."""
    return {str(name): _cells(list(cells)) for name, cells in columns.items()}


def _cells(cells: list[Any]) -> np.ndarray:
    try:
        return as_integers(np.array([np.nan if cell in EMPTY else float(cell) for cell in cells]))
    except ValueError:
        return np.array([str(cell) for cell in cells], object)


def as_integers(values: np.ndarray) -> np.ndarray:
    """Numbers scaled by the least power of ten that makes all whole, if they fit into 16 bits."""
    values = values.astype(np.float64)
    known = values[~np.isnan(values)]
    digits = next((d for d in range(MOST_DIGITS) if _all_whole(known * 10**d)), MOST_DIGITS)
    while digits and np.abs(known).max() * 10**digits > MOST:
        digits -= 1
    return np.clip(np.rint(values * 10**digits), -MOST, MOST)


def _all_whole(values: np.ndarray) -> bool:
    return bool(np.allclose(values, np.rint(values), rtol=0, atol=1e-6))


@dataclass(frozen=True)
class Features:
    """All numbers, then a 0/1 feature per word of training."""

    numbers: tuple[str, ...]
    words: dict[str, tuple[str, ...]]

    @staticmethod
    def fit(columns: Columns) -> Features:
        """The features of training rows."""
        cells = {str(name): np.asarray(columns[name]) for name in columns}
        numbers = tuple(name for name, values in cells.items() if values.dtype.kind in "biuf")
        words = {
            name: tuple(sorted(set(map(str, values))))
            for name, values in cells.items()
            if name not in numbers
        }
        return Features(numbers, words)

    @cached_property
    def columns(self) -> list[tuple[str, str | None]]:
        """Each feature's column, and its word if it has one."""
        one_hot = [(name, word) for name, words in self.words.items() for word in words]
        return [*((name, None) for name in self.numbers), *one_hot]

    def matrix(self, columns: Columns) -> np.ndarray:
        """(rows, features) int16."""
        parts = []
        for name, word in self.columns:
            cells = np.asarray(columns[name])
            parts.append(np.nan_to_num(cells, nan=MISSING) if word is None else cells == word)
        return np.stack(parts, 1).astype(np.int16)

    def initialisers(self, columns: Columns) -> list[str]:
        """Rows as C initialisers: numbers, then numbers of words."""
        numbers = self.matrix(columns)[:, : len(self.numbers)].tolist()
        places = [
            [words.index(x) if x in words else UNKNOWN_WORD for x in np.asarray(columns[name])]
            for name, words in self.words.items()
        ]
        listed = []
        for row, cells in enumerate(numbers):
            own = [column[row] for column in places]
            listed.append(f"{{{{{joined(cells or [0])}}}, {{{joined(own or [0])}}}}}")
        return listed

    def expression(self, feature: int) -> str:
        """The C expression of a feature of `row`."""
        name, word = self.columns[feature]
        if word is None:
            return f"row->n[{feature}]"
        return f"(row->w[{list(self.words).index(name)}] == {self.words[name].index(word)})"


def joined(numbers: Any) -> str:
    """Numbers separated by commas."""
    return ", ".join(map(str, np.asarray(numbers).ravel().tolist()))


TEMPLATES = templates(Path(__file__).parent)
TEMPLATES.filters["numbers"] = joined


def fill(part: str, **values: Any) -> str:
    """The template `part`.h beside this file."""
    return TEMPLATES.get_template(f"{part}.h").render(values)
