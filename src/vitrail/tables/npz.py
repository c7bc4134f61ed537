"""Arrays out of NPZ archives, some rows at a time; checked before they take memory, never run."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import IO

import numpy as np

from vitrail.errors import DataError, listed
from vitrail.files import file_size, open_file
from vitrail.memory import check_size, most_bytes

INPUT_ARRAYS, LABEL_ARRAYS = ("X", "inputs"), ("y", "labels")  # the names looked for
KINDS = "biufU"  # numpy's kinds of arrays that hold numbers, booleans or text
LOADING_COPIES = 3  # as read, with columns one after another, and as pyarrow holds them
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# what numpy raises on one, which it reads with Python's own tokenizer and parser
BAD_HEADER = (ValueError, KeyError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError)
SAVE = "save it with numpy.savez(path, X=…, y=…)"


@dataclass(frozen=True)
class StoredArray:
    """What an archive says of an array before its values are read."""

    name: str
    entry: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype
    by_columns: bool  # columns one after another, so that no row is there before all are
    start: int  # bytes of the header

    @property
    def row_bytes(self) -> int:
        return prod(self.shape[1:]) * self.dtype.itemsize


class NpzFile:
    """The array of inputs, and that of labels where there is one.

    Rows are read as they are asked for, packed or not. Arrays that lie by columns are read whole.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._stream = open_file(path)
        self.file_bytes = file_size(self._stream)
        try:
            with self._in_a_sentence():
                self._archive = zipfile.ZipFile(self._stream)
                self.inputs, self.labels = self._arrays()
        except BaseException:
            self.close()
            raise

    def runs(self, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Inputs and labels of so many rows after another."""
        with self._in_a_sentence():
            parts = [self._runs(array, rows) for array in (self.inputs, self.labels) if array]
            for inputs, *labels in zip(*parts, strict=True):
                yield inputs, labels[0] if labels else None

    def close(self) -> None:
        self._stream.close()

    def _arrays(self) -> tuple[StoredArray, StoredArray | None]:
        members = {e.filename.removesuffix(".npy"): e for e in self._archive.infolist()}
        inputs = next((name for name in INPUT_ARRAYS if name in members), None)
        label = next((name for name in LABEL_ARRAYS if name in members), None)
        if inputs is None:
            raise DataError(
                f"{self._path}: expected an array named X or inputs, found {listed(members)}; "
                f"{SAVE}"
            )
        found = [self._announced(name, members[name]) for name in (inputs, label) if name]
        return found[0], found[1] if label else None

    def _announced(self, name: str, entry: zipfile.ZipInfo) -> StoredArray:
        """What an array's header says, which must be what is there."""
        if self.file_bytes is not None and _needed(entry) > most_bytes(self.file_bytes):
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
        return StoredArray(name, entry, shape, dtype, by_columns and len(shape) > 1, start)

    def _runs(self, array: StoredArray, rows: int) -> Iterator[np.ndarray]:
        count = array.shape[0]
        with self._archive.open(array.entry) as member:
            member.read(array.start)
            if array.by_columns:
                self._check_size(array.name, array.entry)
                values = _values(member, array, (*array.shape[::-1],)).T
                yield from (values[first : first + rows] for first in range(0, count, rows))
                return
            for first in range(0, count, rows):
                yield _values(member, array, (min(rows, count - first), *array.shape[1:]))

    def _check_size(self, name: str, entry: zipfile.ZipInfo) -> None:
        what = f"the values of {name!r}"
        check_size(str(self._path), what, _needed(entry), self.file_bytes)

    @contextmanager
    def _in_a_sentence(self) -> Iterator[None]:
        """What zipfile says of archives and members that are damaged, as one of ours."""
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


def _needed(entry: zipfile.ZipInfo) -> int:
    """Bytes that it takes to hold a whole member."""
    return entry.file_size * LOADING_COPIES


def _values(member: IO[bytes], array: StoredArray, shape: tuple[int, ...]) -> np.ndarray:
    """The next values; a ValueError where the member ends before them."""
    return np.frombuffer(member.read(prod(shape) * array.dtype.itemsize), array.dtype).reshape(
        shape
    )
