"""What a cell of a table says: nothing, a number, or a word.

A column is read through its distinct values, so that text is parsed once per value and not once
per row: `levels[codes]` is the column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitrail.errors import DataError
from vitrail.tables.blanks import stripped
from vitrail.tables.spelling import Spelling, plain_number, respelled

# Spellings of "no value", compared without case and without surrounding blanks.
MISSING_WORDS = frozenset(
    {"", "?", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "nat"}
)
# Beyond the pixels of 181×181, or the genes of a man, memory and time go to columns alone.
MAX_COLUMNS = 1 << 15
NOTHINGS = frozenset({"NoneType", "NAType", "NaTType"})  # the last two are pandas', by name
DATES = ("date", "time", "period")  # how types of dates and times begin, wherever they are from
CELL_TYPES = (str, int, float, np.integer, np.floating, np.bool_)


@dataclass(frozen=True)
class Cells:
    """One column, parsed: L distinct values and where each row finds its own."""

    levels: np.ndarray  # (L,) the distinct values as they came
    numbers: np.ndarray  # (L,) float64, finite, NaN where the value is no number
    missing: np.ndarray  # (L,) bool
    codes: np.ndarray  # (rows,) index into the levels
    weight: np.ndarray | None = None  # (rows,) how often each row counts; once if None
    are_words: bool = False  # whether its maker calls the values categories, also if they are 1, 2

    @property
    def counts(self) -> np.ndarray:
        """How many rows hold each level, (L,), each row as often as it counts."""
        return np.bincount(self.codes, self.weight, minlength=len(self.levels))

    def rows_of(self, levels: np.ndarray) -> int:
        """How many rows hold one of the levels, (L,) bool."""
        return int(levels[self.codes].sum())

    def spelled(self, spelling: Spelling) -> Cells:
        """The same cells, their numbers read as a column spells them."""
        return replace(self, numbers=_finite(respelled(self.levels, self.numbers, spelling)))

    @property
    def is_number(self) -> np.ndarray:
        """(L,) bool."""
        return ~np.isnan(self.numbers)

    @property
    def is_word(self) -> np.ndarray:
        """(L,) bool: neither missing nor a number."""
        return ~self.missing & ~self.is_number

    def first_row(self, level: int) -> int:
        """The first row, counted from 0, that holds the level."""
        return int(np.argmax(self.codes == level))


def place_in_table(row: int) -> str:
    """What a row, counted from 0, is called that stands in no file."""
    return f"row {row + 1}"


def is_missing(value: object) -> bool:
    """Whether a cell holds no value: None, NaN, NaT, NA, blank text or one of MISSING_WORDS."""
    if isinstance(value, str):
        return stripped(value).casefold() in MISSING_WORDS
    if type(value).__name__ in NOTHINGS:
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def as_number(value: object) -> float:
    """The number a cell spells as programs do, NaN if none; `true` and `false` are 1 and 0."""
    if isinstance(value, str):
        return plain_number(value)
    try:
        return float(value) if isinstance(value, CELL_TYPES) else math.nan
    except OverflowError:  # Python's whole numbers have no bound
        # only an int overflows
        return math.inf if value > 0 else -math.inf  # pyright: ignore[reportOperatorIssue]


def as_word(value: object) -> str:
    """The text by which a category is known: stripped, whole numbers without a point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return _utf8(stripped(str(value)))


def _utf8(text: str) -> str:
    """The text with `?` for what UTF-8 cannot write."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def as_column(
    values: Any, demand: str, as_array: Callable[[Any], np.ndarray] = np.asarray
) -> np.ndarray:
    """The values as an array (rows,), or an error that begins with the demand."""
    try:
        column = as_array(values)
    except ValueError:  # lists of different lengths
        raise DataError(f"{demand}; it holds lists") from None
    if column.ndim != 1:
        raise DataError(f"{demand}; it has shape {column.shape}")
    return column


def read_cells(values: Any, name: str) -> Cells:
    """Parse the column `name`. Cost: rows, to find the distinct values, which are then parsed."""
    values = as_column(values, f"column {name!r} must hold a value a row")
    if values.dtype.kind in "biuf":
        levels, codes = np.unique(values, return_inverse=True)
        numbers = levels.astype(np.float64)
        return Cells(levels, _finite(numbers), np.isnan(numbers), codes)
    if values.dtype.kind not in "OU":
        raise _not_a_cell(str(values.dtype), name)
    return parse_levels(*_factorize(values, name), name)


def parse_levels(levels: np.ndarray, codes: np.ndarray, name: str) -> Cells:
    """The cells of a column of objects whose distinct values are known."""
    for kind in set(map(type, levels)):
        if not issubclass(kind, CELL_TYPES) and kind.__name__ not in NOTHINGS:
            raise _not_a_cell(kind.__name__, name)
    numbers = np.fromiter(map(as_number, levels), np.float64, len(levels))
    missing = np.isnan(numbers)
    missing[missing] = [is_missing(level) for level in levels[missing]]
    return Cells(levels, _finite(numbers), missing, codes)


def _finite(numbers: np.ndarray) -> np.ndarray:
    """Infinities as the largest floats, so that midpoints and JSON stay finite."""
    return np.nan_to_num(numbers, nan=np.nan)


def _factorize(values: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    column = values.tolist()
    try:
        index = {value: i for i, value in enumerate(dict.fromkeys(column))}
    except TypeError:
        strange = next(value for value in column if not isinstance(value, Hashable))
        raise _not_a_cell(type(strange).__name__, name) from None
    levels = np.empty(len(index), object)
    levels[:] = list(index)
    return levels, np.fromiter(map(index.__getitem__, column), np.intp, len(column))


def _not_a_cell(kind: str, name: str) -> DataError:
    advice = advice_on_dates(kind) or "convert it or leave it out"
    return DataError(
        f"column {name!r} holds values of type {kind}; expected numbers, text or booleans: {advice}"
    )


def advice_on_dates(kind: str) -> str:
    """What to do about a type of dates or times, as numpy, pandas and Python call it; else none."""
    if not kind.casefold().startswith(DATES):
        return ""
    return "put what matters of it in columns of numbers, such as year, month, weekday or age"


def checked_names(names: list[str], title: str = "") -> list[str]:
    """The names, if no two are the same and a file has not absurdly many."""
    of_file = f"{title}: " * bool(title)
    if title and len(names) > MAX_COLUMNS:
        raise DataError(
            f"{of_file}expected at most {MAX_COLUMNS:,} columns, found {len(names):,}; choose "
            "those that matter, or make images smaller"
        )
    seen: set[str] = set()
    for name in names:
        if _utf8(name) != name:
            raise DataError(f"{of_file}column name {name!r} cannot be written as UTF-8; rename it")
        if name in seen:
            raise DataError(
                f"{of_file}column name {name!r} occurs more than once; rename one of them"
            )
        seen.add(name)
    return names
