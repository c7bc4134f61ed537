"""Files that are written completely or not at all."""

from __future__ import annotations

import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from vitrail.errors import DataError


@contextmanager
def atomic_output(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which gets its name only when the block ends without an error.

    It is written under a temporary name in the same folder and renamed; links are followed, and an
    existing file's permissions are kept. A device or a pipe is written directly.
    """
    target = Path(os.path.realpath(path))
    with _explained(path):
        draft, stream = _open(target, path)
    try:
        with stream:
            yield stream
        if draft is not None:
            with _explained(path):
                if target.exists():
                    draft.chmod(stat.S_IMODE(target.stat().st_mode))
                draft.replace(target)
    except BaseException:
        if draft is not None:
            draft.unlink(missing_ok=True)
        raise


def check_writable(path: str | Path) -> None:
    """Raise a DataError if `atomic_output` could not write there."""
    target = Path(os.path.realpath(path))
    if _is_device(target):
        return
    with _explained(path):
        draft, stream = _open(target, path)
    stream.close()
    if draft is not None:
        draft.unlink()


def _is_device(target: Path) -> bool:
    return target.exists() and not target.is_file() and not target.is_dir()


class _Output(io.FileIO):
    """A file whose errors of writing have the user's path and a remedy."""

    path: str | Path

    def write(self, data: Any, /) -> int:
        with _explained(self.path):
            return super().write(data)


def _open(target: Path, path: str | Path) -> tuple[Path | None, BinaryIO]:
    """A temporary file beside the target, or None and the target if it is a device or a pipe."""
    draft = None
    if not _is_device(target):
        if target.is_dir():
            raise IsADirectoryError
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError
        draft = target.with_name(f".vitrail-{secrets.token_hex(8)}.tmp")
    output = _Output(draft or target, "xb" if draft else "wb")
    output.path = path
    return draft, io.BufferedWriter(output)


@contextmanager
def _explained(path: str | Path) -> Iterator[None]:
    try:
        yield
    except IsADirectoryError:
        raise DataError(f"cannot write {path}: it is a folder; give a file name") from None
    except BrokenPipeError:  # the reader has closed the pipe
        raise
    except OSError as error:
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir():
            raise DataError(
                f"cannot write {path}: there is no folder {folder}; create it"
            ) from None
        reason = error.strerror or "permission denied"
        raise DataError(f"cannot write {path}: {reason}; choose another place") from None
