"""The code of a column of training rows: words, numbers or none, with the reason.

Columns are read one after another; of each only its distinct values and their counts are kept, so
that thresholds can be shared out when all columns are known.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from vitrail.errors import DataError, DataWarning, counted, listed
from vitrail.tables.cells import Cells, advice_on_dates, as_category
from vitrail.tables.columns import MOST_WHOLE, ColumnAccount, ColumnCode, NumberType, rounded
from vitrail.tables.frames import Frame
from vitrail.tables.spelling import infer_spelling, numeral, stripped

THRESHOLD_BUDGET = 256  # thresholds that the columns share; twice as many from MANY rows on
MANY = 2000
FEWEST_THRESHOLDS, MOST_THRESHOLDS = 8, 32  # of a column
FEW_COLUMNS = 4  # up to this number of columns each gets twice as many
SMALL = 1000  # rows below which finer cuts than half of these fit noise
FEW_NUMBERS = 10  # up to this many distinct whole numbers may be codes rather than amounts
STRAY_WORDS = 0.1  # a column of numbers may hold this share of words, such as "unknown"
MOST_STRAYS = 32  # most different words among numbers; more are an error
OWN_BIT = 0.02  # least share of rows for which a word among numbers has a bit
DATE = re.compile(
    r"(?:[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4})"
    r"(?:[T ].{1,30})?|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
)


@dataclass(frozen=True)
class FittedColumn:
    """The code of a column, None if it was dropped, and the account of it."""

    code: ColumnCode | None
    account: ColumnAccount


@dataclass(frozen=True)
class _Numbers:
    """A column of numbers before its thresholds are placed."""

    code: ColumnCode
    values: np.ndarray  # (L,) distinct, ascending
    counts: np.ndarray  # (L,)
    missing: int
    notes: list[str]


@dataclass
class ColumnFitter:
    """Fits the code of every column of a frame; parameters as in `TableEncoder.fit`."""

    frame: Frame
    max_categories: int
    pairs: bool
    weight: np.ndarray | None
    directions: Mapping[str, int]
    both: (
        bool  # whether thresholds have two bits in all columns, not only in those with a direction
    )
    decimal_marks: frozenset[str] = frozenset()  # in the columns so far

    def fit(self, thresholds: int | None) -> list[FittedColumn]:
        """One per column, in their order."""
        found = {name: self._column(name, None) for name in self.frame.columns}
        # Columns of ambiguous numbers follow the format of the others.
        columns = [
            column or self._column(name, self.decimal_marks) for name, column in found.items()
        ]
        if thresholds is None:
            # few columns can afford many, as can many rows
            numbers = sum(isinstance(c, _Numbers) and len(c.values) > 2 for c in columns)
            rows = len(self.frame)
            most = MOST_THRESHOLDS * (1 + (numbers <= FEW_COLUMNS)) // (1 + (rows < SMALL))
            budget = THRESHOLD_BUDGET * (1 + (rows >= MANY))
            thresholds = min(most, max(FEWEST_THRESHOLDS, budget // max(1, numbers)))
        return [
            self._cut(column, thresholds) if isinstance(column, _Numbers) else column
            for column in columns
            if column is not None
        ]

    def _column(self, name: str, marks: frozenset[str] | None) -> FittedColumn | _Numbers | None:
        """One column; None where its format depends on that of other columns."""
        if not stripped(name):
            place = self.frame.columns.index(name) + 1
            warnings.warn(
                f"column {place} has no name and is left out; name it to learn from it",
                DataWarning,
                stacklevel=2,
            )
            return _dropped(name, 0, "it has no name")
        cells = replace(self.frame.cells(name), weight=self.weight)
        missing = int(cells.missing[cells.codes].sum())
        if cells.missing.all():
            return _dropped(name, missing, "it is empty in every row")
        words = ~cells.missing
        if not cells.are_words:  # those that are no number in any spelling
            words = cells.is_word
            words[words] = [not numeral(str(level)).is_number for level in cells.levels[words]]
        many_numbers, mostly_numbers = _share_of_numbers(cells, words)
        if many_numbers:
            self._refuse_numerals(name, cells, words)
        if not mostly_numbers:
            return self._words(name, cells, missing)
        texts = [x for x in cells.levels[~cells.missing].tolist() if isinstance(x, str)]
        evidence = infer_spelling(texts, not cells.is_word.any(), name, marks)
        self.decimal_marks |= evidence.marks
        if evidence.spelling is None:
            return None
        spelled = cells.spelled(evidence.spelling)
        words = spelled.is_word
        if not _share_of_numbers(spelled, words)[1]:
            return self._words(name, cells, missing)
        self._refuse_numerals(name, spelled, words)
        code = ColumnCode(name, True, spelling=evidence.spelling)
        return self._numbers(code, spelled, missing)

    def _words(self, name: str, cells: Cells, missing: int) -> FittedColumn:
        if self.directions.get(name):
            raise DataError(
                f"column {name!r} holds words, which have no order; leave it out of monotonic_cst, "
                "or write it as numbers"
            )
        counts = _count_words(cells, ~cells.missing)
        categories, other = sorted(counts), len(counts) > self.max_categories
        if other:
            dates = [word for word in counts if DATE.fullmatch(word)]
            if len(dates) > len(counts) / 2:  # all different, of no use as words
                raise DataError(
                    f"column {name!r} holds dates or times, such as {dates[0]!r}; "
                    f"{advice_on_dates('date')}"
                )
            ranked = sorted(counts, key=lambda word: (-counts[word], word))
            categories = sorted(w for w in ranked[: self.max_categories] if counts[w] > 1)
        if not categories and not missing:
            return _dropped(name, 0, f"{len(counts):,} different words, hardly one twice")
        kinds = len(categories) + other + bool(missing)
        if kinds < 2:
            return _dropped(name, missing, f"{next(iter(counts))!r} in every row")
        if not self.pairs and kinds == 2:
            categories = categories[1:]
        note = f"{len(counts) - len(categories):,} rare words share one bit" * other
        code = ColumnCode(name, False, tuple(categories), other, missing=bool(missing))
        return FittedColumn(code, ColumnAccount(name, "words", len(code.bit_names), missing, note))

    def _numbers(self, code: ColumnCode, cells: Cells, missing: int) -> FittedColumn | _Numbers:
        words = _count_words(cells, cells.is_word)
        frequent = OWN_BIT * cells.counts.sum()
        categories = tuple(sorted(word for word, count in words.items() if count >= frequent))
        strays = tuple(sorted(set(words) - set(categories)))
        if len(strays) > MOST_STRAYS:
            raise DataError(
                f"column {code.name!r} holds numbers and {len(strays)} different words, such as "
                f"{listed(strays, 3)}; correct them, or leave the column out"
            )
        numeric = ~np.isnan(cells.numbers)
        values, place = np.unique(cells.numbers[numeric], return_inverse=True)
        counts = np.bincount(place, cells.counts[numeric])
        if len(values) == 1 and not missing and not words:
            return _dropped(code.name, 0, f"{values[0]:.15g} in every row")
        code = replace(code, categories=categories, missing=bool(missing or strays), strays=strays)
        notes, spelling = [], code.spelling
        if spelling.decimal != ".":
            notes.append("decimal commas" if spelling.decimal else "decimal points and commas")
        if spelling.unit:
            notes.append(f"in {spelling.unit}")
        if strays:
            is_stray = cells.is_word
            is_stray[is_stray] = [as_category(level) in strays for level in cells.levels[is_stray]]
            rows = counted(int(is_stray[cells.codes].sum()), "row")
            notes.append(f"words read as missing in {rows}: {listed(strays, 3)}")
        return _Numbers(code, values, counts, missing, notes)

    def _cut(self, column: _Numbers, thresholds: int) -> FittedColumn:
        """The column with at most that many thresholds."""
        values, counts, notes = column.values, column.counts, column.notes
        whole = bool((values == np.round(values)).all())
        direction = self.directions.get(column.code.name, 0)
        named = self.pairs if len(values) <= 2 else whole and len(values) <= FEW_NUMBERS
        named = named and not direction
        cuts = bins(values, counts, len(values) if named else thresholds)
        single = rounded(values, "float32")
        held_as: NumberType = "float32"
        if whole and abs(values).max() <= MOST_WHOLE:
            held_as = "int32"
        elif not (single[cuts - 1] < single[cuts]).all():
            held_as = "float64"
            notes = [*notes, "held as float64: float32 would merge values that differ"]
        if direction:
            notes = [*notes, f"monotone, {'rising' if direction > 0 else 'falling'}"]
        code = replace(
            column.code,
            thresholds=tuple(
                threshold(float(values[i - 1]), float(values[i]), held_as) for i in cuts
            ),
            values=tuple(values.tolist()) if named else (),
            typical=float(values[np.searchsorted(np.cumsum(counts), counts.sum() / 2)]),
            held_as=held_as,
            direction=direction,
            both=bool(direction) or (self.both and not named and len(cuts) > 0),
        )
        bits, note = len(code.bit_names), "; ".join(notes)
        return FittedColumn(code, ColumnAccount(code.name, "numbers", bits, column.missing, note))

    def _refuse_numerals(self, name: str, cells: Cells, words: np.ndarray) -> None:
        """Raise a DataError where a word among numbers may be a malformed number."""
        for level in np.flatnonzero(words):
            word = as_category(cells.levels[level])
            digits, letters = (any(map(test, word)) for test in (str.isdigit, str.isalpha))
            if digits and not letters:
                raise DataError(
                    f"column {name!r}, {self.frame.place(cells.first_row(int(level)))}: {word!r} "
                    "is no number as the others are written; correct it, or leave it empty"
                )


def _dropped(name: str, missing: int, why: str) -> FittedColumn:
    return FittedColumn(None, ColumnAccount(name, "dropped", 0, missing, why))


def _share_of_numbers(cells: Cells, words: np.ndarray) -> tuple[bool, bool]:
    """Whether there are many different numbers in at least half of the rows, and whether words
    are few, in rows or at least in kinds.

    words: the levels that are words, (L,) bool.
    """
    numbers = ~words & ~cells.missing
    number_rows, word_rows = cells.counts[numbers].sum(), cells.counts[words].sum()
    many = bool(numbers.sum() > FEW_NUMBERS and number_rows >= word_rows)
    few_kinds = many and words.sum() <= STRAY_WORDS * numbers.sum()
    return many, bool(number_rows and (few_kinds or word_rows <= STRAY_WORDS * number_rows))


def _count_words(cells: Cells, levels: np.ndarray) -> dict[str, float]:
    found: dict[str, float] = {}
    for level, count in zip(cells.levels[levels], cells.counts[levels], strict=True):
        word = as_category(level)
        found[word] = found.get(word, 0) + count
    return found


def bins(values: np.ndarray, counts: np.ndarray, most: int) -> np.ndarray:
    """Places of at most `most` thresholds: each lies below values[i], i ascending, from 1 on.

    Quantiles, but a value that fills several of them (many zeros, say) leaves its cuts to the
    rest: the fullest bin is halved again. values, counts: (L,) distinct, ascending, and how often
    each occurs.
    """
    rows = np.concatenate([[0], np.cumsum(counts)])  # rows[i]: the number below values[i]
    if len(values) <= most + 1:
        return np.arange(1, len(values))
    found = [(0, len(values))]
    while len(found) <= most:
        fullest = max(found, key=lambda b: rows[b[1]] - rows[b[0]] if b[1] - b[0] > 1 else 0)
        low, high = fullest
        if high - low == 1 or (rows[high] - rows[low]) * 2 * (most + 1) < rows[-1]:
            break  # the remaining bins are too small to be useful
        middle = (rows[low] + rows[high]) / 2
        cut = low + 1 + int(np.searchsorted(rows[low + 1 : high - 1], middle))
        if cut > low + 1 and middle - rows[cut - 1] <= rows[cut] - middle:
            cut -= 1
        place = found.index(fullest)
        found[place : place + 1] = [(low, cut), (cut, high)]
    return np.array([low for low, _ in found[1:]], np.intp)


def threshold(low: float, high: float, held_as: NumberType) -> float:
    """The shortest decimal in the middle half of (low, high): 54.5 rather than 54.49999.

    Of numbers held as the type, those up to low are not above it, those from high on are.
    """
    low, high = float(rounded(low, held_as)), float(rounded(high, held_as))
    middle = low / 2 + high / 2
    quarter = high / 4 - low / 4
    for digits in range(1, 18):
        short = float(f"{middle:.{digits}g}")
        held = float(rounded(short, held_as))
        if abs(short - middle) <= quarter and low <= short and low <= held < high:
            return short
    return low
