"""`vitrail compress`: a small model that reproduces the predictions of many networks."""

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
