"""Tables of all types as one: named columns, read one at a time.

vitrail's own tables, arrays, sparse matrices of scipy, mappings and data frames of pandas are read
as they are. Others, polars' and pyarrow's among them, hand over their columns by the Arrow protocol
(`__arrow_c_stream__`); no package has to be installed for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from vitrail.errors import DataError, listed
from vitrail.tables.cells import (
    Cells,
    as_column,
    checked_names,
    place_in_table,
    plain_table,
    read_cells,
    sentence,
)
from vitrail.tables.spelling import stripped
from vitrail.tables.table import Table


@dataclass(frozen=True, eq=False)
class ColumnFrame:
    """Columns of an array, a sparse matrix, a mapping or a data frame of pandas."""

    columns: list[str]
    read: Callable[[int], Any]  # a column by its place
    height: int  # rows of the whole table
    has_names: bool = True
    rows: np.ndarray | None = None  # selected rows, all if None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.columns)}

    def __len__(self) -> int:
        return self.height if self.rows is None else len(self.rows)

    def __getitem__(self, name: str) -> np.ndarray:
        """A column, (rows,), as it came."""
        return self._chosen_rows(name, self.read(self._places[name]))

    def cells(self, name: str) -> Cells:
        """A column, parsed."""
        column = self.read(self._places[name])
        are_words = hasattr(getattr(column, "dtype", None), "categories")  # pandas' way to say so
        return replace(read_cells(self._chosen_rows(name, column), name), are_words=are_words)

    def _chosen_rows(self, name: str, values: Any) -> np.ndarray:
        column = as_column(values, f"column {name!r} must hold a value per row")
        if len(column) != self.height:
            raise DataError(
                f"column {name!r} has {len(column)} rows, those before it {self.height}; "
                "give one value per row"
            )
        return column if self.rows is None else column[self.rows]

    def take(self, rows: np.ndarray) -> ColumnFrame:
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    def place(self, row: int) -> str:
        """What a row, counted from 0, is called in a sentence."""
        return place_in_table(row if self.rows is None else int(self.rows[row]))


Frame = Table | ColumnFrame
"""Rows with columns that have names, or places only, which are then x0, x1, …"""


def as_frame(table: Any) -> Frame:
    """Any table as a frame."""
    if isinstance(table, Table | ColumnFrame):
        return table
    table = collected(table)
    if type(table).__module__.split(".")[0] == "scipy" and hasattr(table, "tocsc"):
        return _sparse_frame(table.tocsc(copy=False))
    if is_arrow(table):
        return from_arrow(table)
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        return _mapping_frame(table)
    return _array_frame(np.asarray(table))


def collected(table: Any) -> Any:
    """A lazy frame of polars with its rows; any other table as it is."""
    is_lazy = type(table).__module__.split(".")[0] == "polars" and hasattr(table, "collect")
    return table.collect() if is_lazy else table


def is_arrow(table: Any) -> bool:
    """Whether it hands over columns by the Arrow protocol; pandas also does, but not all it has."""
    return hasattr(table, "__arrow_c_stream__") and type(table).__module__.split(".")[0] != "pandas"


def from_arrow(table: Any) -> Table:
    """The table of an object with the Arrow protocol: polars, pyarrow, duckdb, …"""
    try:
        arrow = pa.table(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"the {type(table).__name__} cannot be read as a table ({sentence(error)}); "
            "give a table with named columns"
        ) from None
    checked_names(arrow.column_names)
    return Table(plain_table(arrow))


def _array_frame(array: np.ndarray) -> ColumnFrame:
    if array.ndim != 2:
        raise DataError(f"expected a table or a 2-D array (rows, columns), got shape {array.shape}")
    height, width = array.shape
    return ColumnFrame(_names(width), lambda place: array[:, place], height, has_names=False)


def _sparse_frame(matrix: Any) -> ColumnFrame:
    """A sparse matrix of scipy's in csc format; what it does not store is 0."""
    height, width = matrix.shape

    def read(place: int) -> np.ndarray:
        stored = slice(matrix.indptr[place], matrix.indptr[place + 1])
        column = np.zeros(height, matrix.dtype)
        np.add.at(column, matrix.indices[stored], matrix.data[stored])  # one place may come twice
        return column

    return ColumnFrame(_names(width), read, height, has_names=False)


def _mapping_frame(table: Any) -> ColumnFrame:
    """A mapping of columns, or a data frame of pandas; its first column gives the height."""
    keys = list(table if isinstance(table, Mapping) else table.columns)
    names = checked_names([str(key) for key in keys])
    first = table[keys[0]] if keys else ()
    if not hasattr(first, "__len__"):
        first = as_column(first, f"column {names[0]!r} must hold a value per row")
    return ColumnFrame(names, lambda place: table[keys[place]], len(first))


def without_names(frame: Frame) -> Frame:
    """The frame with its columns found by their places, whatever they are called."""
    names = _names(len(frame.columns))
    if isinstance(frame, Table):
        return replace(frame, arrow=frame.arrow.rename_columns(names), has_names=False)
    return replace(frame, columns=names, has_names=False)


def _names(width: int) -> list[str]:
    return [f"x{i}" for i in range(width)]


def places(frame: Frame, trained: tuple[str, ...], needed: list[str]) -> dict[str, str]:
    """Where a frame has the `needed` columns of those trained with, by name or else by place."""
    present = frame.columns
    if not frame.has_names:
        if len(present) != len(trained):
            raise DataError(
                f"expected {len(trained)} columns as in training, got {len(present)}; "
                "give the same columns in the same order"
            )
        by_name = dict(zip(trained, present, strict=True))
    else:
        by_name = {stripped(name): name for name in present}  # as headers of files are read
        by_name = {name: by_name[stripped(name)] for name in needed if stripped(name) in by_name}
        by_name |= {name: name for name in present}
    absent = [name for name in needed if name not in by_name]
    if absent:
        raise DataError(
            f"column{'s' * (len(absent) > 1)} {listed(absent)} not found; the model was "
            f"trained with {listed(trained)} and the table has {listed(present)}"
        )
    return {name: by_name[name] for name in needed}
