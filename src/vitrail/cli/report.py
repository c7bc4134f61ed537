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
    Quiet,
    Target,
    check_output,
    output_option,
    plain_console,
    read_model_and_table,
    shown,
    target_column,
    working,
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
    quiet: Quiet = False,
) -> None:
    """Write one page about a model: accuracy, calibration, important columns, size.

    It shows accuracy with its standard error, AUC and log-loss beside the base rate, calibration,
    the confusion matrix, important columns, shape curves and interactions, the hardest rows with
    reasons, and the size on a device. The page is one file that loads nothing.

    Example: `vitrail report mushroom.safetensors mushroom.csv -o report.html`
    """
    check_output(output, data, model)
    net, table = read_model_and_table(model, data)
    column = target_column(table, target if target is not None else net.record.get("target"))
    page_of(net, table, table[column], output, f"of {shown(data.name)}", quiet=quiet)


def page_of(
    model: Model, table: Table, labels: np.ndarray, output: Path, rows_are: str, *, quiet: bool
) -> None:
    """Measure the model, write the page and print its path."""
    from vitrail.report import write_report

    with working("measuring the model", quiet=quiet):
        write_report(model, table, labels, output, rows_are)
    with when_stopped(f"stopped; the page is in {shown(output)}"):
        plain_console().print(f"report: {shown(output)}")
