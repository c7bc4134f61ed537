"""What checks exported C: rows with known answers, a reader of CSV, a `main`."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrail.export.c.encoder import (
    Column,
    bit_columns,
    code_type,
    columns_of,
    constants,
    literal,
)
from vitrail.export.c.text import int32_literal, render, unsigned
from vitrail.export.golden import Rows
from vitrail.model import Model
from vitrail.tables.bits import BitColumns
from vitrail.tables.cells import MISSING_WORDS, as_category, is_missing
from vitrail.tables.columns import rounded
from vitrail.tables.spelling import BLANKS, as_number


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
