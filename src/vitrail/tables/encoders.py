"""Tables as bits: the code of each column is learned on training rows and then fixed.

| column | bits |
|---|---|
| words | one per category (`odor=n`); the rare ones of a column with very many share `odor other` |
| two numbers (0/1, ±1, booleans, …) | one per value (`sex=0`, `sex=1`) |
| few whole numbers | one per value and a thermometer (`chest=4`, `chest>3.5`) |
| numbers | a thermometer at quantiles of the training rows (`age>54.5`) |
| frequent words among numbers | one per word (`age=unknown`); rare ones count as missing |
| missing in training | one more (`age missing`), the others being 0 |
| constant in training, or without a name (row numbers) | none |

Why two bits for two values: weights are +1 or -1, never 0. A single bit always counts; of two
bits exactly one is on, so equal weights say the same whatever the value is (a constant, which the
bias takes up) and the column is ignored, while opposite weights count double. In the same way few
whole numbers get both readings, as codes and as an order: with weights ±1 neither can spell the
other well. Thresholds may have two bits for the same reason, `age>54.5` and `age<=54.5`: it pays
where rows are many.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from vitrail.checks import checked_count
from vitrail.errors import DataError, DataWarning, counted
from vitrail.state import StateReader
from vitrail.tables.bits import BitColumns, bit_range
from vitrail.tables.cells import Cells, as_category, place_in_table
from vitrail.tables.columns import ColumnAccount, ColumnCode
from vitrail.tables.fitting import ColumnFitter
from vitrail.tables.frames import Frame, as_frame, places
from vitrail.tables.spelling import numeral
from vitrail.tables.table import Table


@dataclass(frozen=True)
class TableEncoder:
    """Encodes tables to bits by fitted codes.

    Examples:
        >>> from vitrail.tables import TableEncoder
        >>> encoder = TableEncoder.fit({"age": [20, 35, 61, 48], "city": ["A", "B", "A", "B"]})
        >>> encoder.transform({"age": [30], "city": ["B"]}).shape == (1, len(encoder.bit_names))
        True
    """

    columns: tuple[ColumnCode, ...]  # the code of each informative column
    names: tuple[str, ...]  # all columns of the training table, in their order
    account: tuple[ColumnAccount, ...] = ()  # summary of each column

    @staticmethod
    def fit(
        table: Any,
        *,
        thresholds: int | None = None,
        max_categories: int = 32,
        pairs: bool = True,
        weight: np.ndarray | None = None,
        directions: Mapping[str, int] | None = None,
        both: bool = False,
    ) -> TableEncoder:
        """Learn the code of every column of a table.

        Args:
            table: A table, array, sparse matrix, mapping or data frame.
            thresholds: Maximum number of thresholds per column of numbers; None chooses it by
                columns and rows.
            max_categories: A column with more words keeps those that occur most often, and at least
                twice; the rest share one bit.
            pairs: Whether a column of two values has one bit per value; False gives it one bit.
            weight: (rows,) > 0; a row of weight k counts as k rows.
            directions: By name, 1 of columns whose growth must never lower a probability, −1 of
                those where it must never raise it.
            both: Whether each threshold has two bits, one per side; one of them is on for every
                number. Columns with a direction have them always, few whole numbers never.

        Returns:
            The encoder.
        """
        if thresholds is not None:
            checked_count("thresholds", thresholds, 1)
        checked_count("max_categories", max_categories, 1)
        frame = as_frame(table)
        if not frame.columns:
            raise DataError("the table has no columns to learn from; add some beside the labels")
        if len(frame) < 2:
            raise DataError(f"expected at least two rows to learn from, got {len(frame)}; add rows")
        fitter = ColumnFitter(frame, max_categories, pairs, weight, directions or {}, both)
        fitted = fitter.fit(thresholds)
        codes = tuple(column.code for column in fitted if column.code is not None)
        account = tuple(column.account for column in fitted)
        if not codes:
            raise DataError(
                f"none of the columns tells rows apart ({account[0].name}: {account[0].note}); "
                "add columns that carry information"
            )
        return TableEncoder(codes, tuple(note.name for note in account), account)

    @property
    def bit_names(self) -> tuple[str, ...]:
        """One readable name per bit, such as `odor=n`, `age>54.5`, `age missing`."""
        return tuple(name for code in self.columns for name in code.bit_names)

    @property
    def all_names(self) -> tuple[str, ...]:
        """The columns of training, in their order."""
        return self.names

    @property
    def spans(self) -> list[slice]:
        """The places of each column's bits."""
        ends = np.cumsum([len(code.bit_names) for code in self.columns]).tolist()
        return [slice(start, end) for start, end in pairwise([0, *ends])]

    def states(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The place of each column's bits, and the bits of each of its values."""
        for code, bits in zip(self.columns, self.spans, strict=True):
            yield bits, code.states()

    def value_names(self) -> Iterator[list[str]]:
        """The names of each column's first states: bins of numbers, or categories."""
        for code in self.columns:
            yield code.value_names

    @property
    def ordered(self) -> list[list[tuple[int, int]]]:
        """Pairs of bits (low, high), of each column with a direction.

        Exactly one bit of a pair is on. Where the weight of `high` is never below that of `low`, a
        sum over bits only moves in the direction of the column.
        """
        found = []
        for code, span in zip(self.columns, self.spans, strict=True):
            if code.both and code.direction and code.thresholds:
                above = [span.start + step for step in code.steps]
                below = [bit + len(above) for bit in above]
                sides = (below, above) if code.direction > 0 else (above, below)
                found.append([*zip(*sides, strict=True)])
        return found

    @property
    def selectable(self) -> list[int]:
        """The bits that `only` can choose among."""
        codes = zip(self.columns, self.spans, strict=True)
        return [span.start + bit for code, span in codes for bit in code.selectable]

    def only(self, bits: Collection[int]) -> tuple[TableEncoder, list[int]]:
        """The encoder of these bits and of those tied to them, and the bits that it keeps."""
        codes = zip(self.columns, self.spans, strict=True)
        return self._with([code.only({bit - span.start for bit in bits}) for code, span in codes])

    def one_sided(self) -> tuple[TableEncoder, list[int]]:
        """The encoder with one bit per threshold in columns without direction, and its bits."""
        codes = zip(self.columns, self.spans, strict=True)
        return self._with([code.one_sided() for code, _ in codes])

    def _with(
        self, codes: list[tuple[ColumnCode, list[int]] | None]
    ) -> tuple[TableEncoder, list[int]]:
        """The encoder with these codes, None for dropped ones, and the bits that it keeps."""
        chosen: dict[str, ColumnCode] = {}
        left: list[int] = []
        for one, span in zip(codes, self.spans, strict=True):
            if one is not None:
                chosen[one[0].name] = one[0]
                left += [span.start + bit for bit in one[1]]
        account = []
        for note in self.account:
            if note.name in chosen:
                note = replace(note, bits=len(chosen[note.name].bit_names))
            elif note.bits:
                why = "a small model does without it"
                note = replace(note, kept_as="dropped", bits=0, note=why)
            account.append(note)
        return replace(self, columns=tuple(chosen.values()), account=tuple(account)), left

    def transform(self, table: Any) -> np.ndarray:
        """The bits of a table's rows, (rows, bits) int8 of 0 and 1.

        Columns are found by name, further ones are ignored; an array's by place. A category never
        seen sets the `other` bit, or none; a number out of range fills or empties the thermometer;
        a missing value where training had none is read as the median, or as a category never seen.
        What is no number in a column of numbers counts as missing, and a DataWarning names it.
        Numbers are read as they were written in training; one that may then mean two things, such
        as `1,234` where training had no comma, is refused.
        """
        frame = as_frame(table)
        where = places(frame, self.names, [code.name for code in self.columns])
        bits = np.empty((len(frame), len(self.bit_names)), np.int8)
        unknown, contradiction = [], ""
        for code, span in zip(self.columns, self.spans, strict=True):
            cells = frame.cells(where[code.name])
            spelled = cells.spelled(code.spelling) if code.numeric else cells
            bits[:, span] = code.bits(spelled)
            level = code.first_level(cells, ambiguous=False)
            if level is not None and not contradiction:
                contradiction = f"{str(cells.levels[level])!r} in column {code.name!r}"
            known = {*code.categories, *code.strays}
            for level in np.flatnonzero(spelled.is_word & code.numeric & (not code.other)).tolist():
                if as_category(cells.levels[level]) in known:
                    continue
                if code.spelling.is_ambiguous(numeral(str(cells.levels[level]))):
                    raise _two_readings(frame, code, cells, level, "no number written so")
                rows = np.flatnonzero(cells.codes == level)
                unknown.append((code.name, str(cells.levels[level]), int(rows[0]), len(rows)))
        # Beside a number of another spelling, one with two readings may mean either.
        for code in self.columns if contradiction else ():
            cells = frame.cells(where[code.name])
            level = code.first_level(cells, ambiguous=True)
            if level is not None:
                raise _two_readings(frame, code, cells, level, f"no number such as {contradiction}")
        if unknown:
            name, word, row, _ = unknown[0]
            more = sum(count for *_, count in unknown) - 1
            also = f" (and {counted(more, 'cell')} like it)" * bool(more)
            warnings.warn(
                f"column {name!r}, {frame.place(row)}: expected a number, found {word!r}{also}; "
                "read as missing",
                DataWarning,
                stacklevel=2,
            )
        return bits

    def to_dict(self) -> dict[str, Any]:
        """The encoder as plain sequences, numbers and text, fit for JSON."""
        return {
            "columns": [code.to_dict() for code in self.columns],
            "names": list(self.names),
            "account": [asdict(account) for account in self.account],
        }

    @staticmethod
    def from_dict(state: object) -> TableEncoder:
        """The encoder of `to_dict`; anything malformed is a ValueError. Runs no code."""
        read = StateReader(state, "encoder")
        columns = tuple(ColumnCode.from_dict(column) for column in read.items("columns"))
        names = read.texts("names")
        account = tuple(map(ColumnAccount.from_dict, read.items("account", [])))
        read.done()
        used = [code.name for code in columns]
        read.require(bool(used), "has no columns")
        read.require(len(set(names)) == len(names), "repeats a column name")
        read.require([name for name in names if name in set(used)] == used, "names other columns")
        accounted = tuple(note.name for note in account)
        read.require(accounted in ((), names), "accounts for other columns")
        return TableEncoder(columns, names, account)


def fit_encoder(
    table: Any,
    weight: np.ndarray | None = None,
    directions: Mapping[str, int] | None = None,
    both: bool = False,
) -> TableEncoder | BitColumns:
    """The encoder for a table: bits and pixels unchanged, all else by columns.

    weight (rows,): a row of weight k counts as k rows, one of weight 0 not at all. directions,
    both: as in `TableEncoder.fit`; with directions bits are encoded by their columns too.
    """
    frame = as_frame(table)
    if weight is not None and not weight.all():
        rows = np.flatnonzero(weight)
        frame, weight = frame.take(rows), weight[rows]
    if isinstance(frame, Table) and frame.image_shape is not None:
        return BitColumns.fit_images(frame)
    in_file = isinstance(frame, Table) and frame.place_of is not place_in_table
    found = None if in_file or directions else bit_range(frame)
    if found is not None:
        return BitColumns.fit(frame, *found)
    return TableEncoder.fit(frame, weight=weight, directions=directions, both=both)


def _two_readings(
    frame: Frame, code: ColumnCode, cells: Cells, level: int, unknown: str
) -> DataError:
    """The error about a cell with two possible values in a format that training did not have."""
    text = str(cells.levels[level])
    found = numeral(text)
    return DataError(
        f"column {code.name!r}, {frame.place(cells.first_row(level))}: {text!r} may mean "
        f"{found.point:g} or {found.comma:g}, and training had {unknown}; write numbers as in the "
        "table of training"
    )
