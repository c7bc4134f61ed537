"""What a column of training rows becomes: words, numbers or nothing, and why.

Columns are read one after another; of each only its distinct values and their counts are kept, so
that thresholds can be shared out when all columns are known.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from vitrail.errors import DataError, DataWarning, counted, listed
from vitrail.tables.account import ColumnAccount, Kept
from vitrail.tables.blanks import stripped
from vitrail.tables.cells import Cells, advice_on_dates, as_word
from vitrail.tables.columns import ColumnCode
from vitrail.tables.cuts import between, bins, number_type
from vitrail.tables.frames import Frame
from vitrail.tables.spelling import Spelling, settle, spells_number

FEW_NUMBERS = 10  # up to this many distinct whole numbers may be codes rather than amounts
STRAY_WORDS = 0.1  # a column of numbers may hold this share of words, such as "unknown"
MOST_STRAYS = 32  # different words among numbers; more are no oversight
DATE = re.compile(
    r"(?:[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4})"
    r"(?:[T ].{1,30})?|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
)
OWN_BIT = 0.02  # the share of rows from which a word among numbers gets a bit of its own


@dataclass(frozen=True)
class Drafted:
    """A column that is settled: its code, None if it was dropped, and the account of it."""

    code: ColumnCode | None
    account: ColumnAccount

    def finish(self, thresholds: int) -> Drafted:
        """The same: thresholds are for numbers."""
        return self


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, to be cut when it is known how many thresholds it can have."""

    code: ColumnCode
    values: np.ndarray  # (L,) distinct, ascending
    counts: np.ndarray  # (L,)
    pairs: bool
    missing: int
    notes: tuple[str, ...]

    def finish(self, thresholds: int) -> Drafted:
        """The column with at most that many thresholds."""
        values, code = self.values, self.code
        codes = len(values) <= FEW_NUMBERS and bool((values == np.round(values)).all())
        named = self.pairs if len(values) <= 2 else codes
        cuts = bins(values, self.counts, len(values) if named else thresholds)
        held_as = number_type(values, cuts)
        middle = np.searchsorted(np.cumsum(self.counts), self.counts.sum() / 2)
        code = replace(
            code,
            thresholds=tuple(
                between(float(values[i - 1]), float(values[i]), held_as) for i in cuts
            ),
            values=tuple(values.tolist()) if named else (),
            typical=float(values[middle]),
            held_as=held_as,
        )
        wide = "held as float64: float32 would merge values that differ"
        notes = (*self.notes, *([wide] if held_as == "float64" else []))
        return _kept(code, "numbers", self.missing, notes)


class ColumnFitter:
    """Drafts the code of every column of a frame.

    weight, max_categories, pairs: as in `TableEncoder.fit`.
    """

    def __init__(
        self, frame: Frame, weight: np.ndarray | None, max_categories: int, pairs: bool
    ) -> None:
        self._frame, self._weight = frame, weight
        self._max_categories, self._pairs = max_categories, pairs
        self._marks: frozenset[str] = frozenset()  # of decimals, in the columns so far

    def drafts(self) -> list[Drafted | Numbers]:
        """One draft a column, in their order."""
        found = {name: self._draft(name, None) for name in self._frame.columns}
        # Columns whose numbers have two readings follow what the others have shown.
        return [draft or self._draft(name, self._marks) for name, draft in found.items()]

    @overload
    def _draft(self, name: str, usual: None) -> Drafted | Numbers | None: ...

    @overload
    def _draft(self, name: str, usual: frozenset[str]) -> Drafted | Numbers: ...

    def _draft(self, name: str, usual: frozenset[str] | None) -> Drafted | Numbers | None:
        """The draft of a column; None where it takes the usual marks of decimals to tell."""
        if not stripped(name):
            place = self._frame.columns.index(name) + 1
            warnings.warn(
                f"column {place} has no name and is left out; name it to learn from it",
                DataWarning,
                stacklevel=2,
            )
            return _dropped(name, 0, "it has no name")
        cells = replace(self._frame.cells(name), weight=self._weight)
        missing = cells.rows_of(cells.missing)
        if cells.missing.all():
            return _dropped(name, missing, "it is empty in every row")
        words = ~cells.missing if cells.are_words else _words_for_sure(cells)
        if _numbers_prevail(cells, words):
            self._refuse_numerals(name, cells, words)
        if not _mostly_numbers(cells, words):
            return self._words(name, cells, missing)
        texts = [x for x in cells.levels[~cells.missing].tolist() if isinstance(x, str)]
        evidence = settle(texts, not cells.is_word.any(), name, usual)
        self._marks |= evidence.marks
        if evidence.spelling is None:
            return None
        spelled = cells.spelled(evidence.spelling)
        if not _mostly_numbers(spelled, spelled.is_word):
            return self._words(name, cells, missing)
        self._refuse_numerals(name, spelled, spelled.is_word)
        return self._numbers(name, spelled, evidence.spelling, missing)

    def _words(self, name: str, cells: Cells, missing: int) -> Drafted:
        counted_words = _count_words(cells, ~cells.missing)
        _refuse_dates(name, counted_words, self._max_categories)
        categories, other = _keep_frequent(counted_words, self._max_categories)
        if not categories and not missing:
            return _dropped(name, 0, f"{len(counted_words):,} different words, hardly one twice")
        if len(categories) + other + bool(missing) < 2:
            return _dropped(name, missing, f"{next(iter(counted_words))!r} in every row")
        if not self._pairs and len(categories) + other + bool(missing) == 2:
            categories = categories[1:]
        rest = len(counted_words) - len(categories)
        notes = [f"{rest:,} rare words share one bit"] if other else []
        code = ColumnCode(name, False, categories, other, missing=bool(missing))
        return _kept(code, "words", missing, tuple(notes))

    def _numbers(
        self, name: str, cells: Cells, spelling: Spelling, missing: int
    ) -> Drafted | Numbers:
        words = _count_words(cells, cells.is_word)
        frequent = OWN_BIT * cells.counts.sum()
        categories = tuple(sorted(word for word, count in words.items() if count >= frequent))
        strays = tuple(sorted(set(words) - set(categories)))
        stray_rows = _rows_of_strays(name, cells, strays)
        values, place = np.unique(cells.numbers[cells.is_number], return_inverse=True)
        counts = np.bincount(place, cells.counts[cells.is_number])
        has_gaps = bool(missing or strays)
        if len(values) == 1 and not has_gaps and not categories:
            return _dropped(name, 0, f"{values[0]:.15g} in every row")
        code = ColumnCode(
            name, True, categories, missing=has_gaps, spelling=spelling, strays=strays
        )
        return Numbers(
            code, values, counts, self._pairs, missing, _notes(spelling, strays, stray_rows)
        )

    def _refuse_numerals(self, name: str, cells: Cells, words: np.ndarray) -> None:
        """Raise a DataError where a word among numbers may be a number that nobody can read."""
        for level in np.flatnonzero(words):
            word = as_word(cells.levels[level])
            digits, letters = (any(map(test, word)) for test in (str.isdigit, str.isalpha))
            if digits and not letters:
                raise DataError(
                    f"column {name!r}, {self._frame.place(cells.first_row(int(level)))}: {word!r} "
                    "is no number as the others are written; correct it, or leave it empty"
                )


