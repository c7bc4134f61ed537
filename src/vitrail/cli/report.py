"""`vitrail report`: one page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from vitrail.cli.app import app, when_stopped
from vitrail.cli.options import (
    LOOK,
    DataFile,
    ModelFile,
    Target,
    check_output,
    output_option,
    plain_console,
    read_model_and_table,
    shown,
    target_column,
)

if TYPE_CHECKING:
    from vitrail.model import Model
    from vitrail.tables.table import Table


@app.command(rich_help_panel=LOOK)
def report(
    model: ModelFile,
    data: DataFile,
    target: Target = None,
    output: Annotated[Path, output_option("File of the page.")] = Path("report.html"),
) -> None:
    """Write one page about a model: accuracy, calibration, important columns, size.

    It shows accuracy with its standard error, calibration, the confusion matrix, important columns,
    the hardest rows, and sizes on devices. The page is one file without scripts.

    Example: `vitrail report mushroom.safetensors mushroom.csv -o report.html`
    """
    check_output(output, data, model)
    net, table = read_model_and_table(model, data)
    column = target_column(table, target if target is not None else net.record.get("target"))
    page_of(net, table, table[column], output, f"of {shown(data.name)}")


def page_of(model: Model, table: Table, labels: np.ndarray, output: Path, rows_are: str) -> None:
    """Measure, write, and say where the page is."""
    from vitrail.report import write_report

    write_report(model, table, labels, output, rows_are)
    with when_stopped(f"stopped; the page is in {shown(output)}"):
        plain_console().print(f"report: {shown(output)}")
