"""Arrays out of NPZ archives, checked before they take memory; nothing in them is run."""

from __future__ import annotations

import zipfile
import zlib
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import IO

import numpy as np

from vitrail.data.errors import DataError, listed
from vitrail.data.files import file_size, open_file
from vitrail.data.memory import check_size

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


def read_npz(path: str | Path) -> tuple[np.ndarray, str | None, np.ndarray | None]:
    """The array of inputs, and the name and array of labels where there are any."""
    with open_file(path) as stream:
        size = file_size(stream)
        try:
            with zipfile.ZipFile(stream) as archive:
                members = {
                    entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()
                }
                inputs = next((name for name in INPUT_ARRAYS if name in members), None)
                label = next((name for name in LABEL_ARRAYS if name in members), None)
                if inputs is None:
                    raise DataError(
                        f"{path}: expected an array named X or inputs, found {listed(members)}; "
                        f"{SAVE}"
                    )
                arrays = {}
                for name in filter(None, (inputs, label)):
                    entry = members[name]
                    needed = entry.file_size * LOADING_COPIES
                    check_size(str(path), f"the values of {name!r}", needed, size)
                    with archive.open(entry) as member:
                        arrays[name] = _read_array(member, entry.file_size, f"{path}: {name!r}")
        except zipfile.BadZipFile:
            raise DataError(f"{path} is no NPZ archive, or a damaged one; {SAVE}") from None
        except DataError:
            raise
        except (ValueError, OSError, EOFError, zlib.error, RuntimeError, NotImplementedError):
            # what zipfile says of members that end early, are encrypted or packed strangely
            raise DataError(f"{path} is damaged, or packed in an unknown way; {SAVE}") from None
    return arrays[inputs], label, None if label is None else arrays[label]


def _read_array(member: IO[bytes], size: int, title: str) -> np.ndarray:
    """One array of `size` bytes with its header, which must announce what is there."""
    try:
        version = np.lib.format.read_magic(member)
        shape, by_columns, dtype = HEADERS[version](member)
    except BAD_HEADER:
        raise DataError(f"{title} is no array of numbers or text; {SAVE}") from None
    if dtype.kind not in KINDS:
        raise DataError(f"{title} holds {dtype} values; save plain numbers, booleans or text")
    announced, found = prod(shape) * dtype.itemsize, size - member.tell()
    if announced != found:
        raise DataError(f"{title} announces {announced:,} bytes but holds {found:,}; save it again")
    values = np.frombuffer(member.read(found), dtype)
    return values.reshape(shape[::-1]).T if by_columns else values.reshape(shape)
