"""`vitrail export`: a model as code for a device, a browser or another runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vitrail.cli.app import app, when_stopped
from vitrail.cli.options import (
    SHIP,
    ModelFile,
    output_option,
    plain_console,
    print_table,
    shown,
    working,
)


@app.command(rich_help_panel=SHIP)
def export(
    model: ModelFile,
    to: Annotated[str, typer.Option(help="c, js, onnx or numpy.")] = "c",
    output: Annotated[Path, output_option("A folder for the files.")] = Path("."),
    name: Annotated[str, typer.Option(help="Name of the files, and prefix in C.")] = "tiny",
    layout: Annotated[
        str, typer.Option(help="Form of C: header, arduino, platformio, zephyr or firmware.")
    ] = "header",
    rows: Annotated[
        Path | None, typer.Option(help="A table; the code is checked with its first rows.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Measure bytes, stack and work on devices.")
    ] = False,
) -> None:
    """Write a model with its encoder as code that gives the same answers, digit for digit.

    Example: `vitrail export mushroom.safetensors --to c -o firmware --name mushroom`
    """
    with working("exporting"):
        from vitrail.export import export_model, flash_bytes
        from vitrail.export.flash import DEVICE_FLASH
        from vitrail.model import load_model
        from vitrail.tables.table import read_table

        net = load_model(model)
        table = None if rows is None else read_table(rows)
        paths = export_model(net, to, output, name=name, layout=layout, rows=table)
    console = plain_console(stderr=True)
    if report:
        paths.append(_reported(net, name, output, table))
    with when_stopped("stopped; the files are written"):
        for path in paths:
            console.print(f"wrote {shown(path)} ({path.stat().st_size:,} bytes)")
        if to == "c":
            size = flash_bytes(net)
            console.print(str(size))
            if size.flash > DEVICE_FLASH:
                console.print(
                    f"warning: few devices have that much flash; `vitrail compress {shown(model)} "
                    f"DATA --flash {DEVICE_FLASH}` makes a model that fits"
                )


def _reported(net: Any, name: str, output: Path, table: Any) -> Path:
    """Print the costs on devices and write them to a page."""
    from vitrail.export import report as costs
    from vitrail.export.formats import golden_rows
    from vitrail.output import atomic_output

    accuracy, target = None, net.record.get("target")
    size, networks = net.networks.numel(), net.networks[..., 0].numel()
    lead = [f"{size:,} one-bit weights in {networks:,} networks."]
    if table is not None and len(table) and target in table.columns:
        right = net.answers(table).numbers.numpy() == net.labels.encode(table[target])
        accuracy = float(right.mean())
        lead.append(f"{right.sum():,} of {len(right):,} rows predicted correctly.")
    for part in ("test", "train"):
        if (score := net.record.get(f"{part}_accuracy")) is not None:
            lead.append(f"{part} accuracy {score:.4f} when trained.".capitalize())
    with working("measuring on devices"):
        found = costs.costs(net, name, golden_rows(net, table))
        others, notes = _rival_lines(net, table, found, accuracy)
    console = plain_console()
    console.print(" ".join(lead))
    for cost in found:
        print_table(costs.HEAD, costs.table_of(cost), cost.target.title)
        if work := costs.work_of(cost):
            console.print(work)
    if others:
        print_table(costs.RIVAL_HEAD, others, "Compared with other classifiers")
    for line in [*costs.absent(), *notes]:
        console.print(line)
    path = output / f"{name}-report.html"
    with atomic_output(path) as stream:
        stream.write(costs.report_page(name, lead, found, others, notes).encode())
    return path


def _rival_lines(
    net: Any, table: Any, found: list[Any], accuracy: float | None
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Results of other classifiers on the same rows, the model first; and notes."""
    from vitrail.export.report import rival_line

    own = next((cost for cost in found if cost.target.name == "m0plus"), None)
    if own is None:
        return [], []
    if accuracy is None:
        return [], ["other classifiers are compared where --rows has labels"]
    from vitrail.extras import MissingPackageError
    from vitrail.lab.rivals import rival_costs

    names = [str(name) for name in net.encoder.all_names]
    try:
        rivals = rival_costs({name: table[name] for name in names}, table[net.record["target"]])
    except MissingPackageError as error:
        return [], [str(error)]
    lines = [rival_line("vitrail", accuracy, own)]
    lines += [rival_line(one.name, one.accuracy, one.cost) for one in rivals]
    note = "other classifiers have the accuracy of two-fold cross-validation on these rows"
    return lines, [f"{note}; the model may have been trained on them"]
