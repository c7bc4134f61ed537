"""The encoder in C: a struct of the user's columns, and what makes bits of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from vitrail.export.c.text import (
    ALL_TEMPLATES,
    byte_or,
    comment,
    filled,
    identifiers,
    limits,
    signed,
    size_of,
    table,
    unsigned,
)
from vitrail.export.errors import ExportError
from vitrail.model import Model
from vitrail.tables.bits import BitColumns
from vitrail.tables.columns import rounded
from vitrail.tables.encoders import ColumnCode, TableEncoder

NO_NUMBER = "TINY_NO_NUMBER"
FEW = 4  # constant inputs
GUARD = "TINY_H"
# No category is called as a macro.
MACROS = set(re.findall(r"TINY_(\w+)", f"{GUARD}\n{ALL_TEMPLATES}"))


@dataclass(frozen=True)
class Column:
    """A column of a table and its place in the struct."""

    code: ColumnCode
    field: str
    word_field: str  # of a column of numbers that may hold words instead

    @property
    def kind(self) -> str:
        """`word`, `whole` or `real`."""
        return "word" if not self.code.numeric else "whole" if self.code.whole else "real"

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

    def _ordered(self, numbers: list[float]) -> list[int]:
        if self.kind == "whole":
            return [max(-(2**31), min(2**31 - 1, math.floor(x))) for x in numbers]
        return ordered(rounded(numbers, "float32"))


def ordered(numbers: np.ndarray) -> list[int]:
    """A whole number for each float32, in the same order: what `tiny_order` makes of it."""
    bits = (numbers + 0.0).astype(np.float32).view(np.int32)  # 0 for −0
    return np.where(bits < 0, bits ^ 0x7FFFFFFF, bits).tolist()


def columns_of(encoder: TableEncoder) -> list[Column]:
    """The columns with names for C, in the order of their bits."""
    for code in encoder.columns:
        if code.numeric and code.held_as == "float64":
            raise ExportError(
                f"column {code.name!r} tells numbers apart that are one as float32, which C holds "
                "them as; subtract what they have in common, or leave digits out, and train again"
            )
    fields = identifiers([code.name.lower() for code in encoder.columns])  # AVR has SP and others
    words = identifiers([f"{field}_word" for field in fields], fields)
    return [Column(*three) for three in zip(encoder.columns, fields, words, strict=True)]


def code_type(columns: list[Column]) -> str:
    """The type of categories; its two largest numbers are no category."""
    return unsigned(max((len(c.code.categories) for c in columns), default=0) + 3)


def constants(columns: list[Column]) -> dict[tuple[str, str], str]:
    """Names for all categories, by column and word."""
    pairs = [(column.code.name, word) for column in columns for word in column.code.categories]
    fields = {column.code.name: column.field for column in columns}
    names = identifiers([f"{fields[name]}_{word}".upper() for name, word in pairs], MACROS)
    return {pair: f"TINY_{name}" for pair, name in zip(pairs, names, strict=True)}


def encoder_code(model: Model) -> str:
    """From the struct `tiny_row` to the function `tiny_encode`."""
    if isinstance(model.encoder, BitColumns):
        return _bit_columns(model.encoder, model.bias)
    return _table(model.encoder, model.bias)


def bit_range(encoder: BitColumns) -> tuple[int, int]:
    """The whole numbers from low to high."""
    low, high = math.ceil(encoder.low), math.floor(encoder.high)
    if not -(2**31) <= low <= high < 2**31:
        raise ExportError(
            f"columns from {encoder.low:g} to {encoder.high:g} hold no whole numbers of 32 bits; "
            "train on bits, signs or pixels"
        )
    return low, high


def bit_cuts(encoder: BitColumns) -> list[int]:
    """The largest whole number that is a 0, of each cut."""
    return [math.floor(level) for level in encoder.levels.tolist()]


def bit_type(encoder: BitColumns) -> str:
    """The type of such a column, which its cuts fit in too."""
    low, high = bit_range(encoder)
    low = min(low, *bit_cuts(encoder))
    return signed(low, high) if low < 0 else unsigned(high)


def _bit_columns(encoder: BitColumns, bias: int) -> str:
    low, high = bit_range(encoder)
    cuts, kind = bit_cuts(encoder), bit_type(encoder)
    least, largest = limits(kind)
    flags = {
        "several": len(cuts) > 1,
        "low": low > least,
        "high": high < largest,
        "bias": bias > 0,
    }
    ends = f"{encoder.names[0]} to {encoder.names[-1]}"
    ends = comment(", ".join(encoder.names) if encoder.trained else ends)
    return filled(
        "encode_bits",
        [name for name, on in flags.items() if on],
        about=f"{len(encoder.names)} columns, {ends}, each from {low} to {high}",
        constants=_constants(len(encoder.bit_names), bias),
        type=kind,
        columns=len(encoder.names),
        low=low,
        high=high,
        middle=cuts[0],
        several=len(cuts),
        cuts=table(kind, "tiny_cuts", map(whole, cuts)),
        load=f"({kind})TINY_LOAD{size_of(kind)}",
    )


def _constants(first: int, bias: int) -> str:
    """Sets the constant inputs; a few are spelled out, as they become one number."""
    if bias > FEW:
        return """\
    for (tiny_index bit = TINY_BITS; bit < TINY_INPUTS; bit++) {
        tiny_set(bits->word, bit); /* constant inputs */
    }"""
    return "\n".join(f"    TINY_SET(bits->word, {first + i}u);" for i in range(bias))


@dataclass(frozen=True)
class Mark:
    """What C reads of a column; None is said of the other kind of column."""

    count: int  # of categories or thresholds
    is_words: bool
    other_word: bool | None = None
    missing_word: bool | None = None
    bins: bool | None = None
    missing_number: bool | None = None


def marks_of(column: Column) -> list[Mark]:
    """One mark; two of a column of numbers that may hold words, which come first."""
    code = column.code
    words = Mark(len(code.categories), True, code.other, False)
    if column.kind == "word":
        return [replace(words, missing_word=code.missing)]
    numbers = Mark(len(code.thresholds), False, bins=bool(code.values), missing_number=code.missing)
    return [words, numbers] if column.mixed else [numbers]


def _table(encoder: TableEncoder, bias: int) -> str:
    columns = columns_of(encoder)
    code = code_type(columns)
    kinds = {column.kind for column in columns}
    mixed = any(column.mixed for column in columns)
    marks = [mark for column in columns for mark in marks_of(column)]
    varying = [
        field.name
        for field in fields(Mark)
        if len({getattr(mark, field.name) for mark in marks} - {None}) > 1
        or (field.name == "count" and not marks[0].count)  # C warns of comparisons with 0
    ]
    plain = not any(mark.is_words or mark.bins or mark.missing_number for mark in marks)
    both = beside(columns)
    flags = {
        "plain": plain,
        "numbers": kinds != {"word"},
        "cut_apart": kinds != {"word"} and not plain,
        "real": "real" in kinds,
        "words": mixed or "word" in kinds,
        "some_words": "word" in kinds,
        "mixed": mixed,
        "forks": "word" in kinds and len(kinds) > 1,
        "alike": alike(columns),
        "even": not varying,
        "bias": bias > 0,
    }
    numbers = _packed(marks, varying)
    size = unsigned(max(numbers))
    load = f"TINY_LOAD{size_of(size)}(tiny_columns + {{}})"
    (kind, *_) = kinds
    cut = cut_type(columns)
    body = filled(
        "encode_table",
        [name for name, on in flags.items() if on],
        columns=table(size, "tiny_columns", map(str, numbers)),
        scale=2 ** len(set(varying) - {"count"}),
        marks="\n".join(_macros(marks, varying, load.format("(i)"))),
        cuts=",\n".join(_cuts(column) for column in columns if column.kind != "word"),
        code=code,
        counts=", counts" if mixed else "",
        counts_parameter=", int counts" if mixed else "",
        counts_and="counts && " if mixed else "",
        counts_then="counts ? " if mixed else "",
        or_none=" : TINY_NONE" if mixed else "",
        kind="word" if kind == "word" else "number",
        cut=cut,
        cut_bits=size_of(cut),
        count=load.format("c->column") if varying else f"{marks[0].count}u",
        field=field_type(kind, code, both),
        value="tiny_order(value[c.column])" if kind == "real" else "value[c.column]",
        num_columns=len(columns),
        constants=_constants(len(encoder.bit_names), bias),
        puts="\n".join(_put(column, mixed) for column in columns),
    )
    return f"{_struct(columns, code, both)}\n\n{body}"


def beside(columns: list[Column]) -> bool:
    """Whether there are words beside whole numbers, and nothing else."""
    return {column.kind for column in columns} == {"word", "whole"}


def alike(columns: list[Column]) -> bool:
    """Whether one loop reads all fields."""
    one = beside(columns) or len({column.kind for column in columns}) == 1
    return one and not any(column.mixed for column in columns)


def field_type(kind: str, code: str, both: bool) -> str:
    """The type of a field; words beside whole numbers are as wide, so that one loop reads all."""
    return {"word": "int32_t" if both else code, "whole": "int32_t", "real": "float"}[kind]


def _packed(marks: list[Mark], varying: list[str]) -> list[int]:
    """A number for each mark: what varies, the lowest bits first, the count in the highest."""
    numbers = [mark.count if "count" in varying else 0 for mark in marks]
    for name in reversed([name for name in varying if name != "count"]):
        numbers = [
            2 * number + bool(getattr(mark, name))
            for number, mark in zip(numbers, marks, strict=True)
        ]
    return numbers


def _macros(marks: list[Mark], varying: list[str], load: str) -> Iterator[str]:
    """How C reads a mark: constants where all columns are alike."""
    yield f"#define TINY_COLUMN(i) {load if varying else '0u'}"
    bits = [name for name in varying if name != "count"]
    scale = f"(column) / {2 ** len(bits)}u" if bits else "(column)"
    yield (
        f"#define TINY_COUNT(column) ({scale})"
        if "count" in varying
        else (f"#define TINY_COUNT(column) {marks[0].count}u")
    )
    for name in (field.name for field in fields(Mark) if field.name != "count"):
        found = {getattr(mark, name) for mark in marks} - {None}
        if found and (name != "is_words" or len(found) > 1):
            value = f"((column) >> {bits.index(name)} & 1u)" if name in bits else f"{int(*found)}u"
            yield f"#define TINY_{name.upper()}(column) {value}"


def cut_type(columns: list[Column]) -> str:
    """The smallest type of all thresholds."""
    return byte_or(
        [cut for column in columns if column.kind != "word" for cut in column.cuts] or [0]
    )


def _put(column: Column, mixed: bool) -> str:
    value = f"row->{column.field}"
    value = f"tiny_order({value})" if column.kind == "real" else value
    if column.mixed:
        return f"    tiny_put_either(&c, {value}, row->{column.word_field});"
    return f"    tiny_put(&c, {value}{', 1' if mixed else ''});"


def _cuts(column: Column) -> str:
    """A line of thresholds, and what they are."""
    names = ", ".join(f"{x:.9g}" for x in column.code.thresholds)
    first = "" if column.code.missing else f"{column.code.typical:.9g} where missing; "
    about = comment(f"{column.code.name}: {first}above {names}")
    return f"    /* {about} */\n    {', '.join(map(whole, column.cuts))}"


def _struct(columns: list[Column], code: str, both: bool) -> str:
    """Enumerations of the categories, and the struct of a row."""
    most = 2 ** int(code.removeprefix("uint").removesuffix("_t")) - 1
    lines = []
    if any(column.kind != "word" for column in columns):
        lines.append(f"#define {NO_NUMBER} (-2147483647 - 1) /* of whole numbers: missing */\n")
    if any(column.kind == "word" or column.mixed for column in columns):
        names = constants(columns)
        lines += ["/* Categories. */", "enum {"]
        for column in columns:
            first = 1 if column.mixed else 0
            lines += [
                f"    {names[column.code.name, word]} = {first + i}, "
                f"/* {comment(column.code.name)}={comment(word)} */"
                for i, word in enumerate(column.code.categories)
            ]
        lines.append(f"    TINY_OTHER = {most - 1}, /* any other word */")
        lines.append(f"    TINY_MISSING = {most}\n}};\n")
    lines += ["/* A row: one field for each column that counts. */", "typedef struct {"]
    for column in columns:
        kind = field_type(column.kind, code, both)
        missing = {
            "word": "a category, TINY_OTHER or TINY_MISSING",
            "whole": f"a whole number, or {NO_NUMBER}",
            "real": "a number, or NAN",
        }[column.kind]
        lines.append(f"    {kind} {column.field}; /* {comment(column.code.name)}: {missing} */")
        if column.mixed:
            about = "0 where a number stands, or the word that stands there"
            lines.append(f"    {code} {column.word_field}; /* {about} */")
    return "\n".join([*lines, "} tiny_row;"])


def literal(number: float) -> str:
    """A float that C reads back as the same one."""
    text = f"{number:.9g}"
    return text + ("f" if "." in text or "e" in text else ".0f")


def whole(number: float) -> str:
    """An int32_t; the smallest has no literal of its own."""
    return "(-2147483647 - 1)" if number == -(2**31) else str(int(number))
