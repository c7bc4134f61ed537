"""Where the rows of a text file stand: read again, slowly, when a line has to be named."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vitrail.errors import DataError
from vitrail.files import Unpacked


@dataclass(frozen=True)
class FileRow:
    """One row: its first and last line, counted from 1, and its fields; None if endless."""

    first: int
    last: int
    width: int | None
    is_text: bool


class Lines:
    """The lines of a CSV or TSV file, by the rows of its table; the header is no row.

    path: None for a stream, which cannot be read again.
    """

    def __init__(self, path: Path | None, delimiter: str) -> None:
        self._path, self._delimiter = path, delimiter
        self._ahead: Iterator[FileRow] = iter(())
        self._next = 0  # the row that `_ahead` gives next

    def place(self, row: int) -> str:
        """`line 17`, where the file can be read again, else the row with the header as row 1."""
        if row < self._next or self._next == 0:
            self._ahead, self._next = self.rows(header=False), 0
        try:
            for found in self._ahead:
                self._next += 1
                if self._next > row:
                    return f"line {found.first}"
        except DataError:  # it is gone or was changed since
            pass
        return f"row {row + 2} (the header is row 1)"

    def rows(self, header: bool = True) -> Iterator[FileRow]:
        """The rows that are not blank; none of a stream."""
        if self._path is None:
            return
        with io.BufferedReader(Unpacked(self._path)) as stream:
            text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
            rows = csv.reader(text, delimiter=self._delimiter)
            first = 1
            try:
                for row in rows:
                    if row and header:
                        yield FileRow(first, rows.line_num, len(row), all(map(_is_text, row)))
                    header = header or bool(row)
                    first = rows.line_num + 1
            except csv.Error:  # a field longer than Python reads; what follows is not known
                yield FileRow(first, rows.line_num, None, True)


def _is_text(cell: str) -> bool:
    try:
        cell.encode()
    except UnicodeEncodeError:
        return False
    return True
