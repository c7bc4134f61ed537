"""`vitrail demo`: a first look in under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from vitrail.cli.app import app
from vitrail.cli.options import plain_console, shown


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Same seed, same result.", min=0)] = 0,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the figure goes (PNG, SVG or PDF).")
    ] = Path("vitrail-demo.png"),
) -> None:
    """Train 196 one-bit weights on MNIST 3-vs-5: belief propagation next to straight-through.

    Example: `vitrail demo --seed 1`
    """
    from vitrail.data.output import check_writable
    from vitrail.demo import figure, race
    from vitrail.plots import save

    check_writable(output)
    console = plain_console()
    console.print("MNIST 3-vs-5 at 14×14, one unit, 196 weights of one bit each, 6 epochs")
    results = race(seed)
    table = Table(Column("solver", no_wrap=True))
    for column in ("train best", "train last", "test best", "test last", "seconds", "bits"):
        table.add_column(column, justify="right")
    for result in results:
        numbers = (result.train_best, result.train_last, result.test_best, result.test_last)
        table.add_row(
            result.name,
            *(f"{number:.4f}" for number in numbers),
            f"{result.seconds:.1f}",
            str(result.bits),
        )
    console.print(table)
    where = save(figure(results), output)
    console.print(f"training curves and weights: {shown(where)}")
