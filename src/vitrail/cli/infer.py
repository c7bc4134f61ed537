"""`vitrail infer`: inference on a graphical model in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from vitrail.cli.app import app
from vitrail.cli.options import RESEARCH, Seed, check_output, plain_console


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
