"""Real tables as bits: what each column becomes is learned on the training part and then fixed.

| column | bits |
|---|---|
| words | one per category (`odor=n`); the rare ones of a column with very many share `odor other` |
| two numbers (0/1, ±1, booleans, …) | one per value (`sex=0`, `sex=1`) |
| few whole numbers | one per value and a thermometer (`chest=4`, `chest>3.5`) |
| numbers | a thermometer, by default at the octiles of the training rows (`age>54.5`) |
| missing in training | one more (`age missing`), the others being 0 |
| constant in training, or without a name (row numbers) | none |

Why two bits for two values: weights are +1 or -1, never 0. A single bit always counts; of two
bits exactly one is on, so equal weights say the same whatever the value is (a constant, which the
bias takes up) and the column is ignored, while opposite weights count double. In the same way few
whole numbers get both readings, as codes and as an order: with weights ±1 neither can spell the
other well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from vitrail.data.cells import Cells, as_word, column_names, read_cells
from vitrail.data.checks import checked_count
from vitrail.data.errors import DataError, listed
from vitrail.data.plain import PlainReader

FEW_NUMBERS = 10  # up to this many distinct whole numbers may be codes rather than amounts
MOST_WHOLE = 2**31 - 1
LARGEST = float(np.finfo(np.float32).max)
STRAY_WORDS = 0.1  # a column of amounts may hold this share of words, such as "unknown"


@dataclass(frozen=True)
class ColumnCode:
    """What one column becomes. Bits come in the order of the fields, the missing bit last.

    categories  words with a bit each
    other       whether any other word has a bit of its own
    thresholds  ascending; a number lies in one of the len(thresholds) + 1 bins between them
    values      a name for each bin, if the bins have a bit each; a thermometer bit `x > threshold`
                besides, unless there are only two bins, where it would repeat one of them
    missing     whether a missing value has a bit of its own
    typical     the training median, read where a number is missing that never was in training
    whole       whether all numbers in training were whole and fit 32 bits: then numbers are
                compared exactly, else as float32, which is how exported code holds them
    """

    name: str
    numeric: bool
    categories: tuple[str, ...] = ()
    other: bool = False
    thresholds: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    missing: bool = False
    typical: float = 0.0
    whole: bool = False

    @property
    def bit_names(self) -> list[str]:
        """One name a bit."""
        names = [f"{self.name}={word}" for word in self.categories]
        names += [f"{self.name} other"] * self.other
        names += [f"{self.name}={value:.15g}" for value in self.values]
        names += [f"{self.name}>{threshold:.15g}" for threshold in self._thermometer]
        names += [f"{self.name} missing"] * self.missing
        return names

    @property
    def _thermometer(self) -> tuple[float, ...]:
        return () if len(self.values) == 2 else self.thresholds

    def bits(self, cells: Cells, start: int = 0) -> np.ndarray:
        """The column's bits, (rows, bits) int8; `start` is the first row's place in its file."""
        if self.numeric:
            self._check_words(cells, start)
        numbers, missing, words = cells.numbers, cells.missing, cells.is_word
        if self.numeric and not self.missing:
            numbers = np.where(missing, self.typical, numbers)
        if not self.numeric:
            words = ~missing | (not self.missing)  # numbers, and news of no value, are words here
        parts: list[np.ndarray] = []
        if self.categories or self.other:
            place = {word: i for i, word in enumerate(self.categories)}
            found = [
                place.get(as_word(level), -1) if word else -2
                for level, word in zip(cells.levels, words, strict=True)
            ]
            parts += [np.equal(found, i) for i in range(len(self.categories))]
            parts += [np.equal(found, -1)] * self.other
        if self.thresholds or self.values:
            numbers, cuts = (rounded(x, self.whole) for x in (numbers, self.thresholds))
            bins = np.where(np.isnan(numbers), -1, np.searchsorted(cuts, numbers))
            parts += [bins == i for i in range(len(self.values))]
            parts += [bins > i for i in range(len(self._thermometer))]
        parts += [missing] * self.missing
        return np.stack(parts, axis=1).astype(np.int8)[cells.codes]

    def _check_words(self, cells: Cells, start: int) -> None:
        for level in np.flatnonzero(cells.is_word):
            word = as_word(cells.levels[level])
            if word not in self.categories and not self.other:
                row = start + cells.first_row(int(level)) + 1
                raise DataError(
                    f"column {self.name!r}, row {row}: expected a number, found {word!r}; "
                    "correct it, or leave the cell empty if unknown"
                )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and text."""
        return {
            "name": self.name,
            "numeric": self.numeric,
            "categories": list(self.categories),
            "other": self.other,
            "thresholds": list(self.thresholds),
            "values": list(self.values),
            "missing": self.missing,
            "typical": self.typical,
            "whole": self.whole,
        }

    @staticmethod
    def from_dict(state: object) -> ColumnCode:
        """The reverse of `to_dict`; anything else is refused."""
        read = PlainReader(state, "column code")
        code = ColumnCode(
            name=read.text("name"),
            numeric=read.flag("numeric"),
            categories=read.texts("categories"),
            other=read.flag("other"),
            thresholds=read.numbers("thresholds"),
            values=read.numbers("values"),
            missing=read.flag("missing"),
            typical=read.number("typical"),
            whole=read.optional_flag("whole"),
        )
        read.done()
        thresholds, values = code.thresholds, code.values
        read.require(len(set(code.categories)) == len(code.categories), "repeats a category")
        for numbers in (thresholds, values):
            ascending = all(low < high for low, high in pairwise(numbers))
            read.require(ascending, "has numbers out of order")
        read.require(len(values) in (0, len(thresholds) + 1), "needs a value for each bin")
        read.require(code.numeric or not thresholds, "has thresholds for words")
        read.require(bool(code.bit_names), "has no bits")
        return code


