"""`vitrail bench`, `capacity` and `reproduce`: timings, random perceptrons, the paper's figures."""

from __future__ import annotations

import errno
import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from vitrail.cli.app import app, when_stopped
from vitrail.cli.options import (
    RESEARCH,
    FigureFile,
    Jobs,
    Json,
    Seed,
    Workers,
    check_figure,
    check_output,
    plain_console,
    print_table,
    shown,
)

if TYPE_CHECKING:
    from vitrail.engines import Backend
    from vitrail.lab.experiments.reproduce import FigurePlan, Result
    from vitrail.lab.experiments.units import Done

KEPT = "stopped; what is finished is kept, the same command goes on from there"
MOST_WEIGHTS = 10**9  # of a perceptron that any memory holds


@app.command(rich_help_panel=RESEARCH)
def bench(
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: Annotated[Path | None, typer.Option(help="Write the rows to this file.")] = None,
    figure: FigureFile = None,
    share: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="Part of the factors, for a quick look.")
    ] = 1.0,
) -> None:
    """Time every update and survey step against the paper's formulation, with message errors.

    Example: `vitrail bench --share 0.05 --json bench.json`
    """
    from vitrail.lab.bench import run_bench

    if device not in ("cpu", "cuda"):
        raise ValueError(f"device is cpu or cuda, got {device!r}")
    if json is not None:
        check_output(json)
    check_figure(figure)
    run_bench(device, json=json, figure=figure, share=share)


@app.command(rich_help_panel=RESEARCH)
def capacity(
    n: Annotated[int, typer.Option("--n", help="Weights; odd.", min=1, max=MOST_WEIGHTS)] = 1001,
    alpha: Annotated[str, typer.Option(help="low:high:step, or values with commas.")] = (
        "0.5:0.8:0.02"
    ),
    solvers: Annotated[
        str,
        typer.Option(
            help="Of messages, reinforced, sampled, ste, bop, bayesbinn, annealing; with commas."
        ),
    ] = "messages",
    count: Annotated[int, typer.Option(help="Instances for each α.", min=1)] = 10,
    seconds: Annotated[float, typer.Option(help="Limit for one instance.", min=0.1)] = 60.0,
    seed: Seed = 0,
    jobs: Jobs = 1,
    backend: Workers = "processes",
    device: Annotated[str, typer.Option(help="cpu, or cuda: all instances side by side.")] = "cpu",
    out: Annotated[
        Path, typer.Option(help="Folder for results and figure; what is there is not run again.")
    ] = Path("capacity"),
    as_json: Json = False,
) -> None:
    """Solve random perceptrons of M = α·N examples and draw how many were solved, and how fast.

    Stop it at any time: called again with the same folder it goes on where it was.

    Example: `vitrail capacity --n 201 --alpha 0.5:0.7:0.1 --count 3 --solvers messages,annealing`
    """
    from vitrail.engines import checked_backend
    from vitrail.lab.experiments import capacity as sweep
    from vitrail.lab.experiments.units import compute
    from vitrail.lab.plots import capacity_figure, save

    names = [name.strip() for name in solvers.split(",")]
    work = sweep.units(n, sweep.alpha_range(alpha), names, count, seconds, device, seed)
    console, finished = plain_console(stderr=True), 0

    def show(done: object) -> None:
        nonlocal finished
        finished += 1
        if console.is_terminal:
            console.print(f"{finished} of {len(work)}", end="\r")

    workers = checked_backend(backend)
    with when_stopped(KEPT):
        done = compute(work, out / "units", jobs, show, workers)
    lines = sweep.summary([row for part in done for row in part.rows])
    marks = {"algorithmic limit": sweep.ALGORITHMIC_LIMIT, "capacity": sweep.CAPACITY}
    figure = capacity_figure(lines, marks, f"random perceptrons, N = {n}")
    place = save(figure, out / "capacity.png")
    if as_json:
        typer.echo(json_format.dumps({"n": n, "rows": lines, "figure": shown(place)}))
        return
    rows = [
        (line["solver"], line["alpha"], line["solved"], line["trials"], _rounded(line["seconds"]))
        for line in lines
    ]
    print_table(("solver", "α", "share solved", "instances", "median seconds"), rows)
    plain_console().print(f"figure: {shown(place)}")


def _rounded(value: object) -> float | None:
    return round(value, 2) if isinstance(value, float) else None


@app.command(rich_help_panel=RESEARCH)
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
    claims = [
        (result.plan.experiment.name, claim.paper, str(claim.verdict))
        for result in results
        for claim in result.claims
    ]
    print_table(("figure", "the paper says", "here it"), claims)
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

    words, finished = TextColumn("{task.description}"), MofNCompleteColumn()
    with Progress(words, BarColumn(), finished, TimeRemainingColumn(), console=console) as bar:
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
