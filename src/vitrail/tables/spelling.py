"""Numbers as people write them: `1,234.50` and `1.234,50`, `$5.00`, `12 %`, `1 000`, `5 kg`.

Most spellings can be read in one way only. `1.234` and `1,234` can be read in two; which is meant
is told by the other cells of the column, or by the other columns of the table. Where nothing tells
it, or the cells contradict each other, the column is refused by its name: nothing is guessed. What
was found in training is remembered, and later tables are read by it or refused.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrail.errors import DataError

BLANKS = " \t"  # ASCII space and tab; readers handle line ends, other spaces are text
CELL_TYPES = (str, int, float, np.integer, np.floating, np.bool_)
TRUTH_WORDS = {"true": 1.0, "false": 0.0}  # so that a flag reads alike from text and Parquet
PERCENT = "%"
LONGEST = 60  # characters of a number; longer texts are not looked at
GROUPS = " '’\u00a0\u2009\u202f"  # separators between groups of three digits
NUMERAL = re.compile(
    r"(?:(?P<sign>[-+−])\s*)?(?:(?P<before>[^\w\s.,'’%+−-])\s*)?(?P<inner>[-+−]?)"
    rf"(?P<digits>[0-9.,][0-9.,{GROUPS}]*?)(?P<exponent>[eE][-+]?[0-9]+)?"
    r"(?:\s*(?P<unit>%|[^\W\d_][^\d\s]{0,9}|[^\w\s.,'’+−-][^\W\d_]?))?"
)
GROUPED = {
    mark: re.compile(rf"[1-9][0-9]{{0,2}}(?:{re.escape(mark)}[0-9]{{3}})+(?![0-9])")
    for mark in "," + GROUPS
}
WITH_POINT = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
TWO_READINGS = re.compile(r"[-+]?[1-9][0-9]{0,2}\.[0-9]{3}")


@dataclass(frozen=True)
class Spelling:
    """How a column spells its numbers.

    decimal  the mark of decimals in cells that have two readings; "" where no cell may have two
    unit     a currency sign, `%`, or letters behind every number; "" for none
    grouped  whether the other mark, the point or the comma, separates thousands
    """

    decimal: str = "."
    unit: str = ""
    grouped: bool = False

    def accepts(self, unit: str) -> bool:
        """Whether numbers with that unit, "" for none, belong to the column."""
        return unit == self.unit or (not unit and _is_currency(self.unit))

    def is_ambiguous(self, cell: Numeral) -> bool:
        """Whether a number of the column has two readings."""
        return cell.is_ambiguous and self.accepts(cell.unit)

    def contradicts(self, cell: Numeral) -> bool:
        """Whether a number of the column has decimals behind the other mark, beyond doubt."""
        other = {".": cell.point, ",": cell.comma}.get(self.decimal, 0.0)
        return cell.is_number and self.accepts(cell.unit) and math.isnan(other)


PLAIN = Spelling()


@dataclass(frozen=True)
class Numeral:
    """The readings of a cell, NaN for none: the point, or the comma, as the mark of decimals."""

    point: float
    comma: float
    unit: str = ""
    marks: frozenset[str] = frozenset()  # the points and commas among its digits

    @property
    def is_number(self) -> bool:
        """Whether it can be read at all."""
        return not (math.isnan(self.point) and math.isnan(self.comma))

    @property
    def is_ambiguous(self) -> bool:
        """Whether it can be read in two ways."""
        return self.point != self.comma and not math.isnan(self.point + self.comma)

    def read(self, spelling: Spelling) -> float:
        """The number, NaN where the column does not spell numbers so."""
        if not spelling.accepts(self.unit):
            return math.nan
        if self.is_ambiguous:
            known = spelling.grouped or spelling.decimal in self.marks
            readings = {".": self.point, ",": self.comma} if known else {}
            return readings.get(spelling.decimal, math.nan)
        return self.comma if math.isnan(self.point) else self.point


NO_NUMERAL = Numeral(math.nan, math.nan)


def stripped(text: str) -> str:
    """The text without blanks around it: for readers, encoders, labels and exported code."""
    return text.strip(BLANKS)


def as_number(value: object) -> float:
    """The number that a cell spells as programs do, NaN if none; true and false are 1 and 0."""
    if not isinstance(value, str):
        try:
            return float(value) if isinstance(value, CELL_TYPES) else math.nan
        except OverflowError:  # of a Python int, which has no bound
            return math.inf if value > 0 else -math.inf  # pyright: ignore[reportOperatorIssue]
    text = stripped(value)
    # float() also takes 1_000 and the digits of other scripts, which are hardly meant as numbers
    if not text.isascii() or "_" in text:
        return math.nan
    try:
        number = float(text)
    except ValueError:
        return TRUTH_WORDS.get(text.lower(), math.nan)
    strips_more = text[0] <= " " or text[-1] <= " "  # float() also strips line ends and the like
    return math.nan if strips_more else number


def numeral(text: str) -> Numeral:
    """All readings of a text."""
    text = stripped(text)
    number = as_number(text)
    if not math.isnan(number):
        if "." not in text:
            return Numeral(number, number)
        comma = number * 1000 if TWO_READINGS.fullmatch(text) else math.nan
        return Numeral(number, comma, marks=frozenset("."))
    if len(text) > LONGEST or text[:1].isalpha():
        return NO_NUMERAL
    found = NUMERAL.fullmatch(text)
    if found is None or (found["sign"] and found["inner"]):
        return NO_NUMERAL
    before, unit = found["before"] or "", found["unit"] or ""
    if before and (unit or not _is_currency(before)):
        return NO_NUMERAL
    digits = found["digits"]
    for group in GROUPS:
        if group in digits:
            digits = _ungrouped(digits, group)
    sign = -1.0 if (found["sign"] or found["inner"]) in ("-", "−") else 1.0
    swapped = digits.translate({ord("."): ",", ord(","): "."})
    exponent = found["exponent"] or ""
    point, comma = (sign * _with_points(part, exponent) for part in (digits, swapped))
    return Numeral(point, comma, before or unit, frozenset(".,") & frozenset(digits))


def _with_points(digits: str, exponent: str) -> float:
    """The number whose decimals follow a point, with or without commas between thousands."""
    digits = digits if exponent else _ungrouped(digits, ",")
    return float(digits + exponent) if WITH_POINT.fullmatch(digits) else math.nan


def _ungrouped(digits: str, mark: str) -> str:
    """Digits without the mark between groups of three, where they begin in such groups."""
    grouped = GROUPED[mark].match(digits)
    return digits if grouped is None else grouped[0].replace(mark, "") + digits[grouped.end() :]


def _is_currency(unit: str) -> bool:
    return len(unit) == 1 and unicodedata.category(unit) == "Sc"


@dataclass(frozen=True)
class SpellingEvidence:
    """Evidence in the cells of a column for its number format."""

    marks: frozenset[str]  # the marks of decimals that some cell leaves no doubt of
    spelling: Spelling | None  # None where the rest of the table decides


def infer_spelling(
    texts: Sequence[str], are_plain: bool, name: str, usual: frozenset[str] | None = None
) -> SpellingEvidence:
    """How the cells of a column of numbers, different texts none of them missing, spell numbers.

    Texts that are no numbers are left out of account.
    are_plain  whether all are numbers as programs write them
    usual      the marks of decimals in the rest of the table, None where they are not known yet
    """
    if are_plain:
        pointed = [text for text in texts if "." in text]
        if not all(TWO_READINGS.fullmatch(stripped(text)) for text in pointed):
            return SpellingEvidence(frozenset("."), PLAIN)
        if not pointed:
            return SpellingEvidence(frozenset(), PLAIN)
    found = [(text, numeral(text)) for text in texts]
    found = [(text, n) for text, n in found if n.is_number]
    unit = _unit(found, name)
    found = [(text, n) for text, n in found if Spelling(unit=unit).accepts(n.unit)]
    point = next((text for text, n in found if math.isnan(n.comma)), "")
    comma = next((text for text, n in found if math.isnan(n.point)), "")
    marks = frozenset(mark for mark, text in ((".", point), (",", comma)) if text)
    doubtful = [(text, n) for text, n in found if n.is_ambiguous]
    if len(marks) == 2:
        if doubtful:
            raise _contradiction(name, point, comma, doubtful[0][0])
        return SpellingEvidence(marks, Spelling("", unit))
    if marks or not doubtful:
        return SpellingEvidence(marks, _spelling("".join(marks) or ".", unit, found))
    by_point = next((text for text, n in doubtful if abs(n.point) < abs(n.comma)), "")
    by_comma = next((text for text, n in doubtful if abs(n.point) > abs(n.comma)), "")
    if by_point and by_comma:
        raise _contradiction(name, by_point, by_comma, by_point)
    if usual is None:
        return SpellingEvidence(marks, None)
    if len(usual) == 1 or by_point:
        return SpellingEvidence(marks, _spelling("," if usual == {","} else ".", unit, found))
    unmarked = [abs(n.point) for _, n in found if not n.is_ambiguous]
    if unmarked and max(unmarked) < 1000:  # a comma only from a thousand on: it is no decimal's
        return SpellingEvidence(marks, _spelling(".", unit, found))
    text, readings = doubtful[0]
    raise DataError(
        f"column {name!r}: {text!r} may mean {readings.point:g} or {readings.comma:g}; "
        "write it without a comma, or with a point before decimals"
    )


def _spelling(decimal: str, unit: str, found: list[tuple[str, Numeral]]) -> Spelling:
    """The spelling of numbers that all have this mark of decimals, if any."""
    return Spelling(decimal, unit, any(n.marks - {decimal} for _, n in found))


def _unit(found: list[tuple[str, Numeral]], name: str) -> str:
    """The unit of a column's numbers, "" for none."""
    units = dict.fromkeys(n.unit for _, n in found)
    signs = [unit for unit in units if unit == PERCENT or _is_currency(unit)]
    if len(units) == 1:
        return next(iter(units))
    if len(signs) > 1 or (signs == [PERCENT] and "" in units):
        texts = [next(text for text, n in found if n.unit == unit) for unit in [*signs, ""][:2]]
        raise DataError(
            f"column {name!r} mixes numbers such as {texts[0]!r} and {texts[1]!r}; "
            "write all of them in one unit"
        )
    return signs[0] if signs and signs != [PERCENT] else ""


def _contradiction(name: str, point: str, comma: str, doubtful: str) -> DataError:
    return DataError(
        f"column {name!r} spells numbers in two ways, such as {point!r} and {comma!r}, so that "
        f"{doubtful!r} may mean two things; write all of them in one way"
    )
