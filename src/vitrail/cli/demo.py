"""`vitrail demo`: three short examples, about twenty seconds once kernels are compiled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.table import Column, Table

from vitrail.cli.app import app
from vitrail.cli.options import LEARN, Seed, check_figure, output_option, plain_console, shown

if TYPE_CHECKING:
    from vitrail.lab.demo import DemoResult

NEXT = "vitrail fit YOUR.csv --target COLUMN --report report.html"


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
    console.print(table_of(found))
    watch = found.stopwatch
    console.print(
        f"{watch.work:.1f} s of work, and {watch.compiling:.1f} s to load kernels (compiled once, "
        "then cached)"
    )
    console.print(f"figure: {shown(save(figure(found), output))}")
    console.print(f"next: {NEXT}")


def table_of(found: DemoResult) -> Table:
    """One row per method, grouped by problem."""
    from vitrail.lab.demo import SHOTS

    table = Table(Column("", no_wrap=True), pad_edge=False)
    for name in ("result", "calibration\nerror", "bits", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row(f"ten digits, {SHOTS} images each", style="bold")
    for one in found.digits:
        right = f"{100 * one.accuracy:.1f} % right"
        cells = (right, f"{one.calibration_error:.2f}", f"{one.bits:,}", f"{one.seconds:.1f}")
        table.add_row(f"  {one.name}", *cells)
    table.add_section()
    table.add_row("MNIST 3-vs-5, one unit", style="bold")
    right, bits = f"{100 * found.pair_accuracy:.1f} % right", f"{found.pair.bits:,}"
    table.add_row("  messages", right, "", bits, f"{found.pair_seconds:.1f}")
    table.add_section()
    table.add_row(f"random, {found.searches[0].constraints} constraints", style="bold")
    for search in found.searches:
        result = f"{search.unsatisfied} violated" if search.unsatisfied else "solved"
        table.add_row(f"  {search.name}", result, "", f"{search.bits:,}", f"{search.seconds:.1f}")
    return table
