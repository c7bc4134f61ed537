"""`vitrail bench`: how fast messages are made, and how good they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vitrail.cli.app import app
from vitrail.cli.options import check_figure


@app.command()
def bench(
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    json: Annotated[Path | None, typer.Option(help="Write the rows to this file.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw them to this file.")] = None,
    share: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="Part of the factors, for a quick look.")
    ] = 1.0,
) -> None:
    """Time every update and survey step against the paper's formulation, with message errors.

    Example: `vitrail bench --share 0.05 --json bench.json`
    """
    from vitrail.lab.bench import run_bench
    from vitrail.output import check_writable

    if device not in ("cpu", "cuda"):
        raise ValueError(f"device is cpu or cuda, got {device!r}")
    if json is not None:
        check_writable(json)
    if figure is not None:
        check_figure(figure)
    run_bench(device, json=json, figure=figure, share=share)
