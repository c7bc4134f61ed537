"""The encoder in C: a struct of the user's columns, what makes bits of it, and known answers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrail.export.c.text import (
    ALL_TEMPLATES,
    byte_or,
    identifiers,
    int32_literal,
    limits,
    render,
    signed,
    size_of,
    unsigned,
)
from vitrail.export.golden import Rows
from vitrail.export.plan import ExportError
from vitrail.model import Model
from vitrail.tables.bits import BitColumns
from vitrail.tables.cells import MISSING_WORDS, as_category, is_missing
from vitrail.tables.columns import rounded
from vitrail.tables.encoders import ColumnCode, TableEncoder
from vitrail.tables.spelling import BLANKS, as_number

# No category has the name of a macro.
MACROS = set(re.findall(r"TINY_(\w+)", ALL_TEMPLATES))
VALUES = {
    "word": "a category, TINY_OTHER or TINY_MISSING",
    "whole": "a whole number, or TINY_NO_NUMBER",
    "real": "a number, or NAN",
}


@dataclass(frozen=True)
class Column:
    """A column of a table and its place in the struct."""

    code: ColumnCode
    field: str
    word_field: str  # of a column of numbers that may hold words instead
    type: str  # of the field

    @property
    def kind(self) -> str:
        """`word`, `whole` or `real`."""
        return kind_of(self.code)

    @property
    def mixed(self) -> bool:
        """Whether words may stand where numbers do."""
        return self.code.numeric and bool(self.code.categories or self.code.other)

    @property
    def thresholds(self) -> list[int]:
        """What numbers are compared with."""
        return self._ordered([*self.code.thresholds])

    @property
    def cuts(self) -> list[int]:
        """The same; first what a missing number is read as, if it is: any number between the same
        thresholds as the typical one."""
        typical, *cuts = self._ordered([self.code.typical, *self.code.thresholds])
        if self.code.missing:
            return cuts
        above = sum(cut < typical for cut in cuts)
        return [cuts[above] if above < len(cuts) else cuts[-1] + 1, *cuts]

    @property
    def about(self) -> str:
        """What its cuts are."""
        above = ", ".join(f"{x:.9g}" for x in self.code.thresholds)
        typical = "" if self.code.missing else f"{self.code.typical:.9g} where missing; "
        return f"{self.code.name}: {typical}above {above}"

    @property
    def marks(self) -> list[dict[str, Any]]:
        """What C reads of it; words among numbers have marks of their own, which come first."""
        code, found = self.code, []
        if self.mixed or not code.numeric:
            missing = code.missing and not code.numeric
            marks = {"is_words": True, "other_word": code.other, "missing_word": missing}
            found.append({"count": len(code.categories), **marks})
        if code.numeric:
            marks = {"is_words": False, "bins": bool(code.values), "missing_number": code.missing}
            found.append({"count": len(code.thresholds), "both": code.both, **marks})
        return found

    def _ordered(self, numbers: list[float]) -> list[int]:
        if self.kind == "whole":
            return [max(-(2**31), min(2**31 - 1, math.floor(x))) for x in numbers]
        return float_order(rounded(numbers, "float32"))


def kind_of(code: ColumnCode) -> str:
    """`word`, `whole` or `real`."""
    return "word" if not code.numeric else "whole" if code.whole else "real"


def float_order(numbers: np.ndarray) -> list[int]:
    """A whole number for each float32, in the same order: what `tiny_order` makes of it."""
    bits = (numbers + 0.0).astype(np.float32).view(np.int32)  # 0 for −0
    return np.where(bits < 0, bits ^ 0x7FFFFFFF, bits).tolist()


def columns_of(encoder: TableEncoder) -> list[Column]:
    """The columns with names for C, in the order of their bits."""
    codes = encoder.columns
    for code in codes:
        if code.numeric and code.held_as == "float64":
            raise ExportError(
                f"column {code.name!r} tells numbers apart that are one as float32, which C holds "
                "them as; subtract what they have in common, or leave digits out, and train again"
            )
    fields = identifiers([code.name.lower() for code in codes])  # AVR has SP and others
    words = identifiers([f"{field}_word" for field in fields], fields)
    types = {"word": code_type(encoder), "whole": "int32_t", "real": "float"}
    if {kind_of(code) for code in codes} == {"word", "whole"}:
        types["word"] = "int32_t"  # so that one loop reads all
    kinds = [types[kind_of(code)] for code in codes]
    return [Column(*parts) for parts in zip(codes, fields, words, kinds, strict=True)]


def code_type(encoder: TableEncoder) -> str:
    """The type of categories; its two largest numbers are no category."""
    return unsigned(max((len(code.categories) for code in encoder.columns), default=0) + 3)


def constants(columns: list[Column]) -> dict[tuple[str, str], str]:
    """Names for all categories, by column and word."""
    pairs = [(column, word) for column in columns for word in column.code.categories]
    names = identifiers([f"{column.field}_{word}".upper() for column, word in pairs], MACROS)
    return {
        (column.code.name, word): f"TINY_{name}"
        for (column, word), name in zip(pairs, names, strict=True)
    }


def cut_type(columns: list[Column]) -> str:
    """The smallest type of all thresholds."""
    numbers = [column for column in columns if column.kind != "word"]
    return byte_or([cut for column in numbers for cut in column.cuts] or [0])


def encoder_values(model: Model) -> tuple[str, dict[str, Any]]:
    """A template and its values: from the struct `tiny_row` to the function `tiny_encode`."""
    encoder = model.encoder
    common: dict[str, Any] = {"bias": model.bias, "num_bits": len(encoder.bit_names)}
    if isinstance(encoder, BitColumns):
        ends = f"{encoder.names[0]} to {encoder.names[-1]}"
        ends = ", ".join(encoder.names) if encoder.trained else ends
        return "encode_bits", {
            "names": encoder.names,
            "ends": ends,
            **bit_columns(encoder),
            **common,
        }
    columns = columns_of(encoder)
    kinds = {column.kind for column in columns}
    mixed = any(column.mixed for column in columns)
    marks = _marks([mark for column in columns for mark in column.marks])
    return "encode_table", dict(
        columns=columns,
        code=code_type(encoder),
        names=constants(columns),
        cut=cut_type(columns),
        VALUES=VALUES,
        numbers=kinds != {"word"},
        cut_apart=kinds != {"word"} and not marks["plain"],
        real="real" in kinds,
        words=mixed or "word" in kinds,
        some_words="word" in kinds,
        mixed=mixed,
        forks="word" in kinds and len(kinds) > 1,
        alike=len({column.type for column in columns}) == 1 and not mixed,
        **marks,
        **common,
    )


def _marks(marks: list[dict[str, Any]]) -> dict[str, Any]:
    """The marks of columns as C reads them: constants where all columns are alike, otherwise a
    number for each column with the count in its highest bits."""
    names = ["is_words", "other_word", "missing_word", "bins", "missing_number"]
    both = any(mark.get("both") for mark in marks)
    names += ["both"] * both
    found = {name: {mark[name] for mark in marks if name in mark} for name in names}
    varying = [name for name in names if len(found[name]) > 1]
    values = {
        name: f"((column) >> {varying.index(name)} & 1u)" if name in varying else f"{int(*own)}u"
        for name, own in found.items()
        if own and (name != "is_words" or name in varying)
    }
    counts = [mark["count"] for mark in marks]
    counts_vary = len(set(counts)) > 1 or not counts[0]  # C warns of comparisons with 0
    packed = [
        sum(mark.get(name, False) << i for i, name in enumerate(varying))
        + (mark["count"] << len(varying)) * counts_vary
        for mark in marks
    ]
    kind = unsigned(max(packed))
    return {
        "marks": values,
        "varying": varying,
        "counts": counts,
        "counts_vary": counts_vary,
        "even": not (varying or counts_vary),
        "plain": not both
        and not any(True in found[name] for name in ("is_words", "bins", "missing_number")),
        "both": both,
        "packed_marks": packed,
        "mark_type": kind,
        "load": f"TINY_LOAD{size_of(kind)}",
    }


def bit_columns(encoder: BitColumns) -> dict[str, Any]:
    """How C holds columns of bits or pixels: whole numbers from low to high, their type, which cuts
    fit in too, and the largest number that is a 0, of each cut."""
    low, high = math.ceil(encoder.low), math.floor(encoder.high)
    if not -(2**31) <= low <= high < 2**31:
        raise ExportError(
            f"columns from {encoder.low:g} to {encoder.high:g} hold no whole numbers of 32 bits; "
            "train on bits, signs or pixels"
        )
    cuts = [math.floor(level) for level in encoder.levels.tolist()]
    least = min(low, *cuts)
    kind = signed(least, high) if least < 0 else unsigned(high)
    smallest, largest = limits(kind)
    ends = {"low": low, "high": high, "smallest": smallest, "largest": largest}
    return {**ends, "type": kind, "cuts": cuts}


def literal(number: float) -> str:
    """A float that C reads back as the same one."""
    text = f"{number:.9g}"
    return text + ("f" if "." in text or "e" in text else ".0f")


def check_code(model: Model, rows: Rows) -> str:
    """Golden rows with their answers and probabilities, and the CSV reader."""
    encoder, answers = model.encoder, model.answers(rows)
    count = range(len(answers.numbers))
    reader: dict[str, Any]
    if isinstance(encoder, BitColumns):
        names, columns = list(encoder.names), []
        reader = bit_columns(encoder)
        cells = [[str(int(as_number(cell))) for cell in rows[name]] for name in names]
        written = [f"{{{{{', '.join(column[i] for column in cells)}}}}}" for i in count]
    else:
        names, columns = [code.name for code in encoder.columns], columns_of(encoder)
        reader = {"code": code_type(encoder)}
        known = constants(columns)
        cells = [[_cell(known, column, x) for x in rows[column.code.name]] for column in columns]
        written = [f"{{{', '.join(column[i] for column in cells)}}}" for i in count]
    return render(
        "check",
        bits=isinstance(encoder, BitColumns),
        columns=columns,
        names=[name.strip(BLANKS) for name in names],
        rows=written,
        answers=answers,
        answer_type=unsigned(model.num_classes - 1),
        not_a_number=any("NAN" in row for row in written),
        words=any(column.kind == "word" or column.mixed for column in columns),
        numbers=not columns or any(column.kind != "word" for column in columns),
        labels=[as_category(label) for label in model.labels.classes],
        is_blank=" || ".join(f"c == {ord(blank)}" for blank in BLANKS),
        categories=[word for column in columns for word in column.code.categories],
        missing_words=sorted(MISSING_WORDS),
        target=str(model.record.get("target", "")).strip(BLANKS),
        **reader,
    )


def _cell(names: dict[tuple[str, str], str], column: Column, value: Any) -> str:
    """The initializer of a field, and of the field of words that may follow it."""
    number = np.nan if isinstance(value, str) else as_number(value)
    word = "TINY_MISSING"
    if not is_missing(value):
        word = names.get((column.code.name, as_category(value)), "TINY_OTHER")
    if column.kind == "word":
        return word
    if np.isnan(number):
        text = "TINY_NO_NUMBER" if column.kind == "whole" else "NAN"
    elif column.kind == "whole":
        text = int32_literal(number)
    else:
        text = literal(float(rounded(number, "float32")))
    no_word = is_missing(value) or not np.isnan(number)
    return f"{text}, {'0' if no_word else word}" if column.mixed else text
