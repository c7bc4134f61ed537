"""What goes wrong with people's data, said in one sentence with the remedy."""

from __future__ import annotations

from collections.abc import Iterable


class DataError(ValueError):
    """A file or table cannot be used as it is; the message says what to do about it."""


class TableTooLargeError(DataError):
    """A file would not fit in memory; raised before anything is loaded."""


def listed(items: Iterable[object], most: int = 8) -> str:
    """Names in a sentence, the first few of many."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(map(repr, items[:most])) + more
