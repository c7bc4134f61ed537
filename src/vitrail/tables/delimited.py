"""CSV and TSV: opened once, read in blocks, every cell kept as text.

pyarrow splits the rows, fast and in constant memory, in threads of its own. Only when it finds a
fault is the file read again, slowly, to name the line.
"""

from __future__ import annotations

import csv
import io
import math
import re
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
from pyarrow import csv as arrow_csv

from vitrail.errors import DataError
from vitrail.files import Unpacked, is_stream
from vitrail.tables.cells import TEXT, checked_names
from vitrail.tables.sources import Block, RowSelector, Source, all_rows
from vitrail.tables.spelling import BLANKS, as_number, stripped

BLOCK_BYTES = 1 << 23  # a row must fit in a block; a dozen or so are in flight at once
DELIMITERS = ",;\t|"  # looked for in this order
BLANK_LINE = BLANKS.encode() + b"\r\n"  # characters of a line without text
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BINARY = "is not a text table (it holds binary data); give CSV or TSV, or name it by its format"
LONGEST_WAIT = 5.0  # seconds; a pipe may be silent for longer, with a thread waiting for its bytes
SURROGATE = re.compile("[\ud800-\udfff]")  # bytes that are not UTF-8, decoded
RAGGED = re.compile(r"Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)  # of pyarrow
INTERVAL = 0.001  # seconds between checks whether threads have ended


class DelimitedFile(Source):
    """A CSV or TSV file, plain or gzipped, or standard input for `-`.

    The delimiter may be left open: then it is a comma, or, where the header has none, a semicolon,
    a tab or a bar.
    """

    untyped = True

    def __init__(self, path: str | Path, delimiter: str | None = None) -> None:
        self._bytes = Unpacked(path)
        self.title, self.file_bytes = self._bytes.title, self._bytes.file_bytes
        self._path = None if is_stream(path) else Path(path)
        self._stream = io.BufferedReader(self._bytes, 1 << 20)
        try:
            self.delimiter, self.names = self._read_header(delimiter)
        except BaseException:
            self.close()
            raise
        self.schema = pa.schema([(name, TEXT) for name in self.names])
        self._rows_ahead: Iterator[_FileRow] = iter(())
        self._next_row = 0  # that `_rows_ahead` gives

    def place(self, row: int) -> str:
        """`line 17`, where the file can be read again, else the row with the header as row 1."""
        try:
            if row < self._next_row or self._next_row == 0:
                self._rows_ahead, self._next_row = self._read_again(), 0
                next(self._rows_ahead, None)  # the header
            for found in self._rows_ahead:
                self._next_row += 1
                if self._next_row > row:
                    return f"line {found.first}"
        except DataError:  # it is gone or was changed since
            pass
        return f"row {row + 2} (the header is row 1)"

    def blocks(self, select: RowSelector = all_rows) -> Iterator[Block]:
        last_row, start, reader = None, 0, None
        reads = _BackgroundReads(cast(BinaryIO, self._stream))
        try:
            reader = self._open(reads) if self._skip_blank_lines() else ()
            for block in reader:
                last_row = block.slice(block.num_rows - 1) if block else last_row
                self.num_blocks = (self._bytes.total or BLOCK_BYTES) / BLOCK_BYTES
                yield start, block
                start += block.num_rows
        except pa.ArrowInvalid as error:
            raise self._fault(str(error)) from None
        finally:
            del reader  # an error's traceback holds this frame, and would hold the reader
            reads.finish()
        # a quote that is never closed swallows the rest of the file
        swallowed = last_row is not None and "\n" in last_row.columns[-1][0].as_py()
        if swallowed and self._bytes.end != b'"':
            raise self._fault("a quote is never closed")

    def _open(self, reads: _BackgroundReads) -> arrow_csv.CSVStreamingReader:
        source = reads.source()
        parsing = arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        converting = arrow_csv.ConvertOptions(column_types=self.schema, strings_can_be_null=False)
        reading = arrow_csv.ReadOptions(block_size=BLOCK_BYTES, column_names=self.names)
        try:
            return arrow_csv.open_csv(source, reading, parsing, converting)
        finally:
            del source  # so that a traceback does not hold it

    def _skip_blank_lines(self) -> bool:
        """Go to the first line that is not blank; False where there is none."""
        skipped = 0
        while ahead := self._stream.peek(1):
            blank = len(ahead) - len(ahead.lstrip(b"\r\n"))
            skipped += len(self._stream.read(blank))
            if blank < len(ahead):
                return True
            if skipped > BLOCK_BYTES:
                raise DataError(
                    f"{self.title} has over {BLOCK_BYTES >> 20} MB of blank lines; "
                    "expected a header row and data rows"
                )
        return False

    def _read_header(self, delimiter: str | None) -> tuple[str, list[str]]:
        """The delimiter, and the names of the columns, which may have line breaks within quotes."""
        if self._stream.peek(3).startswith(BYTE_ORDER_MARK):
            self._stream.read(3)
        self._skip_blank_lines()
        line = self._stream.readline(BLOCK_BYTES)
        size = len(line)
        while line and not line.strip(BLANK_LINE) and size < BLOCK_BYTES:  # a line of spaces
            line = self._stream.readline(BLOCK_BYTES)
            size += len(line)
        lines, quotes = [line], line.count(b'"')
        while quotes % 2 and size < BLOCK_BYTES and (line := self._stream.readline(BLOCK_BYTES)):
            lines.append(line)
            size += len(line)
            quotes += line.count(b'"')
        if quotes % 2:
            raise DataError(f"{self.title}: a quote in the header is never closed; correct it")
        header = b"".join(lines)
        if not header.strip(BLANK_LINE):
            raise DataError(f"{self.title} is empty; expected a header row and data rows")
        if b"\0" in header:
            raise DataError(f"{self.title} {BINARY}")
        try:
            text = header.decode()
        except UnicodeDecodeError:
            raise DataError(
                f"{self.title} is not UTF-8 text in its first line; save it as UTF-8"
            ) from None
        names: list[str] = []
        for candidate in delimiter or DELIMITERS:
            try:
                rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=candidate))
            except csv.Error as error:
                raise DataError(
                    f"{self.title} has no header of a table ({error}); expected CSV or TSV"
                ) from None
            if len(rows) > 1:
                raise DataError(
                    f"{self.title} ends its lines with bare carriage returns; "
                    "save it with ordinary line ends"
                )
            names = [stripped(name) for name in rows[0]]
            if len(names) == 1:
                continue
            numbers = [name for name in names if name and not math.isnan(as_number(name))]
            counts = [list(map(str, range(first, first + len(numbers)))) for first in (0, 1)]
            if len(numbers) > len(names) / 2 and numbers not in counts:
                raise DataError(
                    f"{self.title}: expected names of columns in the first line, found numbers "
                    f"such as {numbers[0]!r}; add a line of names"
                )
            return candidate, checked_names(names, self.title)
        return delimiter or DELIMITERS[0], names

    def _fault(self, noticed: str) -> DataError:
        """The first error of the file with its line, or the parser's message."""
        width, last = len(self.names), None
        for row in self._read_again():
            line = f"{self.title}, line {row.first}:"
            if not row.is_text:
                return DataError(f"{line} not UTF-8 text; save the file as UTF-8")
            if row.width is None:
                return DataError(
                    f"{line} the row goes on beyond line {row.last}; is a quote left open?"
                )
            if row.width != width:
                goes_on = f"the row goes on to line {row.last}: is a quote left open?"
                remedy = goes_on if row.last > row.first else "correct the line"
                return DataError(
                    f"{line} expected {width} fields as in the header, found {row.width}; {remedy}"
                )
            last = row
        if last is not None and self._bytes.end != b'"' and last.last > last.first:
            return DataError(
                f"{self.title}, line {last.first}: a quote is opened there and never closed; "
                "close it"
            )
        if ragged := RAGGED.search(noticed):
            return DataError(
                f"{self.title}: expected {ragged[1]} fields as in the header, found {ragged[2]} in "
                f"the row {ragged[3][:60]!r}; correct it"
            )
        if "straddling" in noticed:
            return DataError(
                f"{self.title} has a row of over {BLOCK_BYTES >> 20} MB; is a quote left open?"
            )
        return DataError(f"{self.title} cannot be read as a table: {' '.join(noticed.split())}")

    def _read_again(self) -> Iterator[_FileRow]:
        """The header and the rows that are not blank, with their lines; none of a stream."""
        if self._path is None:
            return
        with io.BufferedReader(Unpacked(self._path)) as stream:
            text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
            rows, first = csv.reader(text, delimiter=self.delimiter), 1
            try:
                for row in rows:
                    if row:
                        is_text = not any(map(SURROGATE.search, row))
                        yield _FileRow(first, rows.line_num, len(row), is_text)
                    first = rows.line_num + 1
            except csv.Error:  # a field longer than Python reads; later lines are unknown
                yield _FileRow(first, rows.line_num, None, True)