def _rows_of_strays(name: str, cells: Cells, strays: tuple[str, ...]) -> int:
    """How many rows hold a stray word; more kinds of them than an oversight has are refused."""
    if len(strays) > MOST_STRAYS:
        raise DataError(
            f"column {name!r} holds numbers and {len(strays)} different words, such as "
            f"{listed(strays, 3)}; correct them, or leave the column out"
        )
    is_stray = cells.is_word
    is_stray[is_stray] = [as_word(level) in strays for level in cells.levels[is_stray]]
    return cells.rows_of(is_stray)


def _words_for_sure(cells: Cells) -> np.ndarray:
    """(L,) bool: levels that are no number in any spelling."""
    words = cells.is_word
    words[words] = [not spells_number(str(level)) for level in cells.levels[words]]
    return words


def _mostly_numbers(cells: Cells, words: np.ndarray) -> bool:
    """Whether the levels that are words (L,) bool are few, in rows or at least in kinds."""
    numbers = ~words & ~cells.missing
    in_rows, of_rows = cells.counts[words].sum(), cells.counts[numbers].sum()
    few_kinds = _numbers_prevail(cells, words) and words.sum() <= STRAY_WORDS * numbers.sum()
    return bool(of_rows and (few_kinds or in_rows <= STRAY_WORDS * of_rows))


def _numbers_prevail(cells: Cells, words: np.ndarray) -> bool:
    """Whether there are many different numbers, in at least half of the rows."""
    numbers = ~words & ~cells.missing
    of_rows = cells.counts[numbers].sum()
    return bool(numbers.sum() > FEW_NUMBERS and of_rows >= cells.counts[words].sum())


def _refuse_dates(name: str, words: Collection[str], most: int) -> None:
    """Dates that all are different tell nothing as words; few of them may be categories."""
    dates = sum(bool(DATE.fullmatch(word)) for word in words) if len(words) > most else 0
    if dates > len(words) / 2:
        raise DataError(
            f"column {name!r} holds dates or times, such as "
            f"{next(word for word in words if DATE.fullmatch(word))!r}; {advice_on_dates('date')}"
        )


def _count_words(cells: Cells, levels: np.ndarray) -> dict[str, float]:
    found: dict[str, float] = {}
    for level, count in zip(cells.levels[levels], cells.counts[levels], strict=True):
        word = as_word(level)
        found[word] = found.get(word, 0) + count
    return found


def _keep_frequent(counts: dict[str, float], most: int) -> tuple[tuple[str, ...], bool]:
    """The words that get a bit, in alphabetical order, and whether any are left over."""
    if len(counts) <= most:
        return tuple(sorted(counts)), False
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return tuple(sorted(word for word in ranked[:most] if counts[word] > 1)), True


def _kept(code: ColumnCode, kept_as: Kept, missing: int, notes: tuple[str, ...]) -> Drafted:
    account = ColumnAccount(code.name, kept_as, len(code.bit_names), missing, "; ".join(notes))
    return Drafted(code, account)


def _dropped(name: str, missing: int, why: str) -> Drafted:
    return Drafted(None, ColumnAccount(name, "dropped", 0, missing, why))


def _notes(spelling: Spelling, strays: tuple[str, ...], rows: int) -> tuple[str, ...]:
    notes = []
    if spelling.decimal != ".":
        notes.append("decimal commas" if spelling.decimal else "decimal points and commas")
    if spelling.unit:
        notes.append(f"in {spelling.unit}")
    if strays:
        notes.append(f"words read as missing in {counted(rows, 'row')}: {listed(strays, 3)}")
    return tuple(notes)
