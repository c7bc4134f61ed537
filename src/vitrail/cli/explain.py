"""`vitrail explain`: what each column added to the log-odds of a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from vitrail.cli.app import app, when_stopped
from vitrail.cli.options import (
    LOOK,
    DataFile,
    Json,
    ModelFile,
    Quiet,
    Seed,
    check_output,
    output_option,
    plain_console,
    print_table,
    read_model_and_table,
    shown,
    working,
)

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
