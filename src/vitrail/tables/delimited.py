"""CSV and TSV: opened once, read in blocks, every cell kept as the text it was written as.

pyarrow splits the rows, fast and in constant memory. Only when it finds a fault is the file read
again, slowly, to name the line.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
from pyarrow import csv as arrow_csv

from vitrail.errors import DataError
from vitrail.files import Unpacked, is_stream
from vitrail.tables.arrow import TEXT
from vitrail.tables.background import BackgroundReads
from vitrail.tables.blanks import BLANKS, stripped
from vitrail.tables.cells import checked_names
from vitrail.tables.lines import FileRow, Lines
from vitrail.tables.spelling import plain_number
from vitrail.tables.wanted import Wanted, everything

BLOCK_BYTES = 1 << 23  # a row must fit in a block; a dozen or so are in flight at once
DELIMITERS = ",;\t|"  # looked for in this order
BLANK_LINE = BLANKS.encode() + b"\r\n"  # what a line without text is made of
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BINARY = "is not a text table (it holds binary data); give CSV or TSV, or name it by its format"


class DelimitedFile:
    """A CSV or TSV file, plain or gzipped, or standard input for `-`.

    The delimiter may be left open: then it is a comma, or, where the header has none, a semicolon,
    a tab or a bar.
    """

    label = None
    image_shape = None
    untyped = True
    num_rows = None  # lines are not counted before they are read

    def __init__(self, path: str | Path, delimiter: str | None = None) -> None:
        self._bytes = Unpacked(path)
        self.title = self._bytes.title
        self._stream = io.BufferedReader(self._bytes, 1 << 20)
        try:
            header = self._header_bytes()
            self.delimiter, self.names = self._parse_header(header, delimiter)
        except BaseException:
            self.close()
            raise
        self.lines = Lines(None if is_stream(path) else Path(path), self.delimiter)

    def close(self) -> None:
        self._stream.close()

    @property
    def file_bytes(self) -> int | None:
        return self._bytes.file_bytes

    @property
    def schema(self) -> pa.Schema:
        """All columns as dictionary-encoded text."""
        return pa.schema([(name, TEXT) for name in self.names])

    def place(self, row: int) -> str:
        """Where in the file a row of the table stands, rows counted from 0."""
        return self.lines.place(row)

    def expected_blocks(self) -> float:
        """About how many blocks there are, judged by what has been read."""
        total = self._bytes.total()
        return 1.0 if total is None else total / BLOCK_BYTES

    def blocks(self, wanted: Wanted = everything) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows, block by block, each with its place; some may be empty. Can be had once."""
        last_row, start, reader = None, 0, None
        reads = BackgroundReads(cast(BinaryIO, self._stream))
        try:
            reader = self._open(reads) if self._skip_blank_lines() else ()
            for block in reader:
                last_row = block.slice(block.num_rows - 1) if block else last_row
                if len(wanted(start, block.num_rows)):
                    yield start, block
                start += block.num_rows
        except pa.ArrowInvalid as error:
            raise self._fault(str(error), reads.ragged) from None
        finally:
            del reader  # an error's traceback holds this frame, and would hold the reader
            reads.finish()
        # a quote that is never closed swallows the rest of the file
        swallowed = last_row is not None and "\n" in last_row.columns[-1][0].as_py()
        if swallowed and self._bytes.end != b'"':
            raise self._fault("a quote is never closed", reads.ragged)

    def _open(self, reads: BackgroundReads) -> arrow_csv.CSVStreamingReader:
        source = reads.source()
        parsing = arrow_csv.ParseOptions(
            delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=source
        )
        converting = arrow_csv.ConvertOptions(column_types=self.schema, strings_can_be_null=False)
        reading = arrow_csv.ReadOptions(block_size=BLOCK_BYTES, column_names=self.names)
        try:
            return arrow_csv.open_csv(source, reading, parsing, converting)
        finally:
            del source, parsing  # so that a traceback does not hold them

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

    def _header_bytes(self) -> bytes:
        """The bytes of the header, which may have line breaks within quotes."""
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
        return b"".join(lines)

    def _parse_header(self, header: bytes, delimiter: str | None) -> tuple[str, list[str]]:
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
            if len(names) > 1:
                self._refuse_numbers(names)
                return candidate, checked_names(names, self.title)
        return delimiter or DELIMITERS[0], names

    def _refuse_numbers(self, names: list[str]) -> None:
        """Raise a DataError where the first line is a row of data, not of names."""
        numbers = [name for name in names if name and not math.isnan(plain_number(name))]
        counts = [list(map(str, range(first, first + len(numbers)))) for first in (0, 1)]
        if len(numbers) > len(names) / 2 and numbers not in counts:
            raise DataError(
                f"{self.title}: expected names of columns in the first line, found numbers such "
                f"as {numbers[0]!r}; add a line of names"
            )

    def _fault(self, noticed: str, ragged: list[Any]) -> DataError:
        """The first fault of the file with its line, or what was noticed of it."""
        width = len(self.names)
        last = None
        for row in self.lines.rows():
            if not row.is_text:
                return DataError(
                    f"{self.title}, line {row.first}: not UTF-8 text; save the file as UTF-8"
                )
            if row.width != width:
                return self._ragged(row, width)
            last = row
        if last is not None and self._bytes.end != b'"' and last.last > last.first:
            return DataError(
                f"{self.title}, line {last.first}: a quote is opened there and never closed; "
                "close it"
            )
        if ragged:
            found = ragged[0]
            return DataError(
                f"{self.title}: expected {found.expected_columns} fields as in the header, found "
                f"{found.actual_columns} in the row {found.text[:60]!r}; correct it"
            )
        if "straddling" in noticed:
            return DataError(
                f"{self.title} has a row of over {BLOCK_BYTES >> 20} MB; is a quote left open?"
            )
        return DataError(f"{self.title} cannot be read as a table: {' '.join(noticed.split())}")

    def _ragged(self, row: FileRow, width: int) -> DataError:
        if row.width is None:
            return DataError(
                f"{self.title}, line {row.first}: the row goes on beyond line {row.last}; is a "
                "quote left open?"
            )
        remedy = "correct the line"
        if row.last > row.first:
            remedy = f"the row goes on to line {row.last}: is a quote left open?"
        return DataError(
            f"{self.title}, line {row.first}: expected {width} fields as in the header, "
            f"found {row.width}; {remedy}"
        )
