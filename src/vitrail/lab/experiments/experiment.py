"""A figure of the paper as an experiment: config, units of work, figures, tables, claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import sub
from typing import Any, Generic, TypeVar

from vitrail.lab.experiments.claims import Claim, Difference, deviation, mean, paired
from vitrail.lab.experiments.units import Rows, Unit, Value
from vitrail.lab.plots import Figure, Line

ConfigT = TypeVar("ConfigT")


@dataclass(frozen=True)
class ResultTable:
    """A table of results: title, column names, and cells as text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Experiment(Generic[ConfigT]):
    """One figure. Configs are frozen dataclasses; all else is a function of config and rows.

    draw: takes the number of columns of panels, so that a page can show a narrow version.
    """

    name: str
    title: str
    about: str
    full: ConfigT
    quick: ConfigT
    units: Callable[[ConfigT], Sequence[Unit]]
    draw: Callable[[ConfigT, Rows, int], Figure]
    tables: Callable[[ConfigT, Rows], Sequence[ResultTable]]
    claims: Callable[[ConfigT, Rows], Sequence[Claim]]
    columns: int = 3  # of panels on a wide page
    narrow: int = 1  # of panels on a phone


AnyExperiment = Experiment[Any]


def pick(rows: Rows, **wanted: object) -> Rows:
    """The rows whose columns have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def column(rows: Rows, name: str) -> list[float]:
    """One column as numbers; an empty cell is an error, because it would shift pairs."""
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
    """Rows of `second`, and for each the row of `first` that agrees in the columns `by`."""
    known = {tuple(row[name] for name in by): row for row in first}
    return [known[tuple(row[name] for name in by)] for row in second], second


def changes(first: Rows, second: Rows, by: Sequence[str], name: str) -> list[float]:
    """second − first in the column `name`, paired by the columns `by`."""
    before, after = matched(first, second, by)
    return list(map(sub, column(after, name), column(before, name)))


def difference(
    first: Rows, second: Rows, by: Sequence[str], name: str, over: Sequence[str] = ("repeat",)
) -> Difference:
    """second − first in the column `name`, paired by the columns `by`.

    Rows that agree in the columns `over` come from one draw of the data (problems of one repeat
    are nested in size) and are averaged first, so the error is over independent draws.
    """
    draws: dict[tuple[Value, ...], list[float]] = {}
    for row, change in zip(second, changes(first, second, by, name), strict=True):
        draws.setdefault(tuple(row[part] for part in over), []).append(change)
    means = [mean(changed) for changed in draws.values()]
    return paired(means, [0.0] * len(means))


def listed(gains: Mapping[str, Difference]) -> str:
    """Differences in a sentence: "SBP +0.01 ± 0.02, SNMP …"."""
    return ", ".join(f"{name} {gain}" for name, gain in gains.items())


def curve(name: str, rows: Rows, x: str, y: str) -> Line:
    """A line through the means of a column at every x, with their standard deviations."""
    places = distinct(rows, x)
    values = [column(pick(rows, **{x: place}), y) for place in places]
    means, spreads = [mean(v) for v in values], [deviation(v) for v in values]
    band = [[m + sign * s for m, s in zip(means, spreads, strict=True)] for sign in (-1, 1)]
    return Line(name, places, means, (band[0], band[1]))


def plus_minus(values: Sequence[float], digits: int = 4) -> str:
    """Mean and standard deviation over repeats, as a cell of a table."""
    return f"{mean(values):.{digits}f} ± {deviation(values):.{digits}f}"


def cells(rows: Rows, names: Sequence[str], digits: int = 4) -> list[str]:
    """Mean and standard deviation of some columns."""
    return [plus_minus(column(rows, name), digits) for name in names]
