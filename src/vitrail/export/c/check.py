"""What checks exported C: rows with known answers, a reader of CSV, a `main`."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrail.export.c import encoder as code
from vitrail.export.c.text import comment, filled, string, table, unsigned
from vitrail.export.golden import Rows
from vitrail.model import Model
from vitrail.tables.bits import BitColumns
from vitrail.tables.cells import MISSING_WORDS, as_word, is_missing
from vitrail.tables.columns import rounded
from vitrail.tables.spelling import BLANKS, as_number, stripped


def check_code(model: Model, rows: Rows) -> str:
    """Golden rows with their answers and probabilities, and the CSV reader."""
    encoder = model.encoder
    found = model.answers(rows)
    names = (
        [column.name for column in encoder.columns]
        if not isinstance(encoder, BitColumns)
        else list(encoder.names)
    )
    count = len(found.numbers)
    chances = map(str, found.chances.flatten().tolist())
    lines = [_row(model, {name: rows[name][i] for name in names}) for i in range(count)]
    answer = unsigned(model.num_classes - 1)
    columns = [] if isinstance(encoder, BitColumns) else code.columns_of(encoder)
    categories = [word for column in columns for word in column.code.categories]
    target = str(model.record.get("target", ""))
    words = any(column.kind == "word" or column.mixed for column in columns)
    numbers = not columns or any(column.kind != "word" for column in columns)
    return filled(
        "check",
        ["not_a_number"] * any("NAN" in line for line in lines)
        + ["words"] * words
        + ["numbers"] * numbers,
        golden=count,
        rows=",\n".join(f"    {line}" for line in lines),
        answers=table(answer, "tiny_golden_answers", map(str, found.numbers.tolist())),
        load_answer=f"TINY_LOAD{answer[4:-2]}",
        chances=table("uint16_t", "tiny_golden_chances", chances),
        num_columns=len(names),
        names=",\n    ".join(string(stripped(name)) for name in names),
        labels=",\n    ".join(string(as_word(label)) for label in model.labels.classes),
        is_blank=" || ".join(f"c == {ord(blank)}" for blank in BLANKS),
        categories=",\n    ".join(map(string, categories or [""])),
        missing=", ".join(map(string, sorted(MISSING_WORDS))),
        read=_read_bits(encoder) if isinstance(encoder, BitColumns) else _read(columns),
        target=string(stripped(target)),
        target_name=comment(target) or "none",
    )


def _row(model: Model, row: dict[str, Any]) -> str:
    """The initializer of a row."""
    if isinstance(model.encoder, BitColumns):
        return (
            "{{" + ", ".join(str(int(as_number(row[name]))) for name in model.encoder.names) + "}}"
        )
    parts = []
    columns = code.columns_of(model.encoder)
    names = code.constants(columns)
    for column in columns:
        value = row[column.code.name]
        number = np.nan if isinstance(value, str) else as_number(value)
        if column.kind == "word":
            parts.append(_word(names, column, value))
        elif column.kind == "whole":
            parts.append(code.NO_NUMBER if np.isnan(number) else code.whole(number))
        else:
            fits = float(rounded(number, "float32"))
            parts.append("NAN" if np.isnan(number) else code.literal(fits))
        if column.mixed:
            no_word = is_missing(value) or not np.isnan(number)
            parts.append("0" if no_word else _word(names, column, value))
    return "{" + ", ".join(parts) + "}"


def _word(names: dict[tuple[str, str], str], column: code.Column, value: Any) -> str:
    if is_missing(value):
        return "TINY_MISSING"
    return names.get((column.code.name, as_word(value)), "TINY_OTHER")


def _read_bits(encoder: BitColumns) -> str:
    low, high = code.bit_range(encoder)
    return f"""\
    if (!number || value < {low} || value > {high}) {{
        return TINY_BAD_INPUT;
    }}
    row->x[column] = ({code.bit_type(encoder)})value;
    return (double)row->x[column] == value ? 0 : TINY_BAD_INPUT; /* not whole */"""


def _read(columns: list[code.Column]) -> str:
    kind = code.code_type(columns)
    lines, first = ["    switch (column) {"], 0
    for place, column in enumerate(columns):
        field, count = f"row->{column.field}", len(column.code.categories)
        find = f"tiny_find(cell, {first}, {count})"
        lines.append(f"    case {place}:")
        if column.kind == "word":
            lines.append(f"        {field} = ({kind})(missing ? (unsigned)TINY_MISSING : {find});")
        else:
            spelling = column.code.spelling
            plain = spelling.decimal == "." and spelling.accepts("")
            if not spelling.accepts(""):
                lines.append("        number = 0; /* one has a unit here */")
            lines.append("        if (!missing && !number) {")
            if column.mixed:
                lines += [
                    f"            const unsigned found = {find};",
                    "            if (found != TINY_OTHER || !tiny_is_odd(cell)) {",
                    f"                row->{column.word_field} = "
                    f"({kind})(found == TINY_OTHER ? found : found + 1u);",
                    "                return 0;",
                    "            }",
                ]
            lines.append("        }")
            odd = "!missing && !number" if plain else "!missing"
            lines += [f"        if ({odd} && tiny_is_odd(cell)) {{", BAD, "        }"]
            lines += WHOLE if column.kind == "whole" else REAL
            lines[-1] = lines[-1].format(field=field)
        lines.append("        return 0;")
        first += count
    return "\n".join([*lines, "    default:", "        return TINY_BAD_INPUT;", "    }"])


BAD = "            return TINY_BAD_INPUT;"
WHOLE = [
    "        value = value > 2147483647.0 ? 2147483647.0 : value;",
    "        value = value < -2147483647.0 ? -2147483647.0 : value;",
    "        if ((double)(int32_t)value != value) {",
    "            return TINY_BAD_INPUT; /* not whole */",
    "        }",
    "        {field} = number ? (int32_t)value : TINY_NO_NUMBER;",
]
REAL = [
    "        value = value > 3.402823466e38 ? 3.402823466e38 : value;",
    "        value = value < -3.402823466e38 ? -3.402823466e38 : value;",
    '        {field} = number ? (float)value : strtof("nan", 0);',
]
