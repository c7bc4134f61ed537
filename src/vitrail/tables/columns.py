"""The encoding of one column of a table: its bits, their names, a summary, and its file format.

A microcontroller holds a number as int32 or float32. So that it decides as Python does, cells and
thresholds are rounded to that type before they are compared. Whole numbers are int32: x > 54.5 is
x ≥ 55, exactly. Others are float32. Only where float32 would merge training values that a
threshold separates is a column held as float64.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from vitrail.errors import counted
from vitrail.state import StateReader
from vitrail.tables.cells import Cells, as_category
from vitrail.tables.spelling import PLAIN, Spelling, numeral

NumberType = Literal["int32", "float32", "float64"]
MOST_WHOLE = 2**31 - 1  # the smallest int32 is a missing number in exported code
Kind = Literal["numbers", "words", "bits", "dropped"]
MOST_LINES = 20  # of a summary of all columns
MOST_NAMES = 3  # of columns that share a line


def rounded(numbers: Any, kind: NumberType) -> np.ndarray:
    """Numbers rounded to the type in which a column compares them, as float64.

    float32: the nearest, its largest for what is out of range. Whole numbers lie on neither side
    of a threshold by rounding, so int32 leaves numbers as they are.
    """
    numbers = np.asarray(numbers, np.float64)
    if kind != "float32":
        return numbers
    most = np.finfo(np.float32).max
    return np.clip(numbers, -most, most).astype(np.float32).astype(np.float64)


def bin_names(thresholds: Sequence[float]) -> list[str]:
    """Names of the bins between ascending thresholds."""
    ends = [f"{threshold:.4g}".replace("-", "−") for threshold in thresholds]
    if not ends:
        return ["any"]
    return [f"≤ {ends[0]}", *(f"{low} – {high}" for low, high in pairwise(ends)), f"> {ends[-1]}"]


@dataclass(frozen=True)
class ColumnCode:
    """The bits of one column, in the order of the fields, the missing bit last.

    categories  words with a bit each
    other       whether any other word has a bit of its own
    thresholds  ascending; a number lies in one of the len(thresholds) + 1 bins between them
    values      a name for each bin, if the bins have a bit each; a thermometer bit `x > threshold`
                besides, unless there are only two bins, where it would repeat one of them
    missing     whether a missing value has a bit of its own
    typical     the training median, for missing numbers where training had none
    held_as     the type that numbers and thresholds are rounded to before they are compared
    spelling    how numbers are written
    strays      words among the numbers of training that count as missing
    direction   1 where probabilities never fall as the number grows, −1 where they never rise
    both        whether a second bit `x ≤ threshold` follows the thermometer for each threshold
    """

    name: str
    numeric: bool
    categories: tuple[str, ...] = ()
    other: bool = False
    thresholds: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    missing: bool = False
    typical: float = 0.0
    held_as: NumberType = "float32"
    spelling: Spelling = PLAIN
    strays: tuple[str, ...] = ()
    direction: int = 0
    both: bool = False

    @property
    def whole(self) -> bool:
        """Whether numbers are held as int32."""
        return self.held_as == "int32"

    @property
    def bit_names(self) -> list[str]:
        """One name per bit."""
        unit = self.spelling.unit
        names = [f"{self.name}={word}" for word in self.categories]
        names += [f"{self.name} other"] * self.other
        names += [f"{self.name}={value:.15g}{unit}" for value in self.values]
        if len(self.values) != 2:
            names += [f"{self.name}>{threshold:.15g}{unit}" for threshold in self.thresholds]
        names += [f"{self.name}<={one:.15g}{unit}" for one in self.thresholds * self.both]
        names += [f"{self.name} missing"] * self.missing
        return names

    def bits(self, cells: Cells) -> np.ndarray:
        """The column's bits, (rows, bits) int8; cells in the column's format."""
        missing = cells.missing
        # else numbers are words, as are missing values where training had none
        words = cells.is_word if self.numeric else ~missing | (not self.missing)
        place = {word: i for i, word in enumerate(self.categories)}
        found = np.full(len(words), -2)
        found[words] = [place.get(as_category(level), -1) for level in cells.levels[words]]
        if self.numeric and not self.other:
            missing = missing | (found == -1)
        parts = [found == i for i in range(len(self.categories))]
        parts += [found == -1] * self.other
        if self.thresholds or self.values:
            numbers = cells.numbers
            if not self.missing:
                numbers = np.where(missing, self.typical, numbers)
            cuts, numbers = (rounded(x, self.held_as) for x in (self.thresholds, numbers))
            bins = np.searchsorted(cuts, numbers)
            bins = np.where(np.isnan(numbers), -1, bins)
            parts += [bins == i for i in range(len(self.values))]
            parts += [bins > i for i in range(len(self.thresholds) * (len(self.values) != 2))]
            parts += [(bins >= 0) & (bins <= i) for i in range(len(self.thresholds) * self.both)]
        parts += [missing] * self.missing
        return np.stack(parts, axis=1).astype(np.int8)[cells.codes]

    @property
    def steps(self) -> list[int]:
        """The bit of each threshold; of two bins that of the second."""
        first = len(self.categories) + self.other
        if len(self.values) == 2:
            return [first + 1]
        return [first + len(self.values) + i for i in range(len(self.thresholds))]

    @property
    def selectable(self) -> list[int]:
        """The bits that `only` can choose among: all but those of bins and of other words."""
        rest = [len(self.bit_names) - 1] * self.missing
        return [*(self.steps if self.numeric else range(len(self.categories))), *rest]

    def only(self, bits: Collection[int]) -> tuple[ColumnCode, list[int]] | None:
        """The code of these bits alone, and the bits that it keeps; None without any.

        Of numbers only thresholds are chosen: the bits of words among them and of missing ones
        stays. Of categories any are; those left out are words never seen.
        """
        last = len(self.bit_names) - 1
        if self.numeric:
            if not self.thresholds:  # one number or none
                return (self, [*range(last + 1)]) if last in bits else None
            chosen = [i for i, bit in enumerate(self.steps) if bit in bits]
            if not chosen and self.missing and last in bits:
                chosen = [len(self.steps) // 2]
            cuts = tuple(self.thresholds[i] for i in chosen)
            fewer = replace(self, thresholds=cuts, values=(), both=False)
            first = len(self.categories) + self.other
            left = [*range(first), *(self.steps[i] for i in chosen), *([last] * self.missing)]
            return (fewer, left) if chosen else None
        left = [i for i in range(len(self.categories)) if i in bits]
        words, missing = tuple(self.categories[i] for i in left), self.missing and last in bits
        all_known = len(left) == len(self.categories) and missing == self.missing
        fewer = replace(self, categories=words, other=self.other and all_known, missing=missing)
        left += [len(words)] * fewer.other + [last] * missing
        return (fewer, left) if left else None

    def one_sided(self) -> tuple[ColumnCode, list[int]]:
        """The code with one bit per threshold, unless it has a direction, and the bits kept."""
        places = [*range(len(self.bit_names))]
        if not self.both or self.direction:
            return self, places
        first = self.steps[0] + len(self.thresholds)
        del places[first : first + len(self.thresholds)]
        return replace(self, both=False), places

    def states(self) -> np.ndarray:
        """The bits of every kind of value, (states, bits) int64.

        Of numbers: each bin, a missing number, then words among them. Of words: each category, any
        other word, a missing one.
        """
        words, width = len(self.categories) + self.other, len(self.bit_names)
        lone = np.eye(width, dtype=np.int64)
        missing = lone[-1:] if self.missing else None
        if not self.numeric:
            other = lone[words - 1 : words] if self.other else np.zeros((1, width), np.int64)
            none = other if missing is None else missing
            return np.vstack([lone[: len(self.categories)], other, none])
        bins = len(self.thresholds) + 1
        parts = [np.zeros((bins, words), np.int64)]
        parts += [np.eye(bins, dtype=np.int64)] * bool(self.values)
        above = np.tri(bins, bins - 1, -1, dtype=np.int64)
        parts += [above] * (len(self.values) != 2) + [1 - above] * self.both
        parts += [np.zeros((bins, 1), np.int64)] * self.missing
        numbers = np.hstack(parts)
        if missing is None:
            cuts, typical = (rounded(x, self.held_as) for x in (self.thresholds, self.typical))
            missing = numbers[[int(np.searchsorted(cuts, typical))]]
        return np.vstack([numbers, missing, lone[:words]])

    @property
    def value_names(self) -> list[str]:
        """Names of the first states: of numbers each bin, of words each category."""
        if not self.numeric:
            return list(self.categories)
        return [f"{value:.6g}" for value in self.values] or bin_names(self.thresholds)

    def first_level(self, cells: Cells, *, ambiguous: bool) -> int | None:
        """The first level of numbers that contradicts the spelling, or is ambiguous; or None.

        A contradiction is a number with decimals behind the mark that training's had not.
        """
        if not self.numeric or cells.levels.dtype.kind not in "OU":
            return None
        plain = self.spelling.decimal == "." and not ambiguous
        holds = self.spelling.is_ambiguous if ambiguous else self.spelling.contradicts
        for level in np.flatnonzero(np.isnan(cells.numbers) if plain else ~cells.missing).tolist():
            text = cells.levels[level]
            if isinstance(text, str) and holds(numeral(text)):
                return level
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain sequences, numbers and text."""
        fields = asdict(self)
        spelling, strays = fields.pop("spelling"), fields.pop("strays")
        for name in ("direction", "both"):  # as columns without an order were always written
            if not fields[name]:
                del fields[name]
        return {**fields, **spelling, "strays": strays}

    @staticmethod
    def from_dict(state: object) -> ColumnCode:
        """The reverse of `to_dict`; anything else is refused.

        Older files do not say how numbers are held; theirs are compared as they were, as float64.
        Nor do they say whether thousands were grouped; theirs may be.
        """
        read = StateReader(state, "column code")
        held_as = read.text("held_as", "float64")
        known = held_as in get_args(NumberType)
        read.require(known, f"has numbers held as the unknown {held_as!r}")
        decimal = read.text("decimal", ".")
        read.require(decimal in (".", ",", ""), f"has the unknown mark of decimals {decimal!r}")
        code = ColumnCode(
            name=read.text("name"),
            numeric=read.flag("numeric"),
            categories=read.texts("categories"),
            other=read.flag("other"),
            thresholds=read.numbers("thresholds"),
            values=read.numbers("values"),
            missing=read.flag("missing"),
            typical=read.number("typical"),
            held_as=held_as,  # pyright: ignore[reportArgumentType] (it is one of them)
            spelling=Spelling(decimal, read.text("unit", ""), read.flag("grouped", True)),
            strays=read.texts("strays", ()),
            direction=read.whole("direction", -1, 1, 0),
            both=read.flag("both", False),
        )
        read.done()
        thresholds, values = code.thresholds, code.values
        read.require(len(set(code.categories)) == len(code.categories), "repeats a category")
        for numbers in (thresholds, values):
            ascending = all(low < high for low, high in pairwise(numbers))
            read.require(ascending, "has numbers out of order")
        read.require(len(values) in (0, len(thresholds) + 1), "needs a value for each bin")
        read.require(code.numeric or not thresholds, "has thresholds for words")
        read.require(code.numeric or not (code.direction or code.both), "has an order of words")
        read.require(not (code.both and values), "has bins beside both sides of thresholds")
        read.require(bool(code.bit_names), "has no bits")
        return code


@dataclass(frozen=True)
class ColumnAccount:
    """How one column is encoded.

    kept_as  numbers, words or bits; or dropped
    bits     number of bits
    missing  number of training rows without a value
    note     why it was dropped, or what was unusual; "" for nothing
    """

    name: str
    kept_as: Kind
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

    @staticmethod
    def from_dict(state: object) -> ColumnAccount:
        """The reverse of `asdict`; anything else is refused."""
        read = StateReader(state, "account of a column")
        kept_as = read.text("kept_as")
        read.require(kept_as in get_args(Kind), f"has the unknown kind {kept_as!r}")
        account = ColumnAccount(
            read.text("name"),
            kept_as,  # pyright: ignore[reportArgumentType] (it is one of them)
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
        more = f" and {len(names) - MOST_NAMES:,} more" * (len(names) > MOST_NAMES)
        yield f"{', '.join(names[:MOST_NAMES])}{more}: {encoding}" + " each" * (len(names) > 1)
    left = sum(len(names) for _, names in groups[MOST_LINES:])
    if left:
        yield f"and {counted(left, 'column')} more; `vitrail info --json` has them all"
