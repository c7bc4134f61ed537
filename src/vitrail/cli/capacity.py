"""`vitrail capacity`: success rate of solvers on random perceptrons against α, resumable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from vitrail.cli.app import app, when_stopped
from vitrail.cli.options import Json, Workers, plain_console, shown
from vitrail.cli.reproduce import KEPT

MOST_WEIGHTS = 10**9  # of a perceptron that any memory holds


@app.command()
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
    seed: Annotated[int, typer.Option(help="Seed of the first instance.", min=0)] = 0,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
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
    alphas = sweep.alpha_range(alpha)
    work = sweep.units(n, alphas, names, count, seconds, device, seed)
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
    place = save(
        capacity_figure(lines, marks, f"random perceptrons, N = {n}"), out / "capacity.png"
    )
    if as_json:
        typer.echo(json.dumps({"n": n, "rows": lines, "figure": shown(place)}))
        return
    table = Table("solver", "α", "solved", "of", Column("median seconds", justify="right"))
    for line in lines:
        time = "" if line["seconds"] is None else f"{line['seconds']:.2f}"
        share = f"{float(line['solved'] or 0):.2f}"
        table.add_row(str(line["solver"]), f"{line['alpha']:g}", share, str(line["trials"]), time)
    plain_console().print(table)
    plain_console().print(f"figure: {shown(place)}")
