"""Tables that have something to learn, made by a seed: a rule over columns of any kind, and noise.

Rows repeat, cells are strange, one class may be rare. What matters is that fresh rows of the same
table can be had, to see whether a model answers all of them alike.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from fuzz.table_files import WORDS

LETTERS = [*"abcdef"]
HOSTILE = [
    *(word for word in WORDS if word.strip() not in ("", "?", "NA")),
    "=1+1",
    "<script>",
    "null",
    "None",
    "__proto__",
    "\u2009thin\u2009",
    "-",
    "1e5000",
    "0x10",
    "1,2",
    "true",
    "∞",
    "'; --",
    "\\",
    "%s",
    "{}",
    "x" * 300,
]

Column = Callable[[np.random.Generator, int], np.ndarray]
Test = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class RuleTable:
    """Rows to learn from and fresh ones, with their labels."""

    rows: pd.DataFrame
    labels: np.ndarray
    fresh: pd.DataFrame
    fresh_labels: np.ndarray


def a_column(rng: random.Random, hostile: bool) -> tuple[Column, Test]:
    """Cells of a column, and a question about a cell that about half of the rows answer by yes."""
    kind = rng.choice(["bit", "words", "integer", "number"])
    if kind == "bit":
        return lambda draw, rows: draw.integers(0, 2, rows), lambda cells: cells == 1
    if kind == "words":
        count = rng.choice([2, 4, 6])
        known = np.array(rng.sample(HOSTILE if hostile else LETTERS, count), dtype=object)
        yes = set(known[: count // 2])
        return (
            lambda draw, rows: known[draw.integers(0, count, rows)],
            lambda cells: np.array([cell in yes for cell in cells]),
        )
    if kind == "integer":
        return lambda draw, rows: draw.integers(0, 10, rows), lambda cells: cells >= 5
    return lambda draw, rows: draw.normal(size=rows).round(3), lambda cells: cells > 0


def rule_table(rng: random.Random, fresh_rows: int = 400, hostile: bool = False) -> RuleTable:
    """A table of one to four columns, of which one or two decide the label."""
    columns = [a_column(rng, hostile) for _ in range(rng.randint(1, 4))]
    rule = rng.choice(["one", "one", "and", "xor"])
    share, classes = rng.choice([0.0, 0.1, 0.25]), rng.choice([2, 2, 2, 3])
    rows, times = rng.choice([40, 200, 600]), rng.choice([1, 1, 5])
    draw = np.random.default_rng(rng.randrange(10**9))
    names = np.array([f"class {number}" for number in range(classes)])

    def made(count: int) -> tuple[pd.DataFrame, np.ndarray]:
        cells = {f"c{number}": make(draw, count) for number, (make, _) in enumerate(columns)}
        holds = [asked(column) for (_, asked), column in zip(columns, cells.values(), strict=True)]
        second = holds[-1]  # of one column the same one
        numbers = {
            "one": holds[0] + second * (classes > 2),
            "and": holds[0] & second,
            "xor": holds[0] ^ second if len(columns) > 1 else holds[0],
        }[rule].astype(int)
        noise = draw.integers(0, classes, count)
        return pd.DataFrame(cells), names[np.where(draw.random(count) < share, noise, numbers)]

    train, labels = made(rows)
    which = draw.permutation(np.tile(np.arange(rows), times))
    fresh, fresh_labels = made(fresh_rows)
    return RuleTable(train.iloc[which].reset_index(drop=True), labels[which], fresh, fresh_labels)
