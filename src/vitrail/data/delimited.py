"""CSV and TSV: read in blocks, every cell kept as the text it was written as.

pyarrow splits the rows, fast and in constant memory; when it finds a fault, a second, slow pass
finds the line to name.
"""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
from pyarrow import csv as arrow_csv

from vitrail.data.cells import unique_names
from vitrail.data.errors import DataError

BLOCK_BYTES = 1 << 23  # a row must fit in a block; a dozen or so are in flight at once
TEXT = pa.dictionary(pa.int32(), pa.string())
GZIP_MAGIC = b"\x1f\x8b"
BINARY = "is not a text table (it holds binary data); give CSV or TSV, or name it by its format"


class DelimitedFile:
    """A CSV or TSV file, plain or gzipped, or standard input for `-`.

    The delimiter may be left open: then it is a comma, or, where the header has none, a semicolon
    or a tab.
    """

    label = None
    image_shape = None

    def __init__(self, path: str | Path, delimiter: str | None = None) -> None:
        self.title = "standard input" if str(path) == "-" else str(path)
        self._path = Path(path)
        with ExitStack() as closing:
            if is_stream(path):  # a table may have to be read twice
                folder = closing.enter_context(tempfile.TemporaryDirectory())
                self._path = _spooled(path, Path(folder))
            with self._text() as (stream, _):
                header = self._header_bytes(stream)
            self.delimiter, self.names = self._parse_header(header, delimiter)
            self._closing = closing.pop_all()

    def close(self) -> None:
        self._closing.close()

    @property
    def schema(self) -> pa.Schema:
        """All columns as dictionary-encoded text."""
        return pa.schema([(name, TEXT) for name in self.names])

    def blocks_in_file(self) -> float:
        """About how many blocks `blocks` will give; of a gzipped file, judged by its beginning."""
        with self._text() as (stream, raw):
            beginning = len(stream.read(BLOCK_BYTES))
            return beginning / BLOCK_BYTES * self._path.stat().st_size / max(1, raw.tell())

    def blocks(self) -> Iterator[pa.RecordBatch]:
        """The rows, block by block; some blocks may be empty."""
        last_row = None
        try:
            with self._text() as (stream, _):
                self._header_bytes(stream)
                if stream.peek(1):
                    with self._open(stream) as reader:
                        for block in reader:
                            last_row = block.slice(block.num_rows - 1) if block else last_row
                            yield block
        except pa.ArrowInvalid as error:
            self._explain(str(error))
        if last_row is not None and "\n" in last_row.columns[-1][0].as_py():
            self._explain(None)  # an unclosed quote swallows the rest of the file

    def _open(self, stream: io.BufferedReader) -> arrow_csv.CSVStreamingReader:
        return arrow_csv.open_csv(
            cast(BinaryIO, stream),
            read_options=arrow_csv.ReadOptions(block_size=BLOCK_BYTES, column_names=self.names),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=self.schema, strings_can_be_null=False
            ),
        )

    @contextmanager
    def _text(self) -> Iterator[tuple[io.BufferedReader, io.BufferedReader]]:
        """The text from its beginning, less a byte order mark, and the file it comes from.

        Each reading has a handle of its own: pyarrow reads ahead in the background, even when
        nobody asks for more.
        """
        with open_file(self._path) as raw:
            stream = raw
            if raw.peek(2).startswith(GZIP_MAGIC):
                stream = cast(io.BufferedReader, io.BufferedReader(gzip.GzipFile(fileobj=raw)))
            try:
                if stream.peek(3).startswith(b"\xef\xbb\xbf"):
                    stream.read(3)
                yield stream, raw
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise DataError(
                    f"{self.title} is a damaged gzip file ({error}); copy it again"
                ) from None

    def _header_bytes(self, stream: io.BufferedReader) -> bytes:
        """The bytes up to the end of the header, which may have line breaks within quotes."""
        header = b""
        while not header.strip() or header.count(b'"') % 2:
            line = stream.readline(BLOCK_BYTES)
            if not line:
                break
            header += line
        return header

    def _parse_header(self, header: bytes, delimiter: str | None) -> tuple[str, list[str]]:
        if not header.strip():
            raise DataError(f"{self.title} is empty; expected a header row and data rows")
        if b"\0" in header:
            raise DataError(f"{self.title} {BINARY}")
        if header.count(b'"') % 2:
            raise DataError(f"{self.title}: a quote in the header is never closed; correct it")
        if not _is_text(header):
            raise DataError(f"{self.title} is not UTF-8 text in its first line; save it as UTF-8")
        text = header.decode().lstrip("\r\n")
        for candidate in delimiter or ",;\t":
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
            if len(rows[0]) > 1:
                return candidate, unique_names(rows[0])
        return delimiter or ",", rows[0]

    def _explain(self, fault: str | None) -> None:
        """Find the line of the first fault; `fault` is what was noticed, None for a suspicion."""
        with self._text() as (stream, _):
            for number, line in enumerate(stream, 1):
                if not _is_text(line):
                    raise DataError(
                        f"{self.title}, line {number}: not UTF-8 text; save the file as UTF-8"
                    )
        with self._text() as (stream, _):
            lines = (line.decode() for line in stream)
            rows = csv.reader(lines, delimiter=self.delimiter, strict=True)
            last = 0
            try:
                for row in rows:
                    if row and len(row) != len(self.names):
                        raise DataError(
                            f"{self.title}, line {rows.line_num}: expected {len(self.names)} "
                            f"fields as in the header, found {len(row)}; correct the line"
                        )
                    last = rows.line_num
            except csv.Error as error:
                raise DataError(
                    f"{self.title}, line {last + 1}: {error}; is a quote left open there?"
                ) from None
        if fault is not None:
            raise DataError(f"{self.title} cannot be read as a table: {fault}")


def open_file(path: str | Path) -> io.BufferedReader:
    """The file, opened for reading bytes, or one sentence on why not."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise DataError(f"{path} not found; check the path") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; give a file") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; check its permissions") from None


def is_stream(path: str | Path) -> bool:
    """Whether the path is `-` for standard input, a pipe or a device, which can be read once."""
    path = Path(path)
    return str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def _spooled(path: str | Path, folder: Path) -> Path:
    """A file in the folder with all that the stream gives."""
    spool = folder / "spool"
    with spool.open("wb") as target:
        if str(path) == "-":
            shutil.copyfileobj(sys.stdin.buffer, target)
        else:
            with open_file(path) as source:
                shutil.copyfileobj(source, target)
    return spool


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
