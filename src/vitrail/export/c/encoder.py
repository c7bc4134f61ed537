"""The encoder in C: a struct of the user's columns, and what makes bits of it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from vitrail.data.bits import BitColumns
from vitrail.data.cuts import rounded
from vitrail.data.encoders import ColumnCode, TableEncoder
from vitrail.export.c.text import (
    TEMPLATES,
    comment,
    filled,
    identifiers,
    signed,
    table,
    template,
    unsigned,
)
from vitrail.export.errors import ExportError
from vitrail.model import Model

NO_NUMBER = "TINY_NO_NUMBER"
MACROS = re.findall(
    r"TINY_(\w+_\w+)", "".join(map(template, TEMPLATES))
)  # no category is called so


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
    def cuts(self) -> list[int]:
        """What numbers are compared with; first what a missing one is read as, if it is."""
        numbers = list(self.code.thresholds)
        if not self.code.missing:
            numbers = [self.code.typical, *numbers]
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
    limits = np.iinfo(kind.removesuffix("_t"))
    flags = {
        "several": len(cuts) > 1,
        "low": low > limits.min,
        "high": high < limits.max,
        "bias": bias > 0,
    }
    ends = comment(f"{encoder.names[0]} to {encoder.names[-1]}")
    return filled(
        "encode_bits",
        [name for name, on in flags.items() if on],
        about=f"{len(encoder.names)} columns, {ends}, each from {low} to {high}",
        type=kind,
        columns=len(encoder.names),
        low=low,
        high=high,
        middle=cuts[0],
        several=len(cuts),
        cuts=table(kind, "tiny_cuts", map(whole, cuts)),
        load=f"({kind})TINY_LOAD{kind.strip('uint_')}",
    )


def _table(encoder: TableEncoder, bias: int) -> str:
    columns = columns_of(encoder)
    code = code_type(columns)
    kinds = {column.kind for column in columns}
    mixed = any(column.mixed for column in columns)
    size = unsigned(max(max(len(c.code.categories), len(c.code.thresholds)) for c in columns))
    flags = {
        "numbers": kinds != {"word"},
        "real": "real" in kinds,
        "words": "word" in kinds,
        "mixed": mixed,
        "categories": any(c.code.categories or c.code.other for c in columns),
        "other": any(c.code.other for c in columns),
        "bins": any(c.code.values for c in columns),
        "thermometer": any(c.code.thresholds and len(c.code.values) != 2 for c in columns),
        "missing": any(c.code.missing for c in columns),
        "bias": bias > 0,
    }
    flags["plain"] = not any(flags[name] for name in ("categories", "bins", "missing"))
    flags["alike"] = len(kinds) == 1 and not mixed  # one loop reads all fields
    counts = [len(c.code.thresholds) for c in columns]
    flags["even"] = len(set(counts)) == 1
    load_count = f"TINY_LOAD{size[4:-2]}(tiny_counts + c->column++)"
    (kind, *_) = kinds
    cut = _cut_type(columns)
    body = filled(
        "encode_table",
        [name for name, on in flags.items() if on],
        size=size,
        columns=table("tiny_column", "tiny_columns", map(_description, columns), 1),
        cuts=",\n".join(_cuts(column) for column in columns if column.kind != "word"),
        code=code,
        word_parameter=f", {code} word" if mixed else "",
        word_argument=", word" if mixed else "",
        counts=table(size, "tiny_counts", map(str, counts)),
        cut=cut,
        cut_bits=cut[3:-2],
        count=f"{counts[0]}u" if flags["even"] else load_count,
        field={"word": code, "whole": "int32_t", "real": "float"}[kind],
        what={"word": "word", "whole": "number", "real": "real"}[kind],
        num_columns=len(columns),
        puts="\n".join(_put(column, mixed) for column in columns),
    )
    return f"{_struct(columns, code)}\n\n{body}"


def _cut_type(columns: list[Column]) -> str:
    """The smallest type of all thresholds, of 16 bits or 32."""
    cuts = [cut for column in columns if column.kind != "word" for cut in column.cuts]
    small = all(-(2**15) <= cut < 2**15 for cut in cuts)
    return "int16_t" if small else "int32_t"


def _put(column: Column, mixed: bool) -> str:
    if column.kind == "word":
        return f"    tiny_put_word(&c, row->{column.field});"
    word = f", row->{column.word_field}" if column.mixed else ", 0" if mixed else ""
    what = "real" if column.kind == "real" else "number"
    return f"    tiny_put_{what}(&c, row->{column.field}{word});"


def _cuts(column: Column) -> str:
    """A line of thresholds, and what they are."""
    names = ", ".join(f"{x:.9g}" for x in column.code.thresholds)
    first = "" if column.code.missing else f"{column.code.typical:.9g} where missing; "
    about = comment(f"{column.code.name}: {first}above {names}")
    return f"    /* {about} */\n    {', '.join(map(whole, column.cuts))}"


def _description(column: Column) -> str:
    code = column.code
    flags = {
        "OTHER": code.other,
        "BINS": bool(code.values),
        "THRESHOLDS": bool(code.thresholds) and len(code.values) != 2,
        "MISSING": code.missing,
    }
    spelled = " | ".join(f"TINY_HAS_{name}" for name, on in flags.items() if on) or "0"
    return f"{{{len(code.categories)}, {len(code.thresholds)}, {spelled}}}"


def _struct(columns: list[Column], code: str) -> str:
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
        kind = {"word": code, "whole": "int32_t", "real": "float"}[column.kind]
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
