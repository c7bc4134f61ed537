"""What goes wrong with people's data, said in one sentence with the remedy."""

from __future__ import annotations


class DataError(ValueError):
    """A file or table cannot be used as it is; the message says what to do about it."""


class TableTooLargeError(DataError):
    """A file would not fit in memory; raised before anything is loaded."""
