"""How each column of a table is encoded: as numbers, words or bits, or dropped and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from vitrail.errors import counted
from vitrail.tables.plain import PlainReader

MOST_LINES = 20  # that a reader can take in
MOST_NAMES = 3
Kept = Literal["numbers", "words", "bits", "dropped"]


@dataclass(frozen=True)
class ColumnAccount:
    """How one column is encoded.

    kept_as  numbers, words or bits; or dropped
    bits     number of bits
    missing  number of training rows without a value
    note     why it was dropped, or what was unusual; "" for nothing
    """

    name: str
    kept_as: Kept
    bits: int
    missing: int
    note: str = ""

    def __str__(self) -> str:
        """`age: numbers, 7 bits, 3 missing; decimal commas`."""
        return f"{self.name}: {self.encoding}"

    @property
    def encoding(self) -> str:
        """Its encoding, without its name."""
        parts = [self.kept_as]
        parts += [counted(self.bits, "bit")] * bool(self.bits)
        parts += [f"{self.missing:,} missing"] * bool(self.missing)
        return ", ".join(parts) + f"; {self.note}" * bool(self.note)

    def to_dict(self) -> dict[str, Any]:
        """Plain text and numbers."""
        return {
            "name": self.name,
            "kept_as": self.kept_as,
            "bits": self.bits,
            "missing": self.missing,
            "note": self.note,
        }

    @staticmethod
    def from_dict(state: object) -> ColumnAccount:
        """The reverse of `to_dict`; anything else is refused."""
        read = PlainReader(state, "account of a column")
        kept_as = read.text("kept_as")
        known: dict[str, Kept] = {choice: choice for choice in get_args(Kept)}
        read.require(kept_as in known, f"has the unknown kind {kept_as!r}")
        account = ColumnAccount(
            read.text("name"),
            known[kept_as],
            read.whole("bits", 0, 2**31),
            read.whole("missing", 0, 2**53),
            read.text("note"),
        )
        read.done()
        return account


def column_lines(accounts: Sequence[ColumnAccount]) -> Iterator[str]:
    """A line per column; with many columns, a line per encoding, at most 20."""
    if len(accounts) <= MOST_LINES:
        yield from map(str, accounts)
        return
    alike: dict[str, list[str]] = {}
    for account in accounts:
        alike.setdefault(account.encoding, []).append(account.name)
    groups = sorted(alike.items(), key=lambda group: group[0].startswith("dropped"), reverse=True)
    for encoding, names in groups[:MOST_LINES]:
        yield f"{_some(names)}: {encoding}" + " each" * (len(names) > 1)
    left = sum(len(names) for _, names in groups[MOST_LINES:])
    if left:
        yield f"and {counted(left, 'column')} more; `vitrail info --json` has them all"


def _some(names: Sequence[str]) -> str:
    """The names, or the first of them and how many more there are."""
    first = ", ".join(names[:MOST_NAMES])
    return first + f" and {len(names) - MOST_NAMES:,} more" * (len(names) > MOST_NAMES)
