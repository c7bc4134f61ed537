"""`vitrail info`, `explain` and `report`: what a model holds and why it answers so."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table as TextTable

from vitrail import __version__
from vitrail.cli.app import app, when_stopped
from vitrail.cli.options import (
    LOOK,
    DataFile,
    Json,
    ModelFile,
    Quiet,
    Seed,
    Target,
    cell,
    check_output,
    mixing_text,
    output_option,
    plain_console,
    print_table,
    read_model_and_table,
    shown,
    target_column,
    working,
)

if TYPE_CHECKING:
    from vitrail.model import Model
    from vitrail.tables.table import Table

MOST_PICTURES = 4
MOST_PRINTED = 20  # rows; the page and JSON have all


@app.command(rich_help_panel=LOOK)
def explain(
    model: ModelFile,
    rows: DataFile,
    output: Annotated[
        Path | None, output_option("Also write a page with shape curves and interactions.")
    ] = None,
    background: Annotated[
        Path | None, typer.Option(help="Table to compare with, such as the training table.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show for each row what its columns added to the log-odds, largest first.

    The class is the second of two; with more classes it is the predicted one. Reasons add up to the
    log-odds minus their mean over background rows. They are exact where the score is linear in the
    bits, as in many compressed models; otherwise they are sampled Shapley values with standard
    errors. Without --background every column is drawn uniformly from the values that the model
    distinguishes.

    Example: `vitrail explain mushroom.safetensors new.csv -o reasons.html`
    """
    with working("loading", quiet=quiet):
        from vitrail.model import explain as explain_rows
        from vitrail.model.explanation import signed
        from vitrail.tables.table import read_table

        if output is not None:
            check_output(output, rows, model)
        net, table = read_model_and_table(model, rows)
        others = None if background is None else read_table(background)
    with working("explaining", quiet=quiet):
        found = explain_rows(net, table, background=others, seed=seed)
    if output is not None:
        from vitrail.report.page import write_explanation

        with working("writing the page", quiet=quiet):
            write_explanation(found, net, table, output, shown(rows.name))
    with when_stopped("stopped"):
        if as_json:
            places = [table.place(row) for row in range(len(table))]
            typer.echo(json.dumps({"rows": places, **found.to_dict()}, ensure_ascii=False))
            return
        two = net.num_classes == 2
        what = f"log-odds of {found.classes[0]}" if two else "log-odds"
        lines = [
            (
                table.place(row),
                *[str(found.classes[row])] * (not two),
                signed(found.log_odds[row]),
                found.words(row),
            )
            for row in range(min(len(table), MOST_PRINTED))
        ]
        print_table(("row", *["answer"] * (not two), what, "largest reasons"), lines)
        console = plain_console()
        console.print(
            f"{what}: above 0 the answer is {found.classes[0]}; base {signed(found.base[0])} + "
            "the reasons of all columns"
            if two
            else "log-odds: of the answer; its base + the reasons of all columns"
        )
        if not found.exact:
            console.print("±: standard error of a sampled reason")
        if len(table) > MOST_PRINTED:
            more = len(table) - MOST_PRINTED
            console.print(f"{more:,} more rows; --json and --output have them all")
        console.print("most important: " + ", ".join(found.columns[i] for i in found.order[:6]))
        pairs = [f"{' × '.join(one.columns)} {one.strength:.2f}" for one in found.interactions[:3]]
        if pairs:
            console.print(f"strongest interactions, in log-odds: {', '.join(pairs)}")
        ways = {1: "rising", -1: "falling"}
        orders = [f"{name} {ways[direction]}" for name, direction in net.directions.items()]
        if orders:
            console.print(f"monotone columns: {', '.join(orders)}")
        if output is not None:
            console.print(f"page: {shown(output)}")


@app.command(rich_help_panel=LOOK)
def info(
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="A file that `fit` wrote.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a model's layers, bits, bytes and scores, and its weights where inputs are pixels.

    Without a model, show versions of installed packages, for bug reports.

    Example: `vitrail info mushroom.safetensors`
    """
    from vitrail.model import load_model
    from vitrail.tables.columns import column_lines

    if model is None:
        _print(versions(), as_json)
        return
    net = load_model(model)
    hidden = net.program.hidden
    sizes = [net.program.num_inputs, *(hidden or ()), net.program.num_outputs]
    layers = [f"{before}×{after}" for before, after in pairwise(sizes)]
    facts: dict[str, Any] = {
        "layers": layers if hidden is not None else "user-defined module",
        "nets": len(net.best),
        "bits": net.bits,
        "bytes_of_weights": -(-net.bits // 8),
        "bytes_of_file": model.stat().st_size,
        **_device_bytes(net),
        "networks_averaged": len(net.networks),
        "inputs": len(net.encoder.bit_names),
        "inputs_read_as": "0/1" if net.coding == "binary" else "-1/+1",
        "constant_inputs": net.bias,
        "classes": [str(label) for label in net.labels.classes],
    }
    accounts = getattr(net.encoder, "account", ())
    if as_json:
        columns = [asdict(account) for account in accounts]
        _print({**facts, "columns": columns, "record": net.record}, as_json)
        return
    known = ("train_accuracy", "test_accuracy", "rows", "seconds", "settings", "mixing", "data")
    facts |= {name: net.record[name] for name in known if name in net.record}
    if "spread" in facts.get("mixing", {}):
        facts["mixing"] = mixing_text(facts["mixing"])
    _print(facts, as_json)
    console = plain_console()
    for line in column_lines(accounts):
        console.print(line)
    shape = net.image_shape
    if shape and len(net.encoder.bit_names) == shape[0] * shape[1] and hidden is not None:
        units = net.best[:, : sizes[0] * sizes[1]].reshape(-1, sizes[0])
        for unit in units[:MOST_PICTURES]:
            console.print(picture(unit[: shape[0] * shape[1]].tolist(), shape[1]))


def _device_bytes(net: Model) -> dict[str, Any]:
    """Flash and RAM on a device, where the model can be exported to C."""
    from vitrail.export import ExportError, flash_bytes

    try:
        size = flash_bytes(net)
    except ExportError:
        return {}
    how = "linked" if size.measured else "estimated"
    return {
        "bytes_of_flash": size.flash,
        "bytes_of_ram": size.ram,
        "flash_and_ram": f"of a Cortex-M0+, {how}",
    }


def versions() -> dict[str, Any]:
    """Facts about the machine for a bug report."""
    found = {"vitrail": __version__, "python": platform.python_version()}
    for name in ("torch", "numpy", "numba", "scikit-learn", "pyarrow", "safetensors", "triton"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return {**found, "system": platform.platform(), "cores": os.cpu_count(), "gpu": gpu}


def _print(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    table = TextTable(show_header=False, box=None)
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), _text(value))
    plain_console().print(table)


def picture(bits: list[bool], width: int) -> str:
    """Rows of an image of weights: a block for +1, a dot for −1, each two characters wide."""
    cells = ["██" if bit else " ·" for bit in bits]
    rows = ["".join(cells[first : first + width]) for first in range(0, len(cells), width)]
    return "\n".join([*rows, ""])


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value[:12])) + (" …" if len(value) > 12 else "")
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return cell(value)


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
    reasons, and sizes on devices. The page is one file that loads nothing.

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
