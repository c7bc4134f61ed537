"""What a table can be read from: one small class per kind of file, all of one shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from vitrail.datasets.idx import read_idx
from vitrail.errors import DataError
from vitrail.files import file_size, is_stream, open_file
from vitrail.tables.arrow import plain_schema, plain_table, sentence
from vitrail.tables.cells import MAX_COLUMNS, checked_names
from vitrail.tables.delimited import DelimitedFile
from vitrail.tables.npz import NpzFile
from vitrail.tables.wanted import Wanted, everything

Format = Literal["csv", "tsv", "parquet", "npz", "idx"]
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".npz": "npz",
}
BLOCK_ROWS = 65_536
NPZ_BLOCK_BYTES = 2**23


Block = tuple[int, pa.RecordBatch]
"""Rows, and the place of the first of them in the file."""


class Source(Protocol):
    """An opened file of rows.

    label        the column of labels, where the file says which
    image_shape  (height, width) where the other columns are the pixels of an image, row by row
    file_bytes   the size of the file, None where nobody knows
    untyped      whether all cells are text
    """

    @property
    def label(self) -> str | None: ...

    @property
    def image_shape(self) -> tuple[int, int] | None: ...

    @property
    def file_bytes(self) -> int | None: ...

    @property
    def untyped(self) -> bool: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def num_rows(self) -> int | None:
        """How many rows there are, where that is known before they are read."""
        ...

    def blocks(self, wanted: Wanted = everything) -> Iterator[Block]:
        """Blocks in order, those without a wanted row left out; can be had once."""
        ...

    def expected_blocks(self) -> float:
        """About how many blocks there are, so that the first tells the size of the whole."""
        ...

    def place(self, row: int) -> str:
        """What a row, counted from 0, is called in the file: `line 17`, `row 3`."""
        ...

    def close(self) -> None: ...


class ParquetSource:
    """A Parquet file, a block of rows at a time."""

    label = None
    image_shape = None
    untyped = False

    def __init__(self, path: str | Path) -> None:
        self._title = str(path)
        self._stream = open_file(path)
        self.file_bytes = file_size(self._stream)
        try:
            self._file = parquet.ParquetFile(self._stream)
            self.schema = plain_schema(self._file.schema_arrow)
            checked_names(self.schema.names, self._title)
        except (pa.ArrowException, OSError, UnicodeError) as error:
            self.close()
            raise self._damaged(error) from None
        except BaseException:
            self.close()
            raise

    @property
    def num_rows(self) -> int:
        return self._file.metadata.num_rows

    def blocks(self, wanted: Wanted = everything) -> Iterator[Block]:
        try:
            for first, groups in self._runs(wanted):
                for block in self._file.iter_batches(BLOCK_ROWS, row_groups=groups):
                    for part in plain_table(pa.Table.from_batches([block])).to_batches():
                        yield first, part
                        first += part.num_rows
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise self._damaged(error) from None

    def _runs(self, wanted: Wanted) -> Iterator[tuple[int, list[int]]]:
        """Row groups that follow one another and have wanted rows, and the place of the first."""
        start, first, groups = 0, 0, []
        for group in range(self._file.num_row_groups):
            rows = self._file.metadata.row_group(group).num_rows
            if len(wanted(start, rows)):
                first = first if groups else start
                groups.append(group)
            elif groups:
                yield first, groups
                groups = []
            start += rows
        if groups:
            yield first, groups

    def expected_blocks(self) -> float:
        return self.num_rows / BLOCK_ROWS

    def place(self, row: int) -> str:
        return f"row {row + 1}"

    def close(self) -> None:
        self._stream.close()

    def _damaged(self, error: Exception) -> DataError:
        return DataError(
            f"{self._title} cannot be read as Parquet: {sentence(error)}; write it again"
        )


@dataclass(frozen=True)
class Layout:
    """What the columns of a table are called whose inputs are an array."""

    title: str  # what errors call it
    names: list[str]  # of the inputs
    label: str | None
    image_shape: tuple[int, int] | None

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


def layout(
    title: str, shape: tuple[int, ...], label: str | None, labels: tuple[int, ...] | None
) -> Layout:
    """Of arrays of these shapes, if they make a table."""
    if len(shape) not in (2, 3):
        raise DataError(
            f"{title}: expected inputs of shape (rows, columns) or (rows, height, width), "
            f"found {shape}; reshape them"
        )
    width = prod(shape[1:])
    if not 0 < width <= MAX_COLUMNS:
        raise DataError(
            f"{title}: expected from 1 to {MAX_COLUMNS:,} inputs a row, found "
            f"{'×'.join(map(str, shape[1:]))}; choose columns, or make images smaller"
        )
    if labels is not None and labels != shape[:1]:
        raise DataError(
            f"{title}: expected one label for each of {shape[0]} inputs, found labels of shape "
            f"{labels}; give arrays of one data set"
        )
    names, image_shape = [f"x{column}" for column in range(width)], None
    if len(shape) == 3:
        image_shape = shape[1], shape[2]
        names = [f"r{row}c{column}" for row, column in np.ndindex(image_shape)]
    return Layout(title, names, None if labels is None else label, image_shape)


class NpzSource:
    """Arrays in an NPZ file, a block of rows at a time."""

    untyped = False

    def __init__(self, path: str | Path) -> None:
        self._file = NpzFile(path)
        inputs, labels = self._file.inputs, self._file.labels
        try:
            self._layout = layout(
                str(path),
                inputs.shape,
                None if labels is None else labels.name,
                None if labels is None else labels.shape,
            )
            none = None if labels is None else np.empty(0, labels.dtype)
            empty = np.empty((0, *inputs.shape[1:]), inputs.dtype)
            self.schema = self._layout.table(empty, none).schema
        except BaseException:
            self.close()
            raise
        self.label, self.image_shape = self._layout.label, self._layout.image_shape
        self.file_bytes, self.num_rows = self._file.file_bytes, inputs.shape[0]
        self._block_rows = max(1, min(BLOCK_ROWS, NPZ_BLOCK_BYTES // (inputs.row_bytes or 1)))

    def blocks(self, wanted: Wanted = everything) -> Iterator[Block]:
        start = 0
        for inputs, labels in self._file.runs(self._block_rows):
            if len(wanted(start, len(inputs))):
                for part in self._layout.table(inputs, labels).to_batches():
                    yield start, part
            start += len(inputs)

    def expected_blocks(self) -> float:
        return self.num_rows / self._block_rows

    def place(self, row: int) -> str:
        return f"row {row + 1}"

    def close(self) -> None:
        self._file.close()


class ArraySource:
    """Inputs (rows, columns) or images (rows, height, width), and perhaps labels (rows,)."""

    file_bytes = None
    untyped = False

    def __init__(
        self, title: str, inputs: np.ndarray, label: str | None, labels: np.ndarray | None
    ) -> None:
        shape = None if labels is None else labels.shape
        known = layout(title, inputs.shape, label, shape)
        self.label, self.image_shape = known.label, known.image_shape
        self._table = known.table(inputs, labels)

    @property
    def schema(self) -> pa.Schema:
        return self._table.schema

    @property
    def num_rows(self) -> int:
        return self._table.num_rows

    def blocks(self, wanted: Wanted = everything) -> Iterator[Block]:
        start = 0
        for block in self._table.to_batches():
            if len(wanted(start, block.num_rows)):
                yield start, block
            start += block.num_rows

    def expected_blocks(self) -> float:
        return 1.0

    def place(self, row: int) -> str:
        return f"row {row + 1}"

    def close(self) -> None:
        pass


def open_source(path: str | Path, kind: Format | None = None) -> Source:
    """Open a file by its format, told by its name unless given."""
    kind = kind or file_format(path)
    if kind not in get_args(Format):
        raise DataError(f"unknown format {kind!r}; choose one of {', '.join(get_args(Format))}")
    if kind == "csv":
        return DelimitedFile(path)
    if kind == "tsv":
        return DelimitedFile(path, delimiter="\t")
    if is_stream(path):
        raise DataError(f"{kind} cannot be read from standard input; give a file, or CSV")
    if kind == "parquet":
        return ParquetSource(path)
    return NpzSource(path) if kind == "npz" else _open_idx(Path(path))


def file_format(path: str | Path) -> Format:
    """The format a file's name tells; standard input and pipes are CSV."""
    path = Path(path)
    if is_stream(path):
        return "csv"
    name = path.name.casefold().removesuffix(".gz")
    if "idx" in name and "ubyte" in name:
        return "idx"
    suffix = Path(name).suffix
    if suffix not in SUFFIXES:
        if not path.is_file():
            open_file(path).close()  # that it is not there is said before its name tells nothing
        raise DataError(
            f"cannot tell the format of {path} from its name; expected it to end in "
            f"{', '.join(SUFFIXES)} or idx3-ubyte: rename it"
        )
    return SUFFIXES[suffix]


def _open_idx(path: Path) -> ArraySource:
    """Images, and the labels beside them if the file is named as MNIST's are."""
    images = read_idx(path, axes=3)
    beside = path.with_name(path.name.replace("images-idx3", "labels-idx1"))
    labels = read_idx(beside, axes=1) if beside != path and beside.exists() else None
    return ArraySource(str(path), images, "label", labels)
