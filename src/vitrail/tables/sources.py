"""Sources of tables: one small class per kind of file, all with one interface."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from vitrail.errors import DataError, listed
from vitrail.files import open_file
from vitrail.memory import check_size, most_bytes
from vitrail.tables.cells import MAX_COLUMNS, checked_names, place_in_table, plain_table, sentence

BLOCK_ROWS = 65_536
NPZ_BLOCK_BYTES = 2**23
INPUT_ARRAYS, LABEL_ARRAYS = ("X", "inputs"), ("y", "labels")  # names of arrays in an archive
KINDS = "biufU"  # numpy's kinds of arrays that hold numbers, booleans or text
LOADING_COPIES = 3  # as read, with columns one after another, and as pyarrow holds them
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# what numpy raises on one, which it reads with Python's own tokenizer and parser
BAD_HEADER = (ValueError, KeyError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError)
SAVE = "save it with numpy.savez(path, X=…, y=…)"

Block = tuple[int, pa.RecordBatch]
"""Rows, and the place of the first of them in the file."""

RowSelector = Callable[[int, int], np.ndarray]
"""Of `count` rows from `first` on, those to read: ascending, counted from `first`."""


def all_rows(first: int, count: int) -> np.ndarray:
    """Selects every row."""
    return np.arange(count)


class Source:
    """An opened file of rows.

    schema       names and types of the columns
    label        the column of labels, where the file says which
    image_shape  (height, width) where the other columns are the pixels of an image, row by row
    file_bytes   the size of the file, None if unknown
    num_rows     how many rows there are, where that is known before they are read
    untyped      whether all cells are text
    num_blocks   estimated number of blocks, by the size of those so far
    """

    schema: pa.Schema
    label: str | None = None
    image_shape: tuple[int, int] | None = None
    file_bytes: int | None = None
    num_rows: int | None = None
    untyped = False
    num_blocks = 1.0
    _stream: Any = None

    def blocks(self, select: RowSelector = all_rows) -> Iterator[Block]:
        """Blocks in order; can be read once. Those without a selected row may be left out."""
        raise NotImplementedError

    def place(self, row: int) -> str:
        """What a row, counted from 0, is called in the file: `line 17`, `row 3`."""
        return place_in_table(row)

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()


class ParquetSource(Source):
    """A Parquet file, a block of rows at a time."""

    num_rows: int

    def __init__(self, path: str | Path) -> None:
        self._title = str(path)
        self._stream, self.file_bytes = open_file(path)
        try:
            with self._explained():
                self._file = parquet.ParquetFile(self._stream)
                self.schema = plain_table(self._file.schema_arrow.empty_table()).schema
            checked_names(self.schema.names, self._title)
        except BaseException:
            self.close()
            raise
        self.num_rows = self._file.metadata.num_rows
        self.num_blocks = self.num_rows / BLOCK_ROWS

    def blocks(self, select: RowSelector = all_rows) -> Iterator[Block]:
        with self._explained():
            for first, groups in self._runs(select):
                for block in self._file.iter_batches(BLOCK_ROWS, row_groups=groups):
                    for part in plain_table(pa.Table.from_batches([block])).to_batches():
                        yield first, part
                        first += part.num_rows

    def _runs(self, select: RowSelector) -> Iterator[tuple[int, list[int]]]:
        """Consecutive row groups that have selected rows, and the place of their first row."""
        start, first, groups = 0, 0, []
        for group in range(self._file.num_row_groups):
            rows = self._file.metadata.row_group(group).num_rows
            if len(select(start, rows)):
                first = first if groups else start
                groups.append(group)
            elif groups:
                yield first, groups
                groups = []
            start += rows
        if groups:
            yield first, groups

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise DataError(
                f"{self._title} cannot be read as Parquet: {sentence(error)}; write it again"
            ) from None


class Layout:
    """The columns of a table whose inputs are an array, if arrays of these shapes make a table."""

    def __init__(
        self, title: str, shape: tuple[int, ...], label: str | None, labels: tuple[int, ...] | None
    ) -> None:
        if len(shape) not in (2, 3):
            raise DataError(
                f"{title}: expected inputs of shape (rows, columns) or (rows, height, width), "
                f"found {shape}; reshape them"
            )
        width = prod(shape[1:])
        if not 0 < width <= MAX_COLUMNS:
            raise DataError(
                f"{title}: expected from 1 to {MAX_COLUMNS:,} inputs per row, found "
                f"{'×'.join(map(str, shape[1:]))}; choose columns, or make images smaller"
            )
        if labels is not None and labels != shape[:1]:
            raise DataError(
                f"{title}: expected one label for each of {shape[0]} inputs, found labels of shape "
                f"{labels}; give arrays of one data set"
            )
        self.title, self.image_shape = title, None
        self.names = [f"x{column}" for column in range(width)]
        self.label = None if labels is None else label
        if len(shape) == 3:
            self.image_shape = shape[1], shape[2]
            self.names = [f"r{row}c{column}" for row, column in np.ndindex(self.image_shape)]

    def table(self, inputs: np.ndarray, labels: np.ndarray | None) -> pa.Table:
        """Rows of it."""
        names = self.names
        columns = list(np.ascontiguousarray(inputs.reshape(len(inputs), len(names)).T))
        if labels is not None:
            names, columns = [*names, str(self.label)], [*columns, labels]
        try:
            return plain_table(pa.Table.from_arrays(list(map(pa.array, columns)), names))
        except (pa.ArrowException, UnicodeError) as error:
            raise DataError(f"{self.title} cannot be read as a table: {sentence(error)}") from None


class ArraySource(Source):
    """Inputs (rows, columns) or images (rows, height, width), and perhaps labels (rows,)."""

    num_rows: int

    def __init__(
        self, title: str, inputs: np.ndarray, label: str | None, labels: np.ndarray | None
    ) -> None:
        layout = Layout(title, inputs.shape, label, None if labels is None else labels.shape)
        self.label, self.image_shape = layout.label, layout.image_shape
        self._table = layout.table(inputs, labels)
        self.schema, self.num_rows = self._table.schema, self._table.num_rows

    def blocks(self, select: RowSelector = all_rows) -> Iterator[Block]:
        start = 0
        for block in self._table.to_batches():
            yield start, block
            start += block.num_rows


@dataclass(frozen=True)
class _StoredArray:
    """What an archive says of an array before its values are read."""

    name: str
    entry: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype
    by_columns: bool  # columns one after another, so that no row is there before all are
    start: int  # bytes of the header


class NpzSource(Source):
    """Arrays in an NPZ file: of inputs, and of labels where there is one.

    Rows are read a block at a time, packed or not; arrays that lie by columns are read whole.
    Headers are checked before values take memory.
    """

    num_rows: int

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._stream, self.file_bytes = open_file(path)
        try:
            with self._explained():
                self._archive = zipfile.ZipFile(self._stream)
                self._arrays = self._find_arrays()
            inputs, *labels = self._arrays
            label, shape = (labels[0].name, labels[0].shape) if labels else (None, None)
            self._layout = Layout(str(path), inputs.shape, label, shape)
            empty = [np.empty((0, *array.shape[1:]), array.dtype) for array in self._arrays]
            self.schema = self._layout.table(empty[0], empty[1] if labels else None).schema
        except BaseException:
            self.close()
            raise
        self.label, self.image_shape = self._layout.label, self._layout.image_shape
        self.num_rows = inputs.shape[0]
        row_bytes = prod(inputs.shape[1:]) * inputs.dtype.itemsize
        self._block_rows = max(1, min(BLOCK_ROWS, NPZ_BLOCK_BYTES // (row_bytes or 1)))
        self.num_blocks = self.num_rows / self._block_rows

    def blocks(self, select: RowSelector = all_rows) -> Iterator[Block]:
        start = 0
        with self._explained():
            for inputs, *labels in zip(*map(self._runs, self._arrays), strict=True):
                if len(select(start, len(inputs))):
                    for part in self._layout.table(inputs, *labels or [None]).to_batches():
                        yield start, part
                start += len(inputs)

    def _find_arrays(self) -> list[_StoredArray]:
        """The array of inputs, then that of labels."""
        members = {e.filename.removesuffix(".npy"): e for e in self._archive.infolist()}
        inputs = next((name for name in INPUT_ARRAYS if name in members), None)
        label = next((name for name in LABEL_ARRAYS if name in members), None)
        if inputs is None:
            raise DataError(
                f"{self._path}: expected an array named X or inputs, found {listed(members)}; "
                f"{SAVE}"
            )
        return [self._read_header(name, members[name]) for name in (inputs, label) if name]

    def _read_header(self, name: str, entry: zipfile.ZipInfo) -> _StoredArray:
        """What an array's header says, which must be what is there."""
        needed = entry.file_size * LOADING_COPIES
        if self.file_bytes is not None and needed > most_bytes(self.file_bytes):
            self._check_size(name, entry)
        title = f"{self._path}: {name!r}"
        with self._archive.open(entry) as member:
            try:
                version = np.lib.format.read_magic(member)
                shape, by_columns, dtype = HEADERS[version](member)
            except BAD_HEADER:
                raise DataError(f"{title} is no array of numbers or text; {SAVE}") from None
            start = member.tell()
        if dtype.kind not in KINDS:
            raise DataError(f"{title} holds {dtype} values; save plain numbers, booleans or text")
        announced, there = prod(shape) * dtype.itemsize, entry.file_size - start
        if announced != there:
            raise DataError(
                f"{title} announces {announced:,} bytes but holds {there:,}; save it again"
            )
        return _StoredArray(name, entry, shape, dtype, by_columns and len(shape) > 1, start)

    def _runs(self, array: _StoredArray) -> Iterator[np.ndarray]:
        """The rows of an array, a block at a time; a ValueError where it ends early."""
        count, rows = array.shape[0], self._block_rows
        with self._archive.open(array.entry) as member:
            member.read(array.start)
            if array.by_columns:
                self._check_size(array.name, array.entry)
                values = np.frombuffer(member.read(), array.dtype).reshape(array.shape[::-1]).T
                yield from (values[first : first + rows] for first in range(0, count, rows))
                return
            for first in range(0, count, rows):
                shape = (min(rows, count - first), *array.shape[1:])
                values = member.read(prod(shape) * array.dtype.itemsize)
                yield np.frombuffer(values, array.dtype).reshape(shape)

    def _check_size(self, name: str, entry: zipfile.ZipInfo) -> None:
        needed = entry.file_size * LOADING_COPIES
        check_size(str(self._path), f"the values of {name!r}", needed, self.file_bytes)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What zipfile says of archives and members that are damaged, as a DataError."""
        try:
            yield
        except zipfile.BadZipFile:
            raise DataError(f"{self._path} is no NPZ archive, or a damaged one; {SAVE}") from None
        except DataError:
            raise
        except (ValueError, OSError, EOFError, zlib.error, RuntimeError, NotImplementedError):
            # of members that end early, are encrypted or packed strangely
            raise DataError(
                f"{self._path} is damaged, or packed in an unknown way; {SAVE}"
            ) from None