@dataclass(frozen=True)
class TableEncoder:
    """Turns tables into bits the way it was fitted to.

    columns  what each informative column becomes
    names    all columns of the training table in their order, with those that became no bits

    Example: `encoder = TableEncoder.fit(train); bits = encoder.transform(test)`.
    """

    columns: tuple[ColumnCode, ...]
    names: tuple[str, ...]

    @staticmethod
    def fit(
        table: Any,
        *,
        thresholds: int = 7,
        max_categories: int = 32,
        pairs: bool = True,
        weight: np.ndarray | None = None,
    ) -> TableEncoder:
        """Learn the code of every column of a table: a mapping, a data frame or a 2-D array.

        thresholds      most thermometer bits of a column of numbers
        max_categories  a column with more words keeps those that occur most often, and at least
                        twice; the rest share one bit
        pairs           a bit for each of two values; False gives such a column one bit
        weight          (rows,) > 0: a row of weight k counts as k rows
        """
        checked_count("thresholds", thresholds, 1)
        checked_count("max_categories", max_categories, 1)
        names = column_names(table)
        codes = []
        for name, cells in _read(table, [name for name in names if name.strip()]):
            cells = replace(cells, weight=weight)
            _check_training_rows(cells, name)
            codes.append(_fit_column(name, cells, thresholds, max_categories, pairs))
        kept = tuple(code for code in codes if code.bit_names)
        if not kept:
            raise DataError(
                f"none of the {len(names)} columns tells rows apart (each is constant or has a "
                "different word in every row); add columns that carry information"
            )
        return TableEncoder(kept, tuple(names))

    @property
    def bit_names(self) -> tuple[str, ...]:
        """One readable name a bit, such as `odor=n`, `age>54.5`, `age missing`."""
        return tuple(name for code in self.columns for name in code.bit_names)

    @property
    def dropped(self) -> tuple[str, ...]:
        """The training columns that became no bits."""
        kept = {code.name for code in self.columns}
        return tuple(name for name in self.names if name not in kept)

    def transform(self, table: Any) -> np.ndarray:
        """The bits of a table's rows, (rows, bits) int8 of 0 and 1.

        Columns are found by name, further ones are ignored; an array's by place. A category never
        seen sets the `other` bit, or none; a number out of range fills or empties the thermometer;
        a missing value where training had none is read as the median, or as a category never seen.
        """
        wanted = [code.name for code in self.columns]
        present = column_names(table)
        if not hasattr(table, "columns") and not isinstance(table, Mapping):
            if len(present) != len(self.names):
                raise DataError(
                    f"expected {len(self.names)} columns as in training, got {len(present)}; "
                    "give the same columns in the same order"
                )
            wanted = [f"x{self.names.index(name)}" for name in wanted]
        absent = [name for name in wanted if name not in set(present)]
        if absent:
            raise DataError(
                f"column{'s' * (len(absent) > 1)} {listed(absent)} not found; the model was "
                f"trained with {listed(self.names)} and the table has {listed(present)}"
            )
        start = getattr(table, "start", 0)
        columns = zip(self.columns, _read(table, wanted), strict=True)
        return np.concatenate([code.bits(cells, start) for code, (_, cells) in columns], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """The encoder as plain lists, numbers and text, fit for JSON."""
        return {"columns": [code.to_dict() for code in self.columns], "names": list(self.names)}

    @staticmethod
    def from_dict(state: object) -> TableEncoder:
        """The encoder of `to_dict`; anything malformed is a ValueError. Runs no code."""
        read = PlainReader(state, "encoder")
        columns = tuple(ColumnCode.from_dict(column) for column in read.items("columns"))
        names = read.texts("names")
        read.done()
        used = [code.name for code in columns]
        read.require(bool(used), "has no columns")
        read.require(len(set(names)) == len(names), "repeats a column name")
        read.require([name for name in names if name in set(used)] == used, "names other columns")
        return TableEncoder(columns, names)


def _read(table: Any, names: list[str]) -> Iterator[tuple[str, Cells]]:
    """The named columns of a table, or those of an array by the place in x0, x1, …"""
    columns: Any = table
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        keys = table if isinstance(table, Mapping) else table.columns
        by_name = {str(key): key for key in keys}
    else:
        columns = np.asarray(table)
        by_name = {name: (slice(None), int(name[1:])) for name in names}
    has_cells = hasattr(table, "cells")  # vitrail's own tables know their distinct values
    rows = None
    for name in names:
        key = by_name[name]
        cells = columns.cells(key) if has_cells else read_cells(columns[key], name)
        rows = len(cells.codes) if rows is None else rows
        if len(cells.codes) != rows:
            raise DataError(
                f"column {name!r} has {len(cells.codes)} rows, those before it {rows}; "
                "give one value a row"
            )
        yield name, cells


def _check_training_rows(cells: Cells, name: str) -> None:
    rows = len(cells.codes)
    if rows < 2:
        raise DataError(f"expected at least two rows to learn from, got {rows}; add rows")
    if cells.missing.all():
        raise DataError(f"column {name!r} is missing in every row; drop the column")


def _fit_column(
    name: str, cells: Cells, thresholds: int, max_categories: int, pairs: bool
) -> ColumnCode:
    missing = bool(cells.missing.any())
    number_rows = cells.counts[cells.is_number].sum()
    word_rows = cells.counts[cells.is_word].sum()
    stray = cells.is_number.sum() > FEW_NUMBERS and word_rows <= STRAY_WORDS * (
        word_rows + number_rows
    )
    if word_rows and not stray:
        counted = _count_words(cells, ~cells.missing)
        categories, other = _keep_frequent(counted, max_categories)
        if len(categories) + other + missing < 2:
            return ColumnCode(name, numeric=False)
        if not pairs and len(categories) + other + missing == 2:
            categories = categories[1:]
        return ColumnCode(name, False, categories, other, missing=missing)
    categories, other = _keep_frequent(_count_words(cells, cells.is_word), max_categories)
    numbers = cells.numbers[cells.is_number]
    whole = bool(np.all((numbers == np.round(numbers)) & (np.abs(numbers) <= MOST_WHOLE)))
    values, place = np.unique(rounded(numbers, whole), return_inverse=True)
    counts = np.bincount(place, cells.counts[cells.is_number])
    if len(values) == 1 and not missing:
        return ColumnCode(name, numeric=True)
    codes = len(values) <= FEW_NUMBERS and bool(np.all(values == np.round(values)))
    named = pairs if len(values) <= 2 else codes
    return ColumnCode(
        name,
        True,
        categories,
        other,
        thresholds=_cuts(values, counts, len(values) if named else thresholds, whole),
        values=tuple(values.tolist()) if named else (),
        missing=missing,
        typical=float(values[np.searchsorted(np.cumsum(counts), counts.sum() / 2)]),
        whole=whole,
    )


def _count_words(cells: Cells, levels: np.ndarray) -> dict[str, float]:
    counted: dict[str, float] = {}
    for level, count in zip(cells.levels[levels], cells.counts[levels], strict=True):
        word = as_word(level)
        counted[word] = counted.get(word, 0) + count
    return counted


def _keep_frequent(counted: dict[str, float], most: int) -> tuple[tuple[str, ...], bool]:
    """The words that get a bit, in alphabetical order, and whether any are left over."""
    if len(counted) <= most:
        return tuple(sorted(counted)), False
    ranked = sorted(counted, key=lambda word: (-counted[word], word))
    return tuple(sorted(word for word in ranked[:most] if counted[word] > 1)), True


def rounded(numbers: Any, whole: bool) -> np.ndarray:
    """Numbers as a column compares them, float64: as they are, or the nearest finite float32."""
    numbers = np.asarray(numbers, np.float64)
    if whole:
        return numbers
    return np.clip(numbers, -LARGEST, LARGEST).astype(np.float32).astype(np.float64)


def _cuts(values: np.ndarray, counts: np.ndarray, most: int, whole: bool) -> tuple[float, ...]:
    """At most `most` thresholds between neighbouring values: the fullest bin is halved again.

    Quantiles, but a value that fills several of them (many zeros, say) leaves its cuts to the
    rest. values, counts: (L,) distinct, ascending, and how often each occurs.
    """
    rows = np.concatenate([[0], np.cumsum(counts)])  # rows[i]: how many lie below values[i]
    bins = [(0, len(values))]
    if len(values) <= most + 1:
        bins = [(i, i + 1) for i in range(len(values))]
    while len(bins) <= most:
        fullest = max(bins, key=lambda b: rows[b[1]] - rows[b[0]] if b[1] - b[0] > 1 else 0)
        low, high = fullest
        if high - low == 1 or (rows[high] - rows[low]) * 2 * (most + 1) < rows[-1]:
            break  # what is left to halve is too small to tell much
        middle = (rows[low] + rows[high]) / 2
        cut = low + 1 + int(np.searchsorted(rows[low + 1 : high - 1], middle))
        if cut > low + 1 and middle - rows[cut - 1] <= rows[cut] - middle:
            cut -= 1
        bins[bins.index(fullest) : bins.index(fullest) + 1] = [(low, cut), (cut, high)]
    return tuple(_between(float(values[i - 1]), float(values[i]), whole) for i, _ in bins[1:])


def _between(low: float, high: float, whole: bool) -> float:
    """The shortest decimal in the middle half of (low, high): 54.5 rather than 54.49999."""
    middle = low / 2 + high / 2
    quarter = high / 4 - low / 4
    for digits in range(1, 17):
        short = float(f"{middle:.{digits}g}")
        parts = low <= rounded(short, whole) < high
        if middle - quarter <= short <= middle + quarter and low <= short and parts:
            return short
    return low
