"""`vitrail compress` and `export`: a small model of many networks, and models as code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from vitrail.cli.app import app, when_stopped
from vitrail.cli.options import (
    SHIP,
    DataFile,
    FlashLimit,
    ModelFile,
    Quiet,
    Target,
    check_output,
    output_option,
    plain_console,
    print_table,
    read_model_and_table,
    shown,
    target_column,
    working,
)

COLUMNS = ("", "members", "inputs", "bits", "flash", "agreement", "accuracy", "")
LEGEND = """\
members: networks that vote in each net; ←: the model chosen
inputs: bits that the model reads of an encoded row; bits: its one-bit weights
flash: bytes of code and constants on a Cortex-M0+, estimated
agreement: share of rows mixed from pairs of DATA's, answered as by all networks
accuracy: share of rows that it predicts correctly, where DATA has labels"""


@app.command(rich_help_panel=SHIP)
def compress(
    model: ModelFile,
    data: DataFile,
    output: Annotated[Path, output_option("File of the small model.")] = Path("small.safetensors"),
    bits: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of weights; chosen if left out.")
    ] = None,
    flash: FlashLimit = None,
    target: Target = None,
    quiet: Quiet = False,
) -> None:
    """Make a small model that reproduces the predictions of a model's many networks.

    DATA is a table like the training table, or the training table itself; labels are not needed.
    The table printed shows small models of several kinds: their agreement with the model, and their
    accuracy where DATA has labels. The default is the smallest model whose agreement is within 0.01
    of the best; with --flash, the one that agrees best of those that fit. Models that agree less
    often than a smaller one are not shown.

    Example: `vitrail compress mushroom.safetensors mushroom.csv -o small.safetensors`
    """
    with working("loading", quiet=quiet):
        from vitrail.export import flash_bytes
        from vitrail.learning import compress as compress_model

        check_output(output, data, model)
        net, table = read_model_and_table(model, data)
    column, labels = net.record.get("target"), None
    if target is not None or column in table.columns:
        labels = table[target_column(table, target or column)]
        net.labels.encode(labels, table.place)
    with working("trying small models", quiet=quiet):
        small = compress_model(net, table, labels, bits=bits, flash=flash)
    small.save(output)
    with when_stopped(f"stopped; the small model is in {shown(output)}"):
        notes = small.record["compressed"]
        rows = [
            (
                point["way"],
                point["members"],
                point["inputs"],
                point["bits"],
                point["flash"],
                f"{point['agreement']:.4f}",
                "-" if point["accuracy"] is None else f"{point['accuracy']:.4f}",
                "←" if point == notes["chosen"] else "",
            )
            for point in pareto_front(notes["curve"], notes["chosen"])
        ]
        print_table(COLUMNS, rows)
        console = plain_console()
        console.print(LEGEND)
        console.print(
            f"{notes['bits_of_all']:,} bits in {notes['networks']:,} networks became "
            f"{small.networks.numel():,} bits"
        )
        if notes["chosen"]["flash"] is not None:
            console.print(str(flash_bytes(small)))
        console.print(f"model: {shown(output)}")


def pareto_front(curve: list[dict[str, Any]], chosen: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The points that agree more often than all smaller ones, and the one chosen."""
    best = 0.0
    for point in curve:
        if point["agreement"] > best or point == chosen:
            yield point
        best = max(best, point["agreement"])


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
    from vitrail.export import devices
    from vitrail.export.formats import golden_rows

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
        found = devices.costs(net, name, golden_rows(net, table))
        others, notes = _rival_lines(net, table, found, accuracy)
    console = plain_console()
    console.print(" ".join(lead))
    for cost in found:
        print_table(devices.HEAD, devices.table_of(cost), cost.target.title)
        if work := devices.work_of(cost):
            console.print(work)
    if others:
        print_table(devices.RIVAL_HEAD, others, "Compared with other classifiers")
    for line in [*devices.absent(), *notes]:
        console.print(line)
    path = output / f"{name}-report.html"
    return devices.write_costs(path, name, lead, found, others, notes)


def _rival_lines(
    net: Any, table: Any, found: list[Any], accuracy: float | None
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Results of other classifiers on the same rows, the model first; and notes."""
    from vitrail.export.devices import rival_line

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
