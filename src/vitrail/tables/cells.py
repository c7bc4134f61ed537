"""The cells of a table: missing, a number, or a word.

A column is read through its distinct values, so that text is parsed once per value and not once
per row: `levels[codes]` is the column. Arrow columns are held in few types:

| given | held as |
|---|---|
| text of any layout (large_string, string_view, dictionaries) | text by its distinct values |
| decimals, half floats, run-end encoded values | float64, float32, the values |
| categories that are no text | a dictionary with 32-bit places |
| numbers, booleans, dates, lists, … | as they are, to pass through or be refused on use |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from vitrail.errors import DataError
from vitrail.tables.spelling import CELL_TYPES, Spelling, as_number, numeral, stripped

# Spellings of "no value", compared without case and without surrounding blanks.
MISSING_WORDS = frozenset(
    {"", "?", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "nat"}
)
# Beyond the pixels of 181×181, or the genes of a man, memory and time go to columns alone.
MAX_COLUMNS = 1 << 15
MISSING_TYPES = frozenset({"NoneType", "NAType", "NaTType"})  # the last two are pandas', by name
DATES = ("date", "time", "period")  # how types of dates and times begin, wherever they are from

TEXT = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class Cells:
    """One column, parsed: L distinct values and the index of each row's value."""

    levels: np.ndarray  # (L,) the distinct values, unparsed
    numbers: np.ndarray  # (L,) float64, finite, NaN where the value is no number
    missing: np.ndarray  # (L,) bool
    codes: np.ndarray  # (rows,) index into the levels
    weight: np.ndarray | None = None  # (rows,) weight of each row; 1 if None
    are_words: bool = False  # whether the source calls the values categories, even numbers

    @property
    def counts(self) -> np.ndarray:
        """The weighted number of rows per level, (L,)."""
        return np.bincount(self.codes, self.weight, minlength=len(self.levels))

    def spelled(self, spelling: Spelling) -> Cells:
        """The same cells, with numbers in the format of a column."""
        numbers = self.numbers.copy()
        plain = spelling.decimal == "." and not spelling.unit
        for i in np.flatnonzero(np.isnan(numbers) if plain else np.ones(len(numbers), bool)):
            if isinstance(self.levels[i], str):
                numbers[i] = numeral(self.levels[i]).read(spelling)
        return replace(self, numbers=np.nan_to_num(numbers, nan=np.nan))

    @property
    def is_word(self) -> np.ndarray:
        """(L,) bool: neither missing nor a number."""
        return ~self.missing & np.isnan(self.numbers)

    def first_row(self, level: int) -> int:
        """The first row, counted from 0, that holds the level."""
        return int(np.argmax(self.codes == level))


def place_in_table(row: int) -> str:
    """The name of a row, counted from 0, that is not from a file."""
    return f"row {row + 1}"


def is_missing(value: object) -> bool:
    """Whether a cell holds no value: None, NaN, NaT, NA, blank text or one of MISSING_WORDS."""
    if isinstance(value, str):
        return stripped(value).casefold() in MISSING_WORDS
    if type(value).__name__ in MISSING_TYPES:
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def as_category(value: object) -> str:
    """The text by which a category is known: stripped, whole numbers without a point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = stripped(str(value))
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def as_column(
    values: Any, demand: str, as_array: Callable[[Any], np.ndarray] = np.asarray
) -> np.ndarray:
    """The values as an array (rows,), or an error that starts with the demand."""
    try:
        column = as_array(values)
    except ValueError:  # lists of different lengths
        raise DataError(f"{demand}; it holds lists") from None
    if column.ndim != 1:
        raise DataError(f"{demand}; it has shape {column.shape}")
    return column


def read_cells(values: Any, name: str) -> Cells:
    """Parse the column `name`, of Arrow or anything that numpy takes for an array.

    Cost: rows, to find the distinct values, which are then parsed.
    """
    are_words = False
    if isinstance(values, pa.ChunkedArray) and pa.types.is_dictionary(values.type):
        are_words = not pa.types.is_string(values.type.value_type)
        levels, codes = decode_dictionary(values, name)
        used = np.bincount(codes, minlength=len(levels)) > 0  # part of a table has only some
        levels, codes = levels[used], (np.cumsum(used) - 1)[codes]
    else:
        values = as_column(values, f"column {name!r} must hold a value per row")
        if values.dtype.kind in "biuf":
            levels, codes = np.unique(values, return_inverse=True)
            numbers = levels.astype(np.float64)
            return Cells(levels, np.nan_to_num(numbers, nan=np.nan), np.isnan(numbers), codes)
        if values.dtype.kind not in "OU":
            raise _not_a_cell(str(values.dtype), name)
        column = values.tolist()
        try:
            index = {value: i for i, value in enumerate(dict.fromkeys(column))}
        except TypeError:
            unhashable = next(value for value in column if not isinstance(value, Hashable))
            raise _not_a_cell(type(unhashable).__name__, name) from None
        levels = np.empty(len(index), object)
        levels[:] = list(index)
        codes = np.fromiter(map(index.__getitem__, column), np.intp, len(column))
    for kind in set(map(type, levels)):
        if not issubclass(kind, CELL_TYPES) and kind.__name__ not in MISSING_TYPES:
            raise _not_a_cell(kind.__name__, name)
    numbers = np.fromiter(map(as_number, levels), np.float64, len(levels))
    missing = np.isnan(numbers)
    missing[missing] = [is_missing(level) for level in levels[missing]]
    # infinities become the largest floats, so that midpoints and JSON stay finite
    return Cells(levels, np.nan_to_num(numbers, nan=np.nan), missing, codes, are_words=are_words)


def decode_dictionary(column: pa.ChunkedArray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, None last for rows without one, and each row's place among them."""
    column = column.unify_dictionaries().combine_chunks()
    try:
        values = column.dictionary.to_pylist()
    except UnicodeDecodeError:
        raise DataError(
            f"column {name!r} holds text that is not UTF-8; write the file again as UTF-8"
        ) from None
    levels = np.empty(len(values) + 1, object)
    levels[:-1] = values
    return levels, column.indices.fill_null(len(values)).to_numpy()


