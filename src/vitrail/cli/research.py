"""`vitrail demo`, `bench`, `capacity`, `reproduce` and `infer`: what needs no table."""

from __future__ import annotations

import errno
import json as json_format
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from vitrail.cli.app import app, when_stopped
from vitrail.cli.options import (
    LEARN,
    RESEARCH,
    FigureFile,
    Jobs,
    Json,
    Seed,
    Workers,
    check_figure,
    check_output,
    output_option,
    plain_console,
    print_table,
    shown,
)

if TYPE_CHECKING:
    from vitrail.lab.demo import DemoResult

DEMO_HEAD = ("", "accuracy", "calibration\nerror", "bits", "seconds")
NEXT = "vitrail fit YOUR.csv --target COLUMN --report report.html"
STOPPED = "stopped; finished results are saved, and the same command resumes"
MOST_WEIGHTS = 10**9  # of a perceptron that fits into memory


@app.command(rich_help_panel=LEARN)
def demo(
    seed: Seed = 0,
    output: Annotated[Path, output_option("File of the figure (PNG, SVG or PDF).")] = Path(
        "vitrail-demo.png"
    ),
) -> None:
    """Show one-bit weights on ten digits from ten images each, on 3 against 5, and on a search.

    Example: `vitrail demo --seed 1`
    """
    from vitrail.lab.demo import figure, run_demo
    from vitrail.lab.plots import save

    check_figure(output)
    console = plain_console()
    found = run_demo(seed, lambda line: console.print(f"… {line}"))
    print_table(DEMO_HEAD, rows_of(found))
    watch = found.stopwatch
    console.print(
        f"{watch.work:.1f} s of work, and {watch.compiling:.1f} s to load kernels (compiled once, "
        "then cached)"
    )
    console.print(f"figure: {shown(save(figure(found), output))}")
    console.print(f"next: {NEXT}")


def rows_of(found: DemoResult) -> Iterator[tuple[str, ...]]:
    """One row per method, problem by problem."""
    problem = ""
    for row in found.rows:
        if row.problem != problem:
            problem = row.problem
            yield problem, "", "", "", ""
        result = "solved" if row.accuracy == 1 else f"{100 * row.accuracy:.1f} %"
        error = "" if row.calibration_error is None else f"{row.calibration_error:.2f}"
        yield f"  {row.method}", result, error, f"{row.bits:,}", f"{row.seconds:.1f}"


@app.command(rich_help_panel=RESEARCH)
def bench(
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: Annotated[Path | None, typer.Option(help="Write the rows to this file.")] = None,
    figure: FigureFile = None,
    share: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="Share of the factors, for a quick run.")
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
    n: Annotated[int, typer.Option("--n", help="Weights; odd.", min=1)] = 1001,
    alpha: Annotated[str, typer.Option(help="low:high:step, or values with commas.")] = (
        "0.5:0.8:0.02"
    ),
    solvers: Annotated[
        str,
        typer.Option(
            help="With commas: messages, reinforced, sampled, amp, ste, bop, bayesbinn, annealing."
        ),
    ] = "messages",
    count: Annotated[int, typer.Option(help="Instances per α.", min=1)] = 10,
    seconds: Annotated[float, typer.Option(help="Time limit per instance.", min=0.1)] = 60.0,
    seed: Seed = 0,
    jobs: Jobs = 1,
    backend: Workers = "processes",
    device: Annotated[str, typer.Option(help="cpu, or cuda: all instances side by side.")] = "cpu",
    out: Annotated[
        Path, typer.Option(help="Folder for results and figure; existing results are reused.")
    ] = Path("capacity"),
    as_json: Json = False,
) -> None:
    """Solve random perceptrons of M = α·N examples and plot the share solved and the time.

    It can be stopped at any time; the same command resumes.

    Example: `vitrail capacity --n 201 --alpha 0.5:0.7:0.1 --count 3 --solvers messages,annealing`
    """
    from vitrail.engines import checked_backend
    from vitrail.lab.experiments import capacity as sweep
    from vitrail.lab.experiments.units import compute
    from vitrail.lab.plots import capacity_figure, save

    if n > MOST_WEIGHTS:
        raise ValueError(f"expected at most {MOST_WEIGHTS:,} weights, got --n {n:,}")
    names = [name.strip() for name in solvers.split(",")]
    work = sweep.units(n, sweep.alpha_range(alpha), names, count, seconds, device, seed)
    workers = checked_backend(backend)
    with when_stopped(STOPPED), bars({"instances": len(work)}) as advance:
        done = compute(work, out / "units", jobs, lambda _: advance("instances"), workers)
    lines = sweep.summary([row for part in done for row in part.rows])
    marks = {"algorithmic limit": sweep.ALGORITHMIC_LIMIT, "capacity": sweep.CAPACITY}
    figure = capacity_figure(lines, marks, f"random perceptrons, N = {n}")
    place = save(figure, out / "capacity.png")
    if as_json:
        typer.echo(json_format.dumps({"n": n, "rows": lines, "figure": shown(place)}))
        return
    names = {
        "solver": "solver",
        "alpha": "α",
        "solved": "share solved",
        "interval": "95 % interval",
    }
    names |= {"trials": "instances", "seconds": "median seconds"}
    shares = [line | {"interval": f"{line['low']:.2f} to {line['high']:.2f}"} for line in lines]
    print_table(list(names.values()), [[line[name] for name in names] for line in shares])
    plain_console().print(f"figure: {shown(place)}")


