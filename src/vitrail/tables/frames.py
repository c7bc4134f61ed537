"""Tables of all makers in one shape: named columns, read one at a time.

vitrail's own tables, arrays, sparse matrices of scipy, mappings and data frames of pandas are read
as they are. Others, polars' and pyarrow's among them, hand over their columns by the Arrow protocol
(`__arrow_c_stream__`); no package has to be installed for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from vitrail.errors import DataError, listed
from vitrail.tables.arrow import plain_table, sentence
from vitrail.tables.blanks import stripped
from vitrail.tables.cells import Cells, as_column, checked_names, place_in_table, read_cells
from vitrail.tables.table import Table


class Frame(Protocol):
    """Rows with columns that have names, or places only."""

    @property
    def columns(self) -> list[str]:
        """The names; x0, x1, … of an array."""
        ...

    @property
    def has_names(self) -> bool: ...

    def __len__(self) -> int: ...

    def __getitem__(self, name: str) -> np.ndarray:
        """A column, (rows,), as it came."""
        ...

    def cells(self, name: str) -> Cells:
        """A column, parsed."""
        ...

    def take(self, rows: np.ndarray) -> Frame: ...

    def place(self, row: int) -> str:
        """What a row, counted from 0, is called in a sentence."""
        ...


def as_frame(table: Any) -> Frame:
    """Any table as a frame."""
    table = collected(table)
    if isinstance(table, Table | ArrayFrame | SparseFrame | ColumnFrame | PlaceFrame):
        return table
    if is_sparse(table):
        return SparseFrame(table.tocsc(copy=False))
    if is_arrow(table):
        return from_arrow(table)
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        return ColumnFrame(table)
    return ArrayFrame(np.asarray(table))


def collected(table: Any) -> Any:
    """A lazy frame of polars with its rows; any other table as it is."""
    is_lazy = type(table).__module__.split(".")[0] == "polars" and hasattr(table, "collect")
    return table.collect() if is_lazy else table


def is_sparse(table: Any) -> bool:
    """Whether it is a sparse matrix or array of scipy's."""
    return type(table).__module__.split(".")[0] == "scipy" and hasattr(table, "tocsc")


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


@dataclass(frozen=True, eq=False)
class ArrayFrame:
    """A numpy array (rows, columns)."""

    array: np.ndarray
    has_names = False

    def __post_init__(self) -> None:
        if self.array.ndim != 2:
            raise DataError(
                f"expected a table or a 2-D array (rows, columns), got shape {self.array.shape}"
            )

    @property
    def columns(self) -> list[str]:
        return [f"x{i}" for i in range(self.array.shape[1])]

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.array[:, int(name[1:])]

    def cells(self, name: str) -> Cells:
        return read_cells(self[name], name)

    def take(self, rows: np.ndarray) -> ArrayFrame:
        return ArrayFrame(self.array[rows])

    def place(self, row: int) -> str:
        return place_in_table(row)


@dataclass(frozen=True, eq=False)
class SparseFrame:
    """A sparse matrix of scipy's, by columns; what it does not store is 0."""

    matrix: Any  # in scipy's csc format
    has_names = False

    @property
    def columns(self) -> list[str]:
        return [f"x{i}" for i in range(self.matrix.shape[1])]

    def __len__(self) -> int:
        return self.matrix.shape[0]

    def __getitem__(self, name: str) -> np.ndarray:
        place = int(name[1:])
        matrix = self.matrix
        stored = slice(matrix.indptr[place], matrix.indptr[place + 1])
        column = np.zeros(len(self), matrix.dtype)
        np.add.at(column, matrix.indices[stored], matrix.data[stored])  # one place may come twice
        return column

    def cells(self, name: str) -> Cells:
        return read_cells(self[name], name)

    def take(self, rows: np.ndarray) -> SparseFrame:
        return SparseFrame(self.matrix[rows])

    def place(self, row: int) -> str:
        return place_in_table(row)


@dataclass(frozen=True, eq=False)
class ColumnFrame:
    """A mapping of columns, or a data frame of pandas."""

    table: Any
    rows: np.ndarray | None = None  # the rows that were taken, all if None
    has_names = True

    @cached_property
    def _keys(self) -> dict[str, Any]:
        keys = list(self.table if isinstance(self.table, Mapping) else self.table.columns)
        return dict(zip(checked_names([str(key) for key in keys]), keys, strict=True))

    @property
    def columns(self) -> list[str]:
        return list(self._keys)

    @cached_property
    def _height(self) -> int:
        """The rows of the whole table, those of its first column."""
        first = next(iter(self._keys), None)
        if first is None:
            return 0
        column = self.table[self._keys[first]]
        return len(column) if hasattr(column, "__len__") else len(self._whole(first))

    def _whole(self, name: str) -> np.ndarray:
        return as_column(self.table[self._keys[name]], f"column {name!r} must hold a value a row")

    def __len__(self) -> int:
        return self._height if self.rows is None else len(self.rows)

    def __getitem__(self, name: str) -> np.ndarray:
        column = self._whole(name)
        if len(column) != self._height:
            raise DataError(
                f"column {name!r} has {len(column)} rows, those before it {self._height}; "
                "give one value a row"
            )
        return column if self.rows is None else column[self.rows]

    def cells(self, name: str) -> Cells:
        kind = getattr(self.table[self._keys[name]], "dtype", None)
        cells = read_cells(self[name], name)
        return replace(cells, are_words=hasattr(kind, "categories"))  # pandas' way to say so

    def take(self, rows: np.ndarray) -> ColumnFrame:
        return ColumnFrame(self.table, rows if self.rows is None else self.rows[rows])

    def place(self, row: int) -> str:
        return place_in_table(row if self.rows is None else int(self.rows[row]))


@dataclass(frozen=True, eq=False)
class PlaceFrame:
    """A frame whose columns are found by their places, whatever they are called."""

    frame: Frame
    has_names = False

    @property
    def columns(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.frame.columns))]

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.frame[self._named(name)]

    def cells(self, name: str) -> Cells:
        return self.frame.cells(self._named(name))

    def take(self, rows: np.ndarray) -> PlaceFrame:
        return PlaceFrame(self.frame.take(rows))

    def place(self, row: int) -> str:
        return self.frame.place(row)

    def _named(self, name: str) -> str:
        return self.frame.columns[int(name[1:])]


def places(frame: Frame, trained: tuple[str, ...], wanted: list[str]) -> dict[str, str]:
    """Where a frame has the columns `wanted` of those trained with, by name or else by place."""
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
        by_name = {name: by_name[stripped(name)] for name in wanted if stripped(name) in by_name}
        by_name |= {name: name for name in present}
    absent = [name for name in wanted if name not in by_name]
    if absent:
        raise DataError(
            f"column{'s' * (len(absent) > 1)} {listed(absent)} not found; the model was "
            f"trained with {listed(trained)} and the table has {listed(present)}"
        )
    return {name: by_name[name] for name in wanted}
