"""`vitrail info`: what a model file holds."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from vitrail.cli.app import app
from vitrail.cli.options import Json, ModelFile

MOST_PICTURES = 4


@app.command()
def info(model: ModelFile, as_json: Json = False) -> None:
    """Show a model's layers, bits, bytes and scores, and its weights where inputs are pixels.

    Example: `vitrail info mushroom.safetensors`
    """
    from vitrail.model import load_model

    net = load_model(model)
    hidden = net.program.hidden
    sizes = [net.program.num_inputs, *(hidden or ()), net.program.num_outputs]
    layers = [f"{before}×{after}" for before, after in pairwise(sizes)]
    facts: dict[str, Any] = {
        "layers": layers if hidden is not None else "a module of the user's own",
        "nets": len(net.best),
        "bits": net.bits,
        "bytes_of_weights": -(-net.bits // 8),
        "bytes_of_file": model.stat().st_size,
        "networks_averaged": len(net.networks),
        "inputs": len(net.encoder.bit_names),
        "inputs_read_as": "0/1" if net.coding == "binary" else "-1/+1",
        "constant_inputs": net.bias,
        "classes": [str(label) for label in net.labels.classes],
        "record": net.record,
    }
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    console = Console()
    table = Table(show_header=False, box=None)
    for name, value in facts.items():
        if name == "record":
            continue
        table.add_row(name.replace("_", " "), _text(value))
    for name in ("train_accuracy", "test_accuracy", "rows", "seconds", "settings", "data"):
        if name in net.record:
            table.add_row(name.replace("_", " "), _text(net.record[name]))
    console.print(table)
    shape = net.record.get("image_shape")
    if shape and len(net.encoder.bit_names) == shape[0] * shape[1] and hidden is not None:
        units = net.best[:, : sizes[0] * sizes[1]].reshape(-1, sizes[0])
        for unit in units[:MOST_PICTURES]:
            console.print(picture(unit[: shape[0] * shape[1]].tolist(), shape[1]), highlight=False)


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
    return str(value)
