"""Tables to files: CSV, TSV and Parquet, a batch at a time, whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from vitrail.errors import DataError
from vitrail.output import atomic_output, check_writable
from vitrail.tables.table import Table

DELIMITERS = {".csv": ",", ".tsv": "\t"}
PARQUET = ".parquet"
SPOOL_BYTES = 1 << 26  # what goes to standard output waits in memory up to here, then on disk


def check_table_output(path: str | Path) -> None:
    """Raise a DataError, before any work, if `write_table` could not write there.

    Args:
        path: As for `write_table`.

    Examples:
        >>> check_table_output("-")
    """
    if str(path) != "-":
        _suffix(path)
        check_writable(path)


def write_table(path: str | Path, tables: Table | Iterable[Table]) -> None:
    """Write a table, or its batches as they come; nothing appears if one of them fails.

    Text is written as it is, quoted where it must be; a missing value in CSV is an empty field.

    Args:
        path: .csv, .tsv or .parquet; `-` is CSV on standard output.
        tables: One table, or batches with the same columns.

    Examples:
        >>> write_table("copy.parquet", iter_table("long.csv"))  # doctest: +SKIP
    """
    batches = iter((tables,) if isinstance(tables, Table) else tables)
    suffix = ".csv" if str(path) == "-" else _suffix(path)
    with _standard_output() if str(path) == "-" else atomic_output(path) as stream:
        first = next(batches)
        if suffix == PARQUET:
            _write_parquet(stream, first, batches)
        else:
            _write_delimited(stream, first, batches, DELIMITERS[suffix])


def _suffix(path: str | Path) -> str:
    suffix = Path(path).suffix.casefold()
    if suffix in (*DELIMITERS, PARQUET):
        return suffix
    if Path(path).exists() and not Path(path).is_file():  # /dev/stdout, a named pipe
        return ".csv"
    raise DataError(
        f"cannot tell the format of {path} from its name; "
        f"let it end in {', '.join(DELIMITERS)} or {PARQUET}"
    )


def _write_delimited(
    stream: IO[bytes], first: Table, rest: Iterable[Table], delimiter: str
) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(first.columns)
    for batch in chain([first], rest):
        columns = [_as_text(name, batch.arrow.column(name)) for name in first.columns]
        writer.writerows(zip(*columns, strict=True))
    text.detach()


def _as_text(name: str, column: pa.ChunkedArray) -> list[str]:
    if pa.types.is_floating(column.type):
        numbers = column.to_numpy()
        return np.where(np.isnan(numbers), "", numbers.astype(str)).tolist()
    try:
        return column.cast(pa.string()).fill_null("").to_pylist()
    except pa.ArrowNotImplementedError:
        raise DataError(
            f"column {name!r} holds {column.type} values, which have no place in CSV; "
            f"write to a {PARQUET} file or leave the column out"
        ) from None


def _write_parquet(stream: IO[bytes], first: Table, rest: Iterable[Table]) -> None:
    plain = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in first.arrow.schema
    ]
    schema = pa.schema(plain)
    with parquet.ParquetWriter(stream, schema) as writer:
        for batch in chain([first], rest):
            writer.write_table(batch.arrow.cast(schema))


@contextmanager
def _standard_output() -> Iterator[IO[bytes]]:
    """A spool that is copied to standard output once all of it is there."""
    with tempfile.SpooledTemporaryFile(SPOOL_BYTES) as spool:
        yield spool
        spool.seek(0)
        try:
            shutil.copyfileobj(spool, sys.stdout.buffer)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, `head` say, has what it wanted
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            raise DataError(
                f"cannot write to standard output: {error.strerror}; give a file"
            ) from None
