"""`vitrail reproduce`: the figures of the paper, with their claims put to the test."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from vitrail.cli.app import app, when_stopped
from vitrail.cli.options import Workers, plain_console, shown

if TYPE_CHECKING:
    from vitrail.engines import Backend
    from vitrail.lab.experiments.reproduce import FigurePlan, Result
    from vitrail.lab.experiments.units import Done

KEPT = "stopped; what is finished is kept, the same command goes on from there"


@app.command()
def reproduce(
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="fig1 to fig5, or all.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Few repeats, reduced grids: minutes, not an hour.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the results; what is there is reused.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; every core if left out.")
    ] = None,
    backend: Workers = "processes",
) -> None:
    """Make a figure of the paper again: drawing, numbers, settings, claims, and a page of it all.

    It can be stopped at any time; the same command goes on where it was.

    Example: `vitrail reproduce all --quick --out results`
    """
    from vitrail.engines import checked_backend
    from vitrail.lab.experiments import reproduce as work
    from vitrail.lab.experiments.report import write_report

    console = plain_console()
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    workers = checked_backend(backend)
    jobs = jobs or work.available_cores()
    plans = work.plans(figure, quick)
    names = ", ".join(plan.experiment.name for plan in plans)
    left, total = work.missing(plans, folder), sum(len(plan.units) for plan in plans)
    kept = f" ({total - len(left)} of {total} parts are there already)" if len(left) < total else ""
    minutes = round(work.expected(left, jobs) / 60)
    time = f"about {minutes} minutes" if minutes > 1 else "about a minute"
    console.print(f"{names}: {time} on {jobs} cores{kept}")
    try:
        with when_stopped(KEPT):
            results = _with_bar(console, plans, figure, quick, folder, jobs, workers)
            page = write_report(results, folder / "report.html")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(
            f"no space left for the results in {folder}; free some space and give the same command "
            "again: what is finished is kept"
        ) from error
    console.print(_claims(results))
    console.print(f"the page with everything: {shown(page)}")


def _with_bar(
    console: Console,
    plans: list[FigurePlan],
    figure: str,
    quick: bool,
    folder: Path,
    jobs: int,
    workers: Backend,
) -> list[Result]:
    """Run with a bar for every figure."""
    from vitrail.lab.experiments.reproduce import reproduce as run

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        tasks = {
            plan.experiment.name: bar.add_task(plan.experiment.name, total=len(plan.units))
            for plan in plans
        }

        def advance(plan: FigurePlan, done: Done) -> None:
            name, total = plan.experiment.name, len(plan.units)
            bar.advance(tasks[name])
            finished = int(bar.tasks[tasks[name]].completed)
            # a log file has no bar: a line every tenth
            if not console.is_terminal and finished * 10 // total > (finished - 1) * 10 // total:
                console.print(f"{name}: {finished} of {total}")

        return run(figure, quick=quick, out=folder, jobs=jobs, backend=workers, progress=advance)


def _claims(results: list[Result]) -> Table:
    table = Table("figure", "the paper says", "here it", show_lines=False)
    for result in results:
        for claim in result.claims:
            table.add_row(result.plan.experiment.name, claim.paper, str(claim.verdict))
    return table
