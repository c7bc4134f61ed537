"""Opening files, with errors that have a remedy, and decompression up to a limit."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from pathlib import Path
from typing import Any

from vitrail.errors import DataError
from vitrail.memory import check_size, most_bytes

GZIP_MAGIC = b"\x1f\x8b"


def open_file(path: str | Path) -> tuple[io.BufferedReader, int | None]:
    """The file, opened for reading bytes, and its size; `-` is standard input.

    The size of a pipe or a device is None. A DataError says why a file cannot be opened.
    """
    try:
        stream = None if str(path) == "-" else open(path, "rb")  # noqa: SIM115 (the caller closes)
    except FileNotFoundError:
        raise DataError(f"{path} not found; check the path") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; give a file") from None
    except (OSError, ValueError) as error:  # a ValueError is a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} cannot be read: {reason}; check its permissions") from None
    stream = stream or _standard_input()
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):  # not a file of the operating system
        return stream, None
    return stream, status.st_size if stat.S_ISREG(status.st_mode) else None


def is_stream(path: str | Path) -> bool:
    """Whether the path is `-` for standard input, a pipe or a device, which can be read once."""
    if str(path) == "-":
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


class Unpacked(io.RawIOBase):
    """The bytes of a file, or of standard input for `-`, decompressed if they are gzipped.

    title       name of the file in errors
    file_bytes  its size, None for a stream
    total       estimated number of decompressed bytes; None if unknown
    count       number of bytes read so far
    end         the last byte read that is not part of a line end
    """

    def __init__(self, path: str | Path) -> None:
        self.title = "standard input" if str(path) == "-" else str(path)
        raw, self.file_bytes = open_file(path)
        self._raw = raw
        self._is_ours = str(path) != "-"
        self.total: float | None = self.file_bytes
        self.count, self.end = 0, b""
        self._limit: int | None = None
        self._source: Any = raw
        if raw.peek(2).startswith(GZIP_MAGIC):
            self._source = gzip.GzipFile(fileobj=raw)
            self._limit = None if self.file_bytes is None else most_bytes(self.file_bytes)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer)
        try:
            size = self._source.readinto(view)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(
                f"{self.title} is a damaged gzip file ({error}); copy it again"
            ) from None
        self.count += size
        if self._source is not self._raw and self.file_bytes is not None:
            self.total = self.count * self.file_bytes / self._raw.tell()
        self.end = bytes(view[max(0, size - 64) : size]).rstrip(b"\r\n")[-1:] or self.end
        if self._limit is not None and self.count > self._limit:
            check_size(self.title, "over that many bytes", self.count, self.file_bytes)
        return size

    @property
    def plain_bytes(self) -> int | None:
        """The number of bytes; None for compressed files and streams."""
        return self.file_bytes if self._source is self._raw else None

    def close(self) -> None:
        if self._is_ours and not self.closed:
            self._raw.close()
        super().close()


def _standard_input() -> io.BufferedReader:
    try:
        buffer: Any = sys.stdin.buffer
        buffer.readable()
    except (AttributeError, ValueError):  # there is none, or it is closed
        raise DataError("standard input is closed; give a file, or pipe a table in") from None
    return buffer if isinstance(buffer, io.BufferedReader) else io.BufferedReader(buffer)