@dataclass(frozen=True)
class _FileRow:
    """One row: its first and last line, counted from 1, and its fields; None if endless."""

    first: int
    last: int
    width: int | None
    is_text: bool


@dataclass
class _BackgroundReads:
    """A stream while pyarrow reads it.

    pyarrow's threads call Python for every block, and to give its bytes back. One that does so
    while the interpreter ends is killed on the spot: the process aborts, or waits for that thread
    for ever. So whoever hands a stream to pyarrow waits, before going on, until no thread holds the
    source or bytes from it.
    """

    stream: BinaryIO
    finished: bool = False
    held: list[weakref.ref[Any]] = field(default_factory=list)
    mark: bytes = BYTE_ORDER_MARK  # pyarrow drops one where it begins: the first cell's stays

    def source(self) -> Any:
        """The file object for pyarrow; the caller keeps no reference to it."""
        source = _HeldFile()
        source.read = self._read
        self.held.append(weakref.ref(source))
        return source

    def finish(self) -> None:
        """Return when no thread reads; their next read is the last."""
        self.finished = True
        latest = time.monotonic() + LONGEST_WAIT
        while any(one() is not None for one in self.held) and time.monotonic() < latest:
            time.sleep(INTERVAL)

    def _read(self, size: int = -1) -> memoryview:
        mark, self.mark = self.mark, b""
        given = b"" if self.finished else mark + self.stream.read(max(-1, size - len(mark)))
        view = memoryview(given)
        self.held = [one for one in self.held if one() is not None] + [weakref.ref(view)]
        return view


class _HeldFile:
    """The file that pyarrow holds.

    Its function is not its own method: the traceback of an error there would keep the file alive.
    """

    closed = False
    read: Any

    def close(self) -> None:
        """The caller that opened the stream closes it."""
