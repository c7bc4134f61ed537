"""Tables from files: CSV, TSV, Parquet, NPZ and idx, whole or a batch at a time.

Cells of CSV and TSV stay the text they were, so that columns pass through and labels are written
back verbatim. pyarrow holds the columns; one comes out as a numpy array when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from vitrail.datasets.idx import read_idx
from vitrail.errors import DataError, listed
from vitrail.files import is_stream, open_file
from vitrail.memory import check_size
from vitrail.tables.cells import Cells, decode_dictionary, place_in_table, read_cells
from vitrail.tables.delimited import DelimitedFile
from vitrail.tables.labels import check_target
from vitrail.tables.sources import (
    ArraySource,
    NpzSource,
    ParquetSource,
    RowSelector,
    Source,
    all_rows,
)

Format = Literal["csv", "tsv", "parquet", "npz", "idx"]
SUFFIXES: dict[str, Format] = {f".{kind}": kind for kind in get_args(Format) if kind != "idx"}
BATCH_ROWS = 65_536
LOADING_COPIES = 2  # joining blocks and their dictionaries holds the table twice for a while


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length."""

    arrow: pa.Table  # the columns
    label: str | None = None  # the column of labels, where the file says which (NPZ, idx)
    image_shape: tuple[int, int] | None = None  # where the others are an image's pixels, row by row
    start: int = 0  # the first row's place in its file, counted from 0, when read in batches
    rows: np.ndarray | None = None  # the place of every row in its file, where some were taken out
    place_of: Callable[[int], str] = place_in_table  # how a sentence names a row of the file
    untyped: bool = False  # whether cells are those of a text file, where `NA` is no value
    has_names: bool = True  # False where columns are found by their places

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.arrow.column_names

    def __len__(self) -> int:
        return self.arrow.num_rows

    def __getitem__(self, name: str) -> np.ndarray:
        """A column, (rows,): numbers as numbers, text as objects, None or NaN where missing."""
        column = self._column(name)
        if not pa.types.is_dictionary(column.type):
            return column.to_numpy()
        levels, codes = decode_dictionary(column, name)
        return levels[codes]

    def cells(self, name: str) -> Cells:
        """A column, parsed; text is held by its distinct values already."""
        return read_cells(self._column(name), name)

    def labels(self, name: str) -> np.ndarray:
        """A column, (rows,), if it can be a target of classification."""
        labels = self[name]
        check_target(labels, self.place, self.untyped)
        return labels

    def place(self, row: int) -> str:
        """What a row, counted from 0, is called in its file: `line 17`, `row 3`."""
        return self.place_of(self.start + row if self.rows is None else int(self.rows[row]))

    def without(self, *names: str) -> Table:
        """The table minus some columns."""
        for name in names:
            self._column(name)
        if set(self.columns) == set(names):
            raise DataError(
                f"the table has no columns beside {listed(names)}; add some to learn from"
            )
        return replace(self, arrow=self.arrow.drop_columns(list(names)))

    @property
    def numbers(self) -> np.ndarray:
        """The place of every row in its file or stream, counted from 0, (rows,) int64."""
        return self.start + np.arange(len(self)) if self.rows is None else self.rows

    def take(self, rows: Any) -> Table:
        """The rows with the given indices, in that order."""
        rows = np.asarray(rows, np.int64)
        return replace(self, arrow=self.arrow.take(pa.array(rows)), rows=self.numbers[rows])

    def with_columns(self, columns: Mapping[str, Any]) -> Table:
        """The table with further columns on the right."""
        arrow = self.arrow
        for name, values in columns.items():
            if name in arrow.column_names:
                raise DataError(f"the table already has a column {name!r}; rename that one first")
            arrow = arrow.append_column(name, pa.array(values))
        return replace(self, arrow=arrow)

    def _column(self, name: str) -> pa.ChunkedArray:
        try:
            return self.arrow.column(name)
        except KeyError:
            names = listed(self.columns, 20)
            raise DataError(f"column {name!r} not found; columns are: {names}") from None


