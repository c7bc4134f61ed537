"""Every figure of the paper, from its config to its files.

For each figure: the plot (PNG and SVG), the numbers (CSV), and a JSON file with the config, seeds,
versions, and the verdict on each claim. Finished units of work are cached in the output folder, so
a stopped run can be resumed.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from vitrail.engines import Backend
from vitrail.lab.experiments import fig1, fig2, fig3, fig4, fig5
from vitrail.lab.experiments.claims import Claim
from vitrail.lab.experiments.experiment import AnyExperiment, ResultTable
from vitrail.lab.experiments.units import Done, Rows, Unit, compute, plain
from vitrail.lab.plots import save
from vitrail.output import atomic_output

FIGURES: dict[str, AnyExperiment] = {
    one.name: one
    for one in (
        fig1.EXPERIMENT,
        fig2.EXPERIMENT,
        fig3.EXPERIMENT,
        fig4.EXPERIMENT,
        fig4.PINNED,
        fig5.EXPERIMENT,
    )
}
ALL = "all"
CACHE = ".units"  # folder of finished units, within that of the results


@dataclass(frozen=True)
class FigurePlan:
    """The work for one figure."""

    experiment: AnyExperiment
    quick: bool
    units: tuple[Unit, ...]

    @property
    def config(self) -> Any:
        return self.experiment.quick if self.quick else self.experiment.full

    @property
    def settings(self) -> Any:
        """The config as JSON values."""
        return plain(self.config)


@dataclass(frozen=True)
class Result:
    """One finished figure: numbers, claims, and its files."""

    plan: FigurePlan
    rows: Rows
    claims: tuple[Claim, ...]
    tables: tuple[ResultTable, ...]
    seconds: float  # of work on one core, cached units included
    wide: Path  # the plot as SVG, for a wide page and for a narrow one
    narrow: Path


def plans(figure: str, quick: bool) -> list[FigurePlan]:
    """The plan of a figure, or of all figures."""
    if figure != ALL and figure not in FIGURES:
        raise ValueError(f"no figure {figure!r}; choose one of: {', '.join([*FIGURES, ALL])}")
    chosen = FIGURES.values() if figure == ALL else [FIGURES[figure]]
    return [
        FigurePlan(one, quick, tuple(one.units(one.quick if quick else one.full))) for one in chosen
    ]


def missing(chosen: Sequence[FigurePlan], out: Path) -> list[Unit]:
    """The units of these figures that are not finished."""
    units = (unit for plan in chosen for unit in plan.units)
    return [unit for unit in units if not unit.place(out / CACHE).exists()]


def reproduce(
    figure: str,
    *,
    quick: bool = False,
    out: Path,
    jobs: int | None = None,
    backend: Backend = "processes",
    progress: Callable[[FigurePlan, Done], None] = lambda plan, done: None,
) -> list[Result]:
    """Reproduce one figure or all of them, with files in the folder `out`.

    Units of all figures are computed together, so that no core waits for the end of a figure.
    jobs: processes; None is one per core. progress: called with every finished unit.
    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; give a folder for the results")
    chosen = plans(figure, quick)
    units = [unit for plan in chosen for unit in plan.units]
    plan_of = {unit.key(): plan for plan in chosen for unit in plan.units}
    done = iter(
        compute(
            units,
            out / CACHE,
            jobs or available_cores(),
            lambda one: progress(plan_of[one.unit.key()], one),
            backend,
        )
    )
    return [make(plan, [next(done) for _ in plan.units], out) for plan in chosen]


def make(plan: FigurePlan, done: Sequence[Done], out: Path) -> Result:
    """Write the files of one figure, from its finished units."""
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
    record = {
        "figure": experiment.name,
        "title": experiment.title,
        "about": experiment.about,
        "quick": plan.quick,
        "config": plan.settings,
        "environment": _environments(done),
        "core_seconds": round(result.seconds, 1),
        "claims": [asdict(claim) for claim in result.claims],
        "tables": [asdict(table) for table in result.tables],
    }
    texts = {"csv": as_csv(rows), "json": json.dumps(record, indent=2) + "\n"}
    for suffix, text in texts.items():
        with atomic_output(out / f"{experiment.name}.{suffix}") as stream:
            stream.write(text.encode())
    return result


def _environments(done: Sequence[Done]) -> dict[str, str]:
    """What computed the units; "A and B" where some were computed with A and others with B."""
    names = done[0].environment
    return {n: " and ".join(dict.fromkeys(one.environment[n] for one in done)) for n in names}


def available_cores() -> int:
    """Number of cores that this process may use."""
    from joblib import cpu_count

    return cpu_count()


def as_csv(rows: Rows) -> str:
    """Rows as CSV; cells of absent columns are empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
