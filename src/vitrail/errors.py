"""Errors about data, each a sentence with the problem and a remedy."""

from __future__ import annotations

from collections.abc import Iterable


class DataError(ValueError):
    """A file or table cannot be used; the message has the remedy."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


class TableTooLargeError(DataError):
    """A file would not fit in memory; raised before it is loaded."""


class DataWarning(UserWarning):
    """A table differs from that of training; the message says how it was read."""


def listed(items: Iterable[object], most: int = 8) -> str:
    """Names for a sentence; of many, the first few and the number of the others."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(map(repr, items[:most])) + more


def counted(count: int, what: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def printable(text: str) -> str:
    """The text without characters that a terminal cannot show; file names may have any bytes."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else "?" for sign in text)