@app.command(rich_help_panel=RESEARCH)
def reproduce(
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="fig1 to fig5, or all.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Few repeats, reduced grids: minutes, not hours.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for results; existing results are reused.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; every core if left out.")
    ] = None,
    backend: Workers = "processes",
) -> None:
    """Reproduce a figure of the paper: plot, numbers, settings, claims, and a page with them.

    It can be stopped at any time; the same command resumes.

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
    kept = f", {total - len(left)} of them finished" if len(left) < total else ""
    console.print(f"{names}: {total} parts on {jobs} cores{kept}")
    try:
        totals = {plan.experiment.name: len(plan.units) for plan in plans}
        with when_stopped(STOPPED), bars(totals) as advance:
            results = work.reproduce(
                figure,
                quick=quick,
                out=folder,
                jobs=jobs,
                backend=workers,
                progress=lambda plan, _: advance(plan.experiment.name),
            )
            page = write_report(results, folder / "report.html")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(
            f"no space left for the results in {folder}; free some space and run the same command "
            "again: finished results are saved"
        ) from error
    claims = [
        (result.plan.experiment.name, claim.paper, str(claim.verdict))
        for result in results
        for claim in result.claims
    ]
    print_table(("figure", "the paper says", "here it"), claims)
    console.print(f"page: {shown(page)}")


@app.command(rich_help_panel=RESEARCH)
def infer(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="UAI, DIMACS CNF or WCNF.")],
    task: Annotated[
        Literal["mar", "pr", "map"],
        typer.Option(help="Marginals, log10 of Z, or a best configuration."),
    ] = "mar",
    evidence: Annotated[Path | None, typer.Option(help="Known values, a UAI .evid file.")] = None,
    method: Annotated[
        Literal["auto", "elimination", "messages"],
        typer.Option(help="Exact elimination, or messages and local search."),
    ] = "auto",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the result file here.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Answer a query about a graphical model, in the format of UAI result files.

    Exact by elimination where the graph is narrow enough, else by belief propagation and local
    search; a line on standard error says which.

    Example: `vitrail infer model.uai --task pr --evidence model.uai.evid`
    """
    from vitrail.factors import read_model, result_text
    from vitrail.output import atomic_output
    from vitrail.solvers.inference import infer as answered

    if output is not None:
        check_output(output, model, *([] if evidence is None else [evidence]))
    found = answered(read_model(model, evidence), task, method=method, seed=seed)
    text = result_text(task, found.answer)
    plain_console(stderr=True).print(f"by {found.method}")
    if output is None:
        typer.echo(text, nl=False)
        return
    with atomic_output(output) as file:
        file.write(text.encode("ascii"))


@contextmanager
def bars(totals: Mapping[str, int]) -> Iterator[Callable[[str], None]]:
    """A progress bar per name, and the function that advances it; in files, a line per tenth."""
    console, words = plain_console(stderr=True), TextColumn("{task.description}")
    parts = (words, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*parts, console=console, disable=not console.is_terminal) as bar:
        tasks = {name: bar.add_task(name, total=total) for name, total in totals.items()}

        def advance(name: str) -> None:
            bar.advance(tasks[name])
            done, total = int(bar.tasks[tasks[name]].completed), totals[name]
            if not console.is_terminal and done * 10 // total > (done - 1) * 10 // total:
                console.print(f"{name}: {done:,} of {total:,}")

        yield advance
