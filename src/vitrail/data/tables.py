"""Tables from files: CSV, TSV, Parquet, NPZ and idx, whole or a batch at a time.

Cells of CSV and TSV stay the text they were, so that columns pass through and labels are written
back verbatim. pyarrow holds the columns; one comes out as a numpy array when asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vitrail.data.cells import Cells, parse_levels, read_cells
from vitrail.data.errors import DataError, TableTooLargeError, listed
from vitrail.data.memory import available_memory, in_gigabytes
from vitrail.data.sources import Format, Source, open_source

BATCH_ROWS = 65_536
LOADING_COPIES = 2  # joining blocks and their dictionaries holds the table twice for a while


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length.

    arrow        the columns
    start        the place of the first row in its file, counted from 0, when read in batches
    label        the column of labels, where the file says which (NPZ, idx)
    image_shape  (height, width) where the other columns are the pixels of an image, row by row
    """

    arrow: pa.Table
    start: int = 0
    label: str | None = None
    image_shape: tuple[int, int] | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.arrow.column_names

    def __len__(self) -> int:
        return self.arrow.num_rows

    def __getitem__(self, name: str) -> np.ndarray:
        """A column, (rows,): numbers as numbers, text as objects, None or NaN where missing."""
        self._require(name)
        chunks = [_to_numpy(chunk) for chunk in self.arrow.column(name).chunks]
        return np.concatenate(chunks) if chunks else np.empty(0, object)

    def cells(self, name: str) -> Cells:
        """A column, parsed; text is held by its distinct values already."""
        self._require(name)
        column = self.arrow.column(name)
        if not pa.types.is_dictionary(column.type) or not column.num_chunks:
            return read_cells(self[name], name)
        column = column.unify_dictionaries()
        levels, codes = zip(*map(_levels, column.chunks), strict=True)
        codes = np.concatenate(codes)
        used = np.bincount(codes, minlength=len(levels[0])) > 0  # part of a table has only some
        return parse_levels(levels[0][used], (np.cumsum(used) - 1)[codes], name)

    def without(self, *names: str) -> Table:
        """The table less some columns."""
        for name in names:
            self._require(name)
        return replace(self, arrow=self.arrow.drop_columns(list(names)))

    def take(self, rows: Any) -> Table:
        """The rows with the given indices, in that order."""
        return replace(self, arrow=self.arrow.take(pa.array(np.asarray(rows, np.int64))), start=0)

    def with_columns(self, columns: Mapping[str, Any]) -> Table:
        """The table with further columns on the right."""
        arrow = self.arrow
        for name, values in columns.items():
            if name in arrow.column_names:
                raise DataError(f"the table already has a column {name!r}; rename that one first")
            arrow = arrow.append_column(name, pa.array(values))
        return replace(self, arrow=arrow)

    def _require(self, name: str) -> None:
        if name not in self.columns:
            raise DataError(f"column {name!r} not found; columns are: {listed(self.columns, 20)}")


@dataclass(frozen=True)
class TableSize:
    """About how large a table is: rows, columns, and the bytes of memory that loading it takes."""

    rows: int
    columns: int
    loading: int


def read_table(path: str | Path, kind: Format | None = None) -> Table:
    """The whole table, or a TableTooLargeError before loading what memory cannot hold.

    The format is told by the file's name unless given: .csv and .tsv (gzipped or not), .parquet,
    .npz with arrays X and y or inputs and labels, MNIST's idx files; `-` is CSV from standard
    input.
    """
    with closing(open_source(path, kind)) as source:
        size = _size(source)
        available = available_memory()
        if available is not None and size.loading > available:
            raise TableTooLargeError(
                f"{path}: about {size.rows:,} rows × {size.columns} columns need "
                f"{in_gigabytes(size.loading)} of memory to load, {in_gigabytes(available)} is "
                "available; use a sample of the rows or fewer columns"
            )
        arrow = pa.Table.from_batches(source.blocks(), source.schema).unify_dictionaries()
        return Table(arrow, 0, source.label, source.image_shape)


def iter_table(
    path: str | Path,
    batch_rows: int = BATCH_ROWS,
    kind: Format | None = None,
) -> Iterator[Table]:
    """The table as batches of at most `batch_rows` rows; CSV, TSV and Parquet in constant memory.

    There is always a first batch, empty if the file has no rows, to tell the columns.
    """
    with closing(open_source(path, kind)) as source:
        start = 0
        for block in source.blocks():
            for first in range(0, block.num_rows, batch_rows):
                arrow = pa.Table.from_batches([block.slice(first, batch_rows)])
                yield Table(arrow, start, source.label, source.image_shape)
                start += len(arrow)
        if start == 0:
            yield Table(source.schema.empty_table(), 0, source.label, source.image_shape)


def table_size(path: str | Path, kind: Format | None = None) -> TableSize:
    """How large a file's table is, judged by its first rows; standard input would be used up."""
    with closing(open_source(path, kind)) as source:
        return _size(source)


def _size(source: Source) -> TableSize:
    first = next((block for block in source.blocks() if block.num_rows), None)
    rows, held = (first.num_rows, first.nbytes) if first is not None else (0, 0)
    blocks = max(1.0, source.blocks_in_file())
    return TableSize(int(rows * blocks), len(source.schema), int(held * blocks * LOADING_COPIES))


def _levels(column: pa.DictionaryArray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, None last for rows without one, and each row's place among them."""
    levels = np.array([*column.dictionary.to_pylist(), None], object)
    return levels, column.indices.fill_null(len(levels) - 1).to_numpy()


def _to_numpy(column: pa.Array) -> np.ndarray:
    if isinstance(column, pa.DictionaryArray):
        levels, codes = _levels(column)
        return levels[codes]
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy(zero_copy_only=False)