def read_table(path: str | Path, kind: Format | None = None) -> Table:
    """The whole table, or a TableTooLargeError before loading what memory cannot hold.

    The file is opened once and read once.

    Args:
        path: .csv and .tsv (gzipped or not), .parquet, .npz with arrays X and y or inputs and
            labels, MNIST's idx files; `-` is CSV from standard input.
        kind: The format; None is that of the file name's ending.

    Returns:
        The table.

    Examples:
        >>> table = read_table("flowers.csv")  # doctest: +SKIP
        >>> table.columns  # doctest: +SKIP
        ['sepal', 'petal', 'kind']
    """
    with closing(open_source(path, kind)) as source:
        blocks, rows, held = [], 0, 0
        for _, block in source.blocks():
            if block.num_rows:
                blocks.append(block)
                rows, held = rows + block.num_rows, held + block.nbytes
                # refused as soon as the blocks so far show that memory cannot hold the rest
                more = max(1.0, source.num_blocks / len(blocks))
                what = f"about {int(rows * more):,} rows × {len(source.schema):,} columns"
                needed = int(held * more * LOADING_COPIES)
                check_size(str(path), what, needed, source.file_bytes, held)
        arrow = pa.Table.from_batches(blocks, source.schema).unify_dictionaries()
        return _table_of(source, arrow)


def iter_table(
    path: str | Path,
    batch_rows: int = BATCH_ROWS,
    kind: Format | None = None,
    select: RowSelector = all_rows,
) -> Iterator[Table]:
    """The table as batches of rows; CSV, TSV, Parquet and NPZ in constant memory.

    There is always a first batch, empty if the file has no rows, with the columns.

    Args:
        path: As for `read_table`.
        batch_rows: Rows of a batch at most.
        kind: The format; None is that of the file name's ending.
        select: Returns the numbers, from 0, of the rows to give among `count` rows from `first`
            on; a row group of Parquet without any stays unread.

    Yields:
        The batches in order.

    Examples:
        >>> for batch in iter_table("long.csv"):  # doctest: +SKIP
        ...     print(len(batch))
    """
    with closing(open_source(path, kind)) as source:
        any_rows = False
        for start, block in source.blocks(select):
            for first in range(0, block.num_rows, batch_rows):
                arrow = pa.Table.from_batches([block.slice(first, batch_rows)])
                batch = replace(_table_of(source, arrow), start=start + first)
                chosen = select(batch.start, len(batch))
                if len(chosen):
                    any_rows = True
                    yield batch if len(chosen) == len(batch) else batch.take(chosen)
        if not any_rows:
            yield _table_of(source, source.schema.empty_table())


def _table_of(source: Source, arrow: pa.Table) -> Table:
    return Table(
        arrow, source.label, source.image_shape, place_of=source.place, untyped=source.untyped
    )


def open_source(path: str | Path, kind: Format | None = None) -> Source:
    """Open a file by its format, that of its name unless given."""
    kind = kind or file_format(path)
    if kind not in get_args(Format):
        raise DataError(f"unknown format {kind!r}; choose one of {', '.join(get_args(Format))}")
    if kind in ("csv", "tsv"):
        return DelimitedFile(path, delimiter="\t" if kind == "tsv" else None)
    if is_stream(path):
        raise DataError(f"{kind} cannot be read from standard input; give a file, or CSV")
    if kind == "parquet":
        return ParquetSource(path)
    if kind == "npz":
        return NpzSource(path)
    path = Path(path)
    images = read_idx(path, axes=3)
    # the labels lie beside the images if files are named as MNIST's are
    beside = path.with_name(path.name.replace("images-idx3", "labels-idx1"))
    labels = read_idx(beside, axes=1) if beside != path and beside.exists() else None
    return ArraySource(str(path), images, "label", labels)


def file_format(path: str | Path) -> Format:
    """The format by a file's name; standard input and pipes are CSV."""
    path = Path(path)
    if is_stream(path):
        return "csv"
    name = path.name.casefold().removesuffix(".gz")
    if "idx" in name and "ubyte" in name:
        return "idx"
    suffix = Path(name).suffix
    if suffix not in SUFFIXES:
        if not path.is_file():
            open_file(path)[0].close()  # a missing file is reported first
        raise DataError(
            f"cannot tell the format of {path} from its name; expected it to end in "
            f"{', '.join(SUFFIXES)} or idx3-ubyte: rename it"
        )
    return SUFFIXES[suffix]
