"""`vitrail fit`: a table in, a model file out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from vitrail.cli.app import app
from vitrail.cli.options import DataFile, Hidden, Seed, Target, hidden_units, number_or_auto
from vitrail.cli.options import target_column as find_target


@app.command()
def fit(
    data: DataFile,
    target: Target = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the model goes.")] = Path(
        "model.safetensors"
    ),
    hidden: Hidden = "auto",
    solver: Annotated[str, typer.Option(help="auto, bp, sbp, s3p, s4p, snmp, ste, …")] = "auto",
    beta: Annotated[str, typer.Option(help="Inverse temperature, `inf`, or `auto`.")] = "auto",
    predictor: Annotated[
        str, typer.Option(help="`best` network, or average over the `posterior`.")
    ] = "best",
    epochs: Annotated[
        int | None, typer.Option(min=1, help="How often every row is used; chosen if left out.")
    ] = None,
    test_size: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of rows held out to test; 0 for none.")
    ] = 0.2,
    seed: Seed = 0,
) -> None:
    """Train a binary network on a table and save it.

    Columns of numbers, words or both are encoded to bits; missing values (empty, `?`, NA) are
    fine. Ctrl-C stops training and keeps the best network so far.

    Example: `vitrail fit mushroom.csv --target class -o mushroom.safetensors`
    """
    from vitrail.data.output import check_writable
    from vitrail.data.tables import read_table
    from vitrail.estimator import BinaryNetClassifier
    from vitrail.solvers import Status

    units, strength = hidden_units(hidden), number_or_auto("beta", beta)
    check_writable(output)
    table = read_table(data)
    column = find_target(table, target)
    labels = table.labels(column)
    rows, held_out = split_rows(labels, test_size, seed)
    features = table.without(column)
    net = BinaryNetClassifier(
        hidden=units,
        solver=solver,
        beta=strength,
        predictor=predictor,  # pyright: ignore[reportArgumentType] (the classifier checks it)
        epochs="auto" if epochs is None else epochs,
        random_state=seed,
        verbose=1,
    )
    net.fit(features.take(rows), labels[rows])
    record = net.model_.record
    record["target"] = column
    record["data"] = data.name
    if table.image_shape is not None:
        record["image_shape"] = list(table.image_shape)
    report = [f"{len(rows)} rows, {net.model_.bits} bits", f"train {record['train_accuracy']:.4f}"]
    if len(held_out):
        right = net.predict(features.take(held_out)) == labels[held_out]
        record["test_accuracy"] = round(float(np.mean(right)), 6)
        record["test_rows"] = len(held_out)
        report.append(f"test {record['test_accuracy']:.4f} on {len(held_out)} rows held out")
    net.model_.save(output)
    console = Console()
    console.print(
        f"{', '.join(report)}, {record['seconds']:.1f} s", highlight=False, soft_wrap=True
    )
    console.print(f"model: {output}", highlight=False, soft_wrap=True)
    if Status.INTERRUPTED in net.status_:
        Console(stderr=True).print(
            f"stopped by hand after {net.n_iter_} steps; the best network so far is in {output}",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(1)


def split_rows(labels: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows held out, ascending: the same share of every class."""
    from vitrail.data.draws import random_order

    place = np.empty(len(labels), np.int64)
    place[random_order(seed, len(labels))] = np.arange(len(labels))
    held = np.zeros(len(labels), bool)
    _, codes = np.unique(labels.astype(str), return_inverse=True)
    for code in range(codes.max(initial=-1) + 1):
        members = np.flatnonzero(codes == code)
        chosen = members[np.argsort(place[members], kind="stable")]
        held[chosen[: int(share * len(members))]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)
