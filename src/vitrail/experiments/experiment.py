"""What a figure of the paper is made of: a config, units of work, drawings, tables, claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from vitrail.experiments.claims import Claim, Difference, paired
from vitrail.experiments.units import Rows, Unit
from vitrail.plots import Figure

ConfigT = TypeVar("ConfigT")


@dataclass(frozen=True)
class Table:
    """Numbers for a reader: a heading, column names, and cells already written out."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Experiment(Generic[ConfigT]):
    """One figure. Configs are frozen dataclasses; everything else is a function of config and rows.

    draw takes the number of columns its panels may use, so that a page can show a narrow form.
    """

    name: str
    title: str
    about: str
    full: ConfigT
    quick: ConfigT
    units: Callable[[ConfigT], Sequence[Unit]]
    draw: Callable[[ConfigT, Rows, int], Figure]
    tables: Callable[[ConfigT, Rows], Sequence[Table]]
    claims: Callable[[ConfigT, Rows], Sequence[Claim]]
    columns: int = 3  # panels side by side on a wide page
    narrow: int = 1  # and on a phone


AnyExperiment = Experiment[Any]


def pick(rows: Rows, **wanted: object) -> Rows:
    """The rows whose columns have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def column(rows: Rows, name: str) -> list[float]:
    """One column as numbers; empty cells are an error, because they would shift pairs."""
    values = []
    for row in rows:
        value = row.get(name)
        if value is None or isinstance(value, str):
            raise ValueError(f"column {name!r} of a result is not a number: {value!r}")
        values.append(float(value))
    return values


def distinct(rows: Rows, name: str) -> list[Any]:
    """The values of a column in the order of their first appearance."""
    return list(dict.fromkeys(row.get(name) for row in rows))


def matched(first: Rows, second: Rows, by: Sequence[str]) -> tuple[Rows, Rows]:
    """Rows of `second` with, before each, the row of `first` that agrees in the columns `by`."""
    known = {tuple(row[name] for name in by): row for row in first}
    return [known[tuple(row[name] for name in by)] for row in second], second


def difference(first: Rows, second: Rows, by: Sequence[str], name: str) -> Difference:
    """second − first in the column `name`, paired by the columns `by`."""
    before, after = matched(first, second, by)
    return paired(column(after, name), column(before, name))
