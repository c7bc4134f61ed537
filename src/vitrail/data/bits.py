"""Columns that are bits already: 0/1, −1/+1, booleans, and the pixels of images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrail.data.cells import column_names
from vitrail.data.errors import DataError, listed
from vitrail.data.plain import PlainReader

PIXEL_RANGE = (0.0, 255.0)


@dataclass(frozen=True)
class BitColumns:
    """One bit a column: 1 above the middle of [low, high], 0 below or at it.

    low, high  (0, 1) for bits and booleans, (−1, 1) for signs, (0, 255) for pixels
    names      the columns in training, in their order
    """

    names: tuple[str, ...]
    low: float
    high: float

    @property
    def bit_names(self) -> tuple[str, ...]:
        """One name a bit: the column's."""
        return self.names

    def transform(self, table: Any) -> np.ndarray:
        """The bits of a table's rows, (rows, bits) int8 of 0 and 1.

        Columns are found by name, further ones are ignored; an array's by place.
        """
        if isinstance(table, Mapping) or hasattr(table, "columns"):
            present = dict(zip(column_names(table), _keys(table), strict=True))
            absent = [name for name in self.names if name not in present]
            if absent:
                raise DataError(
                    f"column{'s' * (len(absent) > 1)} {listed(absent)} not found; the model was "
                    f"trained with {listed(self.names)} and the table has {listed(present)}"
                )
            columns = [np.asarray(table[present[name]]) for name in self.names]
            values = np.stack([_numbers(c, n) for c, n in zip(columns, self.names, strict=True)], 1)
        else:
            values = np.asarray(table)
            if values.ndim != 2 or values.shape[1] != len(self.names):
                raise DataError(
                    f"expected {len(self.names)} columns as in training, got an array of shape "
                    f"{values.shape}; give the same columns in the same order"
                )
            values = _numbers(values, "of the array")
        strange = ~((values >= self.low) & (values <= self.high))  # NaN compares false
        if strange.any():
            row, column = np.argwhere(strange)[0]
            raise DataError(
                f"column {self.names[column]!r}, row {row + 1}: expected {self.low:g} or "
                f"{self.high:g} as in training, found {values[row, column]:g}; correct it"
            )
        return (values > (self.low + self.high) / 2).astype(np.int8)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and text, fit for JSON."""
        return {"names": list(self.names), "low": self.low, "high": self.high}

    @staticmethod
    def from_dict(state: object) -> BitColumns:
        """The reverse of `to_dict`; anything else is refused."""
        read = PlainReader(state, "bit columns")
        code = BitColumns(read.texts("names"), read.number("low"), read.number("high"))
        read.done()
        read.require(len(set(code.names)) == len(code.names) > 0, "repeats a name or has none")
        read.require(code.low < code.high, "has an empty range")
        return code


def bit_range(values: np.ndarray) -> tuple[float, float] | None:
    """(0, 1) or (−1, 1) where every value (rows, columns) is one of the two, else None."""
    if values.dtype.kind == "b":
        return 0.0, 1.0
    if values.dtype.kind not in "iuf" or values.size == 0:
        return None
    ones = values == 1
    if bool((ones | (values == 0)).all()):
        return 0.0, 1.0
    if bool((ones | (values == -1)).all()):
        return -1.0, 1.0
    return None


def _keys(table: Any) -> list[Any]:
    return list(table if isinstance(table, Mapping) else table.columns)


def _numbers(values: np.ndarray, name: str) -> np.ndarray:
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"column {name!r}: expected numbers as in training, found {values.dtype}; correct it"
        ) from None
