"""`vitrail compare`: several solvers on one data set, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Column, Table

from vitrail import interrupts
from vitrail.cli.app import app
from vitrail.cli.fit import split_rows
from vitrail.cli.options import (
    Hidden,
    Json,
    Seed,
    Target,
    hidden_units,
    plain_console,
    shown,
    target_column,
)

if TYPE_CHECKING:
    from vitrail.data import Dataset

NAMED = "glass[:NxM], stained-glass[:NxM], digits[:A-B], mnist:A-B"


@app.command()
def compare(
    data: Annotated[str, typer.Argument(metavar="DATA", help=f"A file, or one of: {NAMED}.")],
    solvers: Annotated[str, typer.Option(help="Names with commas between.")] = "sbp,ste",
    target: Target = None,
    hidden: Hidden = "0",
    epochs: Annotated[
        int | None, typer.Option(min=1, help="For every solver alike; chosen if left out.")
    ] = None,
    test_size: Annotated[float, typer.Option(min=0.0, max=0.9, help="Of files.")] = 0.2,
    seed: Seed = 0,
    as_json: Json = False,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the training curves to this file.")
    ] = None,
) -> None:
    """Train the same net by several solvers and print how they did.

    Example: `vitrail compare mnist:3-5 --solvers sbp,ste --figure curves.png`
    """
    from vitrail.data.output import check_writable
    from vitrail.estimator import BinaryNetClassifier
    from vitrail.fitting import canonical

    if figure is not None:
        check_writable(figure)
    units = hidden_units(hidden)
    named = _named(data, seed)
    rows, labels, test_rows, test_labels = named or _file(data, target, test_size, seed)
    results, curves = [], {}
    names = [name.strip() for name in solvers.split(",")]
    for name in names:
        canonical(name)
    stopped = None
    for name in names:
        net = BinaryNetClassifier(
            hidden=units,
            solver=name,
            predictor="best",
            bias="auto" if named is None else 0,  # the nets of the paper have none
            epochs="auto" if epochs is None else epochs,
            random_state=seed,
            verbose=1,
        )
        try:
            with (
                interrupts.whole()
            ):  # what a solver has found when it is stopped compares to nothing
                net.fit(rows, labels)
        except KeyboardInterrupt:
            stopped = f"stopped in {name}, which is not shown"
            break
        accuracy = net.history_["accuracy"].mean(1).numpy()
        record = net.model_.record
        results.append(
            {
                "solver": name,
                "train_best": record["train_accuracy"],
                "train_last": round(float(accuracy[-1]), 6),
                "test": round(float(net.score(test_rows, test_labels)), 6)
                if len(test_labels)
                else None,
                "seconds": record["seconds"],
                "evaluations": record["evaluations"],
                "bits": net.model_.bits,
            }
        )
        curves[name] = (np.linspace(0, net.plan_.epochs, len(accuracy)), accuracy)
    if as_json:
        typer.echo(json.dumps({"data": data, "seed": seed, "results": results}))
    elif results:
        _print(data, results)
    if stopped is not None:
        raise KeyboardInterrupt(stopped)
    if figure is not None:
        from vitrail.plots import curves_figure, save

        save(curves_figure(curves, data), figure)
        plain_console(stderr=True).print(f"training curves: {shown(figure)}")


def _print(data: str, results: list[dict[str, Any]]) -> None:
    table = Table(Column("solver", no_wrap=True), title=data, title_justify="left")
    for name in list(results[0])[1:]:
        table.add_column(name.replace("_", " "), justify="right")
    for result in results:
        _, *values = result.values()
        table.add_row(result["solver"], *("-" if value is None else str(value) for value in values))
    plain_console().print(table)


def _named(name: str, seed: int) -> tuple[Any, Any, Any, Any] | None:
    """A data set of the package by its name; None if the name is not one of these."""
    from vitrail.data import digits, glass, mnist, stained_glass

    kind, _, detail = name.partition(":")
    try:
        if kind in ("glass", "stained-glass"):
            inputs, examples = (int(part) for part in (detail or "31x35").split("x"))
            maker = glass if kind == "glass" else stained_glass
            return _arrays(maker(examples, inputs, seed, num_test=1000 * (maker is not glass)))
        if kind in ("digits", "mnist"):
            first, second = (int(part) for part in (detail or "3-5").split("-"))
            pair = (first, second)
            found = digits(150, pair, seed) if kind == "digits" else mnist(pair)
            return _arrays(found)
    except ValueError as error:
        raise ValueError(f"cannot read {name!r} as one of {NAMED}: {error}") from None
    return None


def _arrays(found: Dataset) -> tuple[Any, Any, Any, Any]:
    labels, test = np.array(found.classes)[found.labels], np.array(found.classes)[found.test_labels]
    return found.inputs.numpy(), labels, found.test_inputs.numpy(), test


def _file(path: str, target: str | None, test_size: float, seed: int) -> tuple[Any, Any, Any, Any]:
    from vitrail.data.tables import read_table

    table = read_table(path)
    column = target_column(table, target)
    labels, features = table.labels(column), table.without(column)
    rows, held_out = split_rows(labels, test_size, seed)
    return features.take(rows), labels[rows], features.take(held_out), labels[held_out]
