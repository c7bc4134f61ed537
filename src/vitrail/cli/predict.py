"""`vitrail predict` and `vitrail evaluate`: a model and a table, a batch of rows at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from vitrail.cli.app import app
from vitrail.cli.options import (
    LOOK,
    DataFile,
    Json,
    ModelFile,
    Target,
    cell,
    check_apart,
    count_rows,
    output_option,
    plain_console,
    print_table,
    target_column,
)

PREDICTION = "prediction"


@app.command(rich_help_panel=LOOK)
def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[Path, output_option("CSV, TSV or Parquet; `-` is standard output.")] = Path(
        "-"
    ),
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class, and `uncertainty`.")
    ] = False,
    abstain: Annotated[
        float | None,
        typer.Option(
            metavar="RATE", help="Leave at most this share of rows, of lowest confidence, empty."
        ),
    ] = None,
) -> None:
    """Write the input's rows with a last column `prediction`.

    Columns are matched by name; others, such as labels, are copied. Files of any length are read
    and written in batches. Probabilities are calibrated; `uncertainty` is the share of votes
    against the answer. The confidence thresholds of --abstain come from held-out rows. Rows of
    equal confidence are left empty together, so the share may be smaller; it is printed.

    Example: `vitrail predict mushroom.safetensors new.csv -o answers.csv --proba`
    """
    from vitrail.model import load_model
    from vitrail.model.voting import ONE
    from vitrail.tables.table import Table, iter_table
    from vitrail.tables.writing import check_table_output, write_table

    net = load_model(model)
    check_table_output(output)
    check_apart(output, data, model)
    limit = None if abstain is None else net.abstention(abstain)
    rows = left_out = 0

    def answered() -> Iterator[Table]:
        nonlocal rows, left_out
        for batch in count_rows(iter_table(data), "predicting"):
            answers = net.answers(batch)
            columns: dict[str, Any] = {}
            if proba:
                names = [f"probability_{label}" for label in net.labels.classes]
                columns |= dict(zip(names, answers.probabilities.numpy().T / ONE, strict=True))
                columns["uncertainty"] = answers.against.numpy() / ONE
            labels = net.labels.decode(answers.numbers.numpy())
            if limit is not None:
                kept = (answers.confidence >= limit.threshold).numpy()
                labels = [label if keep else None for label, keep in zip(labels, kept, strict=True)]
                rows, left_out = rows + len(kept), left_out + int((~kept).sum())
            columns[PREDICTION] = labels
            yield batch.with_columns(columns)

    write_table(output, answered())
    if limit is not None and abstain is not None:
        typer.echo(
            f"left {left_out:,} of {rows:,} rows empty, whose answers have a probability below "
            f"{limit.threshold / ONE:.4f}; that was at most {limit.rate:.0%} of the rows held out "
            f"when fitting, the most that ties allow within {100 * abstain:g}%",
            err=True,
        )


@app.command(rich_help_panel=LOOK)
def evaluate(
    model: ModelFile, data: DataFile, target: Target = None, as_json: Json = False
) -> None:
    """Compare a model's predictions with the labels of a table.

    Example: `vitrail evaluate mushroom.safetensors mushroom.csv`
    """
    from vitrail.model import load_model
    from vitrail.scores import calibration_error, coverage, log_loss
    from vitrail.tables.table import iter_table

    net = load_model(model)
    target = target if target is not None else net.record.get("target")
    counts = np.zeros((net.num_classes, net.num_classes), np.int64)
    found, labels = [], []
    for batch in count_rows(iter_table(data), "evaluating"):
        column = batch[target_column(batch, target)]
        encoded = net.labels.encode(column, place=batch.place) if len(batch) else []
        found.append(net.probabilities(batch))
        labels.append(np.asarray(encoded, np.int64))
    probabilities, truth = np.concatenate(found), np.concatenate(labels)
    np.add.at(counts, (truth, probabilities.argmax(1)), 1)
    if not counts.sum():
        raise ValueError(f"{data} has no rows to evaluate on; give a table with labels")
    confidence, right = probabilities.max(1), probabilities.argmax(1) == truth
    own = probabilities[np.arange(len(truth)), truth]
    scores = {
        "rows": int(counts.sum()),
        "accuracy": round(float(counts.trace() / counts.sum()), 6),
        "log_loss": round(log_loss(own), 6),
        "calibration_error": round(calibration_error(confidence, right), 6),
    }
    covered = [
        {"answered": tenths / 10, "accuracy": round(accuracy, 6), "rows": rows}
        for tenths, (rows, accuracy) in enumerate(coverage(confidence, right, 10), 1)
    ][::-1]
    names = [str(label) for label in net.labels.classes]
    if as_json:
        more = {"classes": names, "confusion": counts.tolist(), "coverage": covered}
        typer.echo(json.dumps({**scores, **more}))
        return
    parts = (f"{name.replace('_', ' ')} {cell(value)}" for name, value in scores.items())
    plain_console().print(", ".join(parts))
    matrix = [(name, *row) for name, row in zip(names, counts.tolist(), strict=True)]
    print_table(("label", *(f"predicted {name}" for name in names)), matrix)
    coverage_rows = [
        (f"{part['answered']:.0%}", f"{part['accuracy']:.4f}", part["rows"]) for part in covered
    ]
    print_table(("answered", "accuracy", "rows"), coverage_rows)
