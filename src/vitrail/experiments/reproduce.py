"""Every figure of the paper, from its config to its files.

For each figure: the drawing (PNG and SVG), the numbers (CSV), and a JSON file with the config,
the seeds, the versions, and what became of each claim. Finished units of work are kept under the
output folder, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import csv
import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from io import StringIO
from pathlib import Path

from vitrail import __version__
from vitrail.experiments import fig1, fig2, fig3, fig4, fig5
from vitrail.experiments.claims import Claim
from vitrail.experiments.experiment import AnyExperiment, Table
from vitrail.experiments.units import Done, Rows, Unit, compute, plain
from vitrail.plots import save

FIGURES: dict[str, AnyExperiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (fig1, fig2, fig3, fig4, fig5)
}
ALL = "all"
PACKAGES = ("torch", "numpy", "numba", "scikit-learn", "matplotlib", "joblib")


@dataclass(frozen=True)
class Plan:
    """What there is to do for one figure, before it is done."""

    experiment: AnyExperiment
    quick: bool
    units: tuple[Unit, ...]

    @property
    def config(self) -> object:
        return self.experiment.quick if self.quick else self.experiment.full

    def seconds(self, jobs: int) -> float:
        """How long it should take on `jobs` cores when nothing is kept from before."""
        longest = max((unit.cost for unit in self.units), default=0.0)
        return max(longest, sum(unit.cost for unit in self.units) / jobs)


@dataclass(frozen=True)
class Result:
    """One figure, done: numbers, words, and where its files are."""

    plan: Plan
    rows: Rows
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...]
    seconds: float  # of work, on one core, whenever it was done
    wide: Path  # the drawing as SVG, for a wide page and for a narrow one
    narrow: Path


def plans(figure: str, quick: bool) -> list[Plan]:
    """The figures that a name stands for: one of them, or "all"."""
    if figure != ALL and figure not in FIGURES:
        raise ValueError(f"no figure {figure!r}; choose one of: {', '.join([*FIGURES, ALL])}")
    chosen = FIGURES.values() if figure == ALL else [FIGURES[figure]]
    return [Plan(one, quick, tuple(one.units(one.quick if quick else one.full))) for one in chosen]


def reproduce(
    figure: str,
    *,
    quick: bool = False,
    out: Path,
    jobs: int | None = None,
    progress: Callable[[Plan, Done], None] = lambda plan, done: None,
) -> list[Result]:
    """Make one figure or all of them, each with its files in the folder `out`.

    jobs: processes; None takes every core. `progress` hears of every finished unit.
    """
    out.mkdir(parents=True, exist_ok=True)
    return [
        make(plan, out, jobs or available_cores(), lambda done, plan=plan: progress(plan, done))
        for plan in plans(figure, quick)
    ]


def make(plan: Plan, out: Path, jobs: int, progress: Callable[[Done], None]) -> Result:
    """Compute what is missing, then write the files of one figure."""
    done = compute(plan.units, out / ".units" / plan.experiment.name, jobs, progress)
    rows = [row for part in done for row in part.rows]
    experiment, config = plan.experiment, plan.config
    wide = experiment.draw(config, rows, experiment.columns)
    narrow = experiment.draw(config, rows, experiment.narrow)
    save(wide, out / f"{experiment.name}.png")
    result = Result(
        plan,
        rows,
        tuple(experiment.claims(config, rows)),
        tuple(experiment.tables(config, rows)),
        sum(part.seconds for part in done),
        save(wide, out / f"{experiment.name}.svg"),
        save(narrow, out / f"{experiment.name}-narrow.svg"),
    )
    _write(out / f"{experiment.name}.csv", as_csv(rows))
    _write(out / f"{experiment.name}.json", json.dumps(_record(result), indent=2) + "\n")
    return result


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def environment() -> dict[str, str]:
    """What the numbers were made with."""
    return {
        "vitrail": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "machine": f"{platform.system()} {platform.machine()}, {available_cores()} cores",
    }


def as_csv(rows: Rows) -> str:
    """Rows as CSV; a column that a row lacks is empty there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def settings_of(plan: Plan) -> dict[str, object]:
    """The config as plain values."""
    return plain(plan.config)


def _record(result: Result) -> dict[str, object]:
    return {
        "figure": result.plan.experiment.name,
        "title": result.plan.experiment.title,
        "quick": result.plan.quick,
        "config": settings_of(result.plan),
        "environment": environment(),
        "core_seconds": round(result.seconds, 1),
        "claims": [asdict(claim) for claim in result.claims],
        "tables": [asdict(table) for table in result.tables],
    }


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def summary(results: Sequence[Result]) -> dict[str, int]:
    """How many claims got each verdict."""
    counts: dict[str, int] = {}
    for result in results:
        for claim in result.claims:
            counts[claim.verdict] = counts.get(claim.verdict, 0) + 1
    return counts