def _not_a_cell(kind: str, name: str) -> DataError:
    advice = advice_on_dates(kind) or "convert it or leave it out"
    return DataError(
        f"column {name!r} holds values of type {kind}; expected numbers, text or booleans: {advice}"
    )


def advice_on_dates(kind: str) -> str:
    """Advice for a type of dates or times of numpy, pandas or Python; "" for other types."""
    if not kind.casefold().startswith(DATES):
        return ""
    return "put what matters of it in columns of numbers, such as year, month, weekday or age"


def checked_names(names: list[str], title: str = "") -> list[str]:
    """The names, if they are distinct and within the limit of columns."""
    of_file = f"{title}: " * bool(title)
    if title and len(names) > MAX_COLUMNS:
        raise DataError(
            f"{of_file}expected at most {MAX_COLUMNS:,} columns, found {len(names):,}; choose "
            "those that matter, or make images smaller"
        )
    seen: set[str] = set()
    for name in names:
        if name.encode("utf-8", "replace").decode() != name:
            raise DataError(f"{of_file}column name {name!r} cannot be written as UTF-8; rename it")
        if name in seen:
            raise DataError(
                f"{of_file}column name {name!r} occurs more than once; rename one of them"
            )
        seen.add(name)
    return names


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which a column of that type is stored."""
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return TEXT
    if isinstance(kind, pa.DictionaryType):
        held = plain_type(kind.value_type)
        return held if held == TEXT else pa.dictionary(pa.int32(), held)
    if isinstance(kind, pa.RunEndEncodedType):
        return plain_type(kind.value_type)
    if types.is_decimal(kind):
        return pa.float64()
    return pa.float32() if types.is_float16(kind) else kind


def plain_table(table: pa.Table) -> pa.Table:
    """The table in the stored types, without metadata."""
    names = table.column_names
    columns = [_held(column, name) for name, column in zip(names, table.columns, strict=True)]
    return pa.Table.from_arrays(columns, names)


def _held(column: Any, name: str) -> Any:
    target = plain_type(column.type)
    if target == column.type:
        return column
    try:
        if isinstance(column.type, pa.RunEndEncodedType):
            return _held(compute.call_function("run_end_decode", [column]), name)
        if isinstance(column.type, pa.DictionaryType):
            parts = [
                pa.DictionaryArray.from_arrays(
                    part.indices.cast(pa.int32()), part.dictionary.cast(target.value_type)
                )
                for part in column.chunks
            ]
            return pa.chunked_array(parts, target)
        if target == TEXT:
            return column.cast(pa.string()).dictionary_encode()
        return column.cast(target)
    except pa.ArrowException as error:
        raise DataError(
            f"column {name!r} holds {column.type} values that cannot be read "
            f"({sentence(error)}); convert it or leave it out"
        ) from None


def sentence(error: Exception) -> str:
    """A pyarrow error message on one line."""
    return " ".join(str(error).split()).rstrip(".")
