"""Tables from files: CSV, TSV, Parquet, NPZ and idx, whole or a batch at a time.

Cells of CSV and TSV stay the text they were, so that columns pass through and labels are written
back verbatim. pyarrow holds the columns; one comes out as a numpy array when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vitrail.errors import DataError, counted, listed
from vitrail.memory import check_size
from vitrail.tables.cells import Cells, parse_levels, place_in_table, read_cells
from vitrail.tables.labels import check_target
from vitrail.tables.sources import Format, Source, open_source
from vitrail.tables.wanted import Wanted, everything

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
    has_names = True

    @property
    def stands_in_file(self) -> bool:
        """Whether the rows come from a file, not from another program's memory."""
        return self.place_of is not place_in_table

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.arrow.column_names

    def __len__(self) -> int:
        return self.arrow.num_rows

    def __getitem__(self, name: str) -> np.ndarray:
        """A column, (rows,): numbers as numbers, text as objects, None or NaN where missing."""
        self._require(name)
        chunks = [_to_numpy(chunk, name) for chunk in self.arrow.column(name).chunks]
        return np.concatenate(chunks) if chunks else np.empty(0, object)

    def cells(self, name: str) -> Cells:
        """A column, parsed; text is held by its distinct values already."""
        self._require(name)
        column = self.arrow.column(name)
        if not pa.types.is_dictionary(column.type) or not column.num_chunks:
            return read_cells(self[name], name)
        column = column.unify_dictionaries()
        parts = [_levels(chunk, name) for chunk in column.chunks]
        levels, codes = parts[0][0], np.concatenate([codes for _, codes in parts])
        used = np.bincount(codes, minlength=len(levels)) > 0  # part of a table has only some
        cells = parse_levels(levels[used], (np.cumsum(used) - 1)[codes], name)
        return replace(cells, are_words=not pa.types.is_string(column.type.value_type))

    def labels(self, name: str) -> np.ndarray:
        """A column, (rows,), if a classifier can learn to tell its values."""
        labels = self[name]
        check_target(labels, self.place, self.untyped)
        return labels

    def place(self, row: int) -> str:
        """What a row, counted from 0, is called in its file: `line 17`, `row 3`."""
        return self.place_of(self.start + row if self.rows is None else int(self.rows[row]))

    def without(self, *names: str) -> Table:
        """The table less some columns."""
        for name in names:
            self._require(name)
        if set(self.columns) == set(names):
            raise DataError(
                f"the table has no columns beside {listed(names)}; add some to learn from"
            )
        return replace(self, arrow=self.arrow.drop_columns(list(names)))

    def take(self, rows: Any) -> Table:
        """The rows with the given indices, in that order."""
        rows = np.asarray(rows, np.int64)
        origin = self.start + rows if self.rows is None else self.rows[rows]
        return replace(self, arrow=self.arrow.take(pa.array(rows)), rows=origin)

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


def read_table(path: str | Path, kind: Format | None = None) -> Table:
    """The whole table, or a TableTooLargeError before loading what memory cannot hold.

    The file is opened once and read once.

    Args:
        path: .csv and .tsv (gzipped or not), .parquet, .npz with arrays X and y or inputs and
            labels, MNIST's idx files; `-` is CSV from standard input.
        kind: The format; None is what the file's name tells.

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
                _check_size(str(path), source, len(blocks), rows, held)
        arrow = pa.Table.from_batches(blocks, source.schema).unify_dictionaries()
        return replace(_empty(source), arrow=arrow)


def iter_table(
    path: str | Path,
    batch_rows: int = BATCH_ROWS,
    kind: Format | None = None,
    wanted: Wanted = everything,
) -> Iterator[Table]:
    """The table as batches of rows; CSV, TSV, Parquet and NPZ in constant memory.

    There is always a first batch, empty if the file has no rows, to tell the columns.

    Args:
        path: As for `read_table`.
        batch_rows: Rows of a batch at most.
        kind: The format; None is what the file's name tells.
        wanted: Tells which of `count` rows from `first` on to give; of Parquet, others stay unread
            where a whole row group is not wanted.

    Yields:
        The batches in order.

    Examples:
        >>> for batch in iter_table("long.csv"):  # doctest: +SKIP
        ...     print(len(batch))
    """
    with closing(open_source(path, kind)) as source:
        some, empty = False, _empty(source)
        for start, block in source.blocks(wanted):
            for first in range(0, block.num_rows, batch_rows):
                arrow = pa.Table.from_batches([block.slice(first, batch_rows)])
                batch = replace(empty, arrow=arrow, start=start + first)
                chosen = wanted(batch.start, len(batch))
                if len(chosen):
                    some = True
                    yield batch if len(chosen) == len(batch) else batch.take(chosen)
        if not some:
            yield empty


def _empty(source: Source) -> Table:
    """A table of a source, without rows."""
    return Table(
        source.schema.empty_table(),
        source.label,
        source.image_shape,
        place_of=source.place,
        untyped=source.untyped,
    )


def _check_size(title: str, source: Source, blocks: int, rows: int, held: int) -> None:
    """Refuse, as soon as the blocks so far tell it, what memory cannot hold."""
    more = max(1.0, source.expected_blocks() / blocks)
    what = f"about {counted(int(rows * more), 'row')} × {counted(len(source.schema), 'column')}"
    check_size(title, what, int(held * more * LOADING_COPIES), source.file_bytes, held)


def _levels(column: pa.DictionaryArray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, None last for rows without one, and each row's place among them."""
    try:
        values = column.dictionary.to_pylist()
    except UnicodeDecodeError:
        raise DataError(
            f"column {name!r} holds text that is not UTF-8; write the file again as UTF-8"
        ) from None
    levels = np.empty(len(values) + 1, object)
    levels[:-1] = values
    return levels, column.indices.fill_null(len(values)).to_numpy()


def _to_numpy(column: pa.Array, name: str) -> np.ndarray:
    if isinstance(column, pa.DictionaryArray):
        levels, codes = _levels(column, name)
        return levels[codes]
    return column.to_numpy(zero_copy_only=False)
