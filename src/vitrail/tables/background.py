"""Streams that pyarrow reads in threads of its own.

These threads call Python for every block. One that does so while the interpreter ends is killed on
the spot: the process aborts, or waits for that thread for ever. So whoever hands a stream to
pyarrow waits, before going on, until no thread holds it.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any, BinaryIO

LONGEST_WAIT = 5.0  # seconds; a pipe may be silent for longer, with a thread waiting for its bytes
INTERVAL = 0.001


class Source:
    """The file that pyarrow holds; called with a row of too few or too many fields, it notes it.

    Its functions are not its own methods: the traceback of an error in one of them would keep the
    source alive.
    """

    closed = False

    def __init__(self, read: Callable[[int], bytes], note: Callable[[Any], str]) -> None:
        self.read, self._note = read, note

    def __call__(self, row: Any) -> str:
        return self._note(row)

    def close(self) -> None:
        """The one who opened the stream closes it."""


class BackgroundReads:
    """A stream while pyarrow reads it, and the rows of another width that it found."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._finished = stream, False
        self._source: weakref.ref[Source] | None = None
        self.ragged: list[Any] = []

    def source(self) -> Any:
        """What to give to pyarrow, and to keep no reference to."""
        source = Source(self._read, self._note)
        self._source = weakref.ref(source)
        return source

    def finish(self) -> None:
        """Return when no thread holds the source; the next read of any of them is the last."""
        self._finished = True
        latest = time.monotonic() + LONGEST_WAIT
        while self._source is not None and self._source() is not None:
            if time.monotonic() > latest:
                return
            time.sleep(INTERVAL)

    def _read(self, size: int = -1) -> bytes:
        return b"" if self._finished else self._stream.read(size)

    def _note(self, row: Any) -> str:
        self.ragged.append(row)
        return "error"
