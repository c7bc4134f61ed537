"""Errors about data: one sentence that says what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterable


class DataError(ValueError):
    """A file or table cannot be used as it is; the message says what to do about it."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


class TableTooLargeError(DataError):
    """A file would not fit in memory; raised before it is loaded."""


class DataWarning(UserWarning):
    """Something in a table was not as in training, and how it was read."""


def listed(items: Iterable[object], most: int = 8) -> str:
    """Names in a sentence, the first few of many."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(map(repr, items[:most])) + more


def counted(count: int, what: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def printable(text: str) -> str:
    """The text on one line that a terminal can show: names of files may hold any bytes."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else "?" for sign in text)
