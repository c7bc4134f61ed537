"""`vitrail export`: a model as code for a device, a browser or another runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from vitrail.cli.app import app
from vitrail.cli.options import ModelFile


@app.command()
def export(
    model: ModelFile,
    to: Annotated[str, typer.Option(help="c, js, onnx or numpy.")] = "c",
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder for the files.")] = Path(
        "."
    ),
    name: Annotated[str, typer.Option(help="Of the files, and in C of all names.")] = "tiny",
    layout: Annotated[
        str, typer.Option(help="Of C: header, arduino, platformio or zephyr.")
    ] = "header",
    rows: Annotated[
        Path | None,
        typer.Option(help="A table whose first rows the exported code is checked with."),
    ] = None,
) -> None:
    """Write a model with its encoder as code that gives the same answers, digit for digit.

    Example: `vitrail export mushroom.safetensors --to c -o firmware --name mushroom`
    """
    from vitrail.data.tables import read_table
    from vitrail.export import export_model
    from vitrail.model import load_model

    net = load_model(model)
    table = None if rows is None else read_table(rows)
    paths = export_model(net, to, output, name=name, layout=layout, rows=table)
    console = Console(stderr=True)
    for path in paths:
        console.print(f"wrote {path} ({path.stat().st_size:,} bytes)", highlight=False)
