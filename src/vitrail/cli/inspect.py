"""`vitrail info`: the contents of a model file."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from vitrail import __version__
from vitrail.cli.app import app
from vitrail.cli.options import LOOK, Json, cell, mixing_text, plain_console

if TYPE_CHECKING:
    from vitrail.model import Model

MOST_PICTURES = 4


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
    table = Table(show_header=False, box=None)
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
