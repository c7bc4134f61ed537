"""`vitrail fit`: a table in, a model file out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from vitrail import interrupts
from vitrail.cli.app import app, when_stopped
from vitrail.cli.options import (
    LEARN,
    SOLVER_NAMES,
    DataFile,
    Epochs,
    FlashLimit,
    Hidden,
    Jobs,
    Quiet,
    Seed,
    Target,
    TestSize,
    Workers,
    byte_count,
    check_output,
    column_order,
    hidden_units,
    mixing_text,
    number_or_auto,
    output_option,
    plain_console,
    rows_per_second,
    shown,
    working,
)
from vitrail.cli.options import target_column as find_target

if TYPE_CHECKING:
    from torch import nn

    from vitrail.estimator import BinaryNetClassifier
    from vitrail.learning.shapes import RankedShapes
    from vitrail.model import Model
    from vitrail.tables.table import Table


NETS = ("auto", "mlp", "conv", "small-conv")
GRAY_BITS = 3  # per pixel of gray images
STREAMED = {"data", "target", "output", "hidden", "epochs", "memory", "seed", "quiet"}  # options


@app.command(rich_help_panel=LEARN)
def fit(
    context: typer.Context,
    data: DataFile,
    target: Target = None,
    output: Annotated[Path, output_option("File of the model.")] = Path("model.safetensors"),
    hidden: Hidden = "auto",
    solver: Annotated[str, typer.Option(help=f"The learner: auto, {SOLVER_NAMES}.")] = "auto",
    beta: Annotated[str, typer.Option(help="Inverse temperature, `inf`, or `auto`.")] = "auto",
    predictor: Annotated[
        str, typer.Option(help="`best` network, average over the `posterior`, or `auto`.")
    ] = "auto",
    net: Annotated[
        str,
        typer.Option(
            help="`mlp`, or for images `conv`, two convolutions and a linear layer, or "
            "`small-conv` with 4-bit activations, for microcontrollers; `auto` is `small-conv` for "
            "images with --flash, else `mlp`."
        ),
    ] = "auto",
    epochs: Epochs = None,
    effort: Annotated[
        str, typer.Option(help="Work of chains: `quick`, `normal`, `best`, or `auto`.")
    ] = "auto",
    monotonic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=±1",
            help="Growth of the column only raises (`age=1`) or lowers (`age=-1`) the probability "
            "of the second of two classes; may be repeated.",
        ),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="Stream the rows within this memory, such as `4GiB`.")
    ] = None,
    flash: FlashLimit = None,
    test_size: TestSize = 0.2,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Save training to these files, and resume from them.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page about the model, as `report` does.")
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    backend: Workers = "processes",
    quiet: Quiet = False,
) -> None:
    """Train binary networks on a table and save them as a model.

    Columns of numbers, words or both are encoded to bits; values may be missing (empty, `?`, NA).
    By default many networks are drawn by Metropolis chains and vote, with probabilities calibrated
    on held-out rows. `--solver` names another learner; an option that it does not take is refused.
    Ctrl-C stops training and saves the best result so far. --jobs has an effect where several nets
    are compared on held-out rows, not by default. With --flash, the networks are compressed to the
    model within that many bytes that agrees with them best, as `compress` does; for images, shapes
    of small convolutional nets of that size are compared on held-out rows, and the best is trained.
    Started by torchrun, several processes train together, with the same result.

    Example: `vitrail fit mushroom.csv --target class -o mushroom.safetensors`
    """
    with working("loading", quiet=quiet):
        from vitrail import ranks
        from vitrail.engines import checked_backend, workers
        from vitrail.estimator import BinaryNetClassifier
        from vitrail.export import flash_bytes
        from vitrail.learning.examples import split_rows
        from vitrail.learning.shapes import shapes_in_flash
        from vitrail.learning.table import canonical
        from vitrail.solvers import Status
        from vitrail.tables.table import read_table

    units, strength = hidden_units(hidden), number_or_auto("beta", beta)
    order = dict(map(column_order, monotonic or []))
    canonical(solver)
    if net not in NETS:
        raise ValueError(f"unknown net {net!r}; choose one of: {', '.join(NETS)}")
    for path in (output, report):
        if path is not None:
            check_output(path, data)
    if report is not None and report.resolve() == output.resolve():
        raise ValueError(
            f"{shown(report)} is the model's file; give another file for the page with --report"
        )
    if checkpoint is not None and not checkpoint.parent.is_dir():
        raise ValueError(
            f"the folder of the checkpoint {shown(checkpoint)} does not exist; make it or choose "
            "another one"
        )
    if str(data) == "-" and ranks.launched_by_torchrun():
        raise ValueError("every rank reads the table, but `-` can be read only once; give a file")
    if memory is not None:
        if str(data) == "-":
            raise ValueError(
                "--memory reads the rows more than once, but `-` can be read only once; give a file"
            )
        given = [
            option.opts[0]
            for option in context.command.params
            if option.name not in STREAMED
            and getattr(context.get_parameter_source(option.name or ""), "name", "") != "DEFAULT"
        ]
        if given:
            raise ValueError(
                f"--memory streams the rows and does not take {', '.join(given)}; leave that out"
            )
        with when_stopped("stopped; nothing is saved"):
            _stream(data, target, output, units, epochs or 1, byte_count(memory), seed, quiet)
        return
    with when_stopped("stopped; nothing is saved"), interrupts.allow_partial():
        with working("reading", quiet=quiet):
            table = read_table(data)
        column = find_target(table, target)
        labels = table.labels(column)
        rows, held_out = split_rows(labels, test_size, seed)
        features = table.without(column)
        known, answers = features.take(rows), labels[rows]
        shapes = None
        if flash is not None:
            one = predictor != "posterior" and solver in ("auto", "ste")
            few_bits = net == "small-conv" or (net == "auto" and units == "auto")
            if features.image_shape is not None and few_bits and one:
                with working("comparing shapes of nets", quiet=quiet):
                    shapes = shapes_in_flash(known, answers, flash, epochs=epochs, seed=seed)
            elif predictor == "best":
                raise ValueError("--flash compresses many networks; leave out --predictor best")
            else:
                predictor = "posterior"
        classifier = BinaryNetClassifier(
            hidden=units,
            module=None if net in ("auto", "mlp") else convolutions(net, features, labels),
            solver=solver,
            beta=strength,
            predictor=predictor,  # pyright: ignore[reportArgumentType] (the classifier checks it)
            epochs="auto" if epochs is None else epochs,
            effort=effort,  # pyright: ignore[reportArgumentType] (the classifier checks it)
            monotonic_cst=order or None,
            random_state=seed,
            verbose=0 if quiet else 2,
            checkpoint=checkpoint,
        )
        try:
            with workers(checked_backend(backend), jobs):
                if flash is None or shapes is None:
                    classifier.fit(known, answers)
                else:
                    train_within(flash, shapes, classifier, known, answers)
        except KeyboardInterrupt:
            if not hasattr(classifier, "model_"):
                raise
    if not ranks.current_world().first:
        return  # rank 0 tests, writes and prints
    model = classifier.model_
    if flash is not None and shapes is None:
        with when_stopped("stopped; nothing is saved"), working("trying small models", quiet=quiet):
            model = compressed(model, known, answers, flash)
    with when_stopped("stopped; nothing is saved"), interrupts.defer_stop():
        model.record.update(target=column, data=shown(data.name))
        if table.image_shape is not None:
            model.record["image_shape"] = list(table.image_shape)
        summary = [
            f"{len(rows):,} rows, {model.bits if flash is None else model.networks.numel():,} bits",
            f"train {model.record['train_accuracy']:.4f}",
        ]
        if len(held_out):
            with working("testing", quiet=quiet):
                model = tested(model, features.take(held_out), labels[held_out])
            score = model.record["test_accuracy"]
            summary.append(f"test {score:.4f} on {len(held_out):,} rows held out")
        model.save(output)
        interrupts.consume_stop()  # a late stop is reported below
    place = f"the best network so far is in {shown(output)}"
    with when_stopped(f"stopped; {place}"):
        console = plain_console()
        console.print(f"{', '.join(summary)}, {model.record['seconds']:.1f} s")
        mixed = model.record.get("mixing", {})
        if "effective_networks" in mixed:
            console.print(
                f"{len(model.networks)} networks of {mixed['chains']} chains: {mixing_text(mixed)}"
            )
        if flash is not None:
            console.print(str(flash_bytes(model)))
        console.print(f"model: {shown(output)}")
        if interrupts.stop_requested() or Status.INTERRUPTED in classifier.status_:
            raise KeyboardInterrupt(f"stopped after {classifier.n_iter_} steps; {place}")
        if report is not None:
            from vitrail.cli.look import page_of

            seen = rows if not len(held_out) else held_out
            rows_are = "held out from training" if len(held_out) else "it was trained on"
            page_of(model, features.take(seen), labels[seen], report, rows_are, quiet=quiet)


def _stream(
    data: Path,
    target: str | None,
    output: Path,
    hidden: tuple[int, ...] | str,
    epochs: int,
    memory: int,
    seed: int,
    quiet: bool,
) -> None:
    """Train on streamed rows and save the model."""
    from vitrail import ranks
    from vitrail.learning import fit_stream
    from vitrail.tables.columns import column_lines

    units = () if isinstance(hidden, str) else hidden
    console = plain_console()
    with rows_per_second("training", quiet=quiet) as progress:
        model = fit_stream(
            data, target, hidden=units, epochs=epochs, ceiling=memory, seed=seed, progress=progress
        )
    if not ranks.current_world().first:
        return
    model.record.update(data=shown(data.name))
    model.save(output)
    note = model.record
    for line in () if quiet else column_lines(getattr(model.encoder, "account", ())):
        console.print(line)
    console.print(
        f"{note['rows']:,} rows, {model.bits:,} bits, encoder fitted to {note['encoder_rows']:,} "
        f"rows, test {note['test_accuracy']:.4f} on {note['test_rows']:,} rows held out, "
        f"{note['rows_per_second']:,} rows per second, {note['seconds']:.1f} s"
    )
    console.print(f"model: {shown(output)}")


def convolutions(net: str, table: Table, labels: np.ndarray) -> nn.Module:
    """A net of convolutions for the images of a table.

    Gray images have several bits per pixel and a channel of ones. For black and white images the
    channel of ones lowers accuracy on few rows.
    """
    from vitrail.nn import conv, small_conv

    if table.image_shape is None:
        raise ValueError(
            f"--net {net} needs images, but the rows of this file are not images; give an NPZ file "
            "with X of shape (rows, height, width), or MNIST's idx files"
        )
    classes = len(np.unique(labels))
    outputs = classes if classes > 2 else 1
    if net == "small-conv":
        return small_conv((1, *table.image_shape), num_outputs=outputs)
    channels = GRAY_BITS + 1 if is_gray(table) else 1
    return conv((channels, *table.image_shape), num_outputs=outputs)


def is_gray(table: Table) -> bool:
    """Whether pixels have more than two values."""
    seen: set[float] = set()
    for name in table.columns:
        seen.update(np.unique(table[name]).tolist())
        if len(seen) > 2:
            return True
    return False


def train_within(
    flash: int,
    shapes: RankedShapes,
    classifier: BinaryNetClassifier,
    table: Table,
    labels: np.ndarray,
) -> None:
    """Fit the best shape; should it then be a few bytes too large, the next one."""
    from vitrail.learning.compression import first_within

    def train(module: nn.Module) -> Model:
        return classifier.set_params(module=module).fit(table, labels).model_

    first_within(flash, shapes.modules, train)
    classifier.model_.record["shapes"] = shapes.record


def compressed(model: Model, table: Table, labels: np.ndarray, flash: int) -> Model:
    """The best small model within the limit of flash, with its accuracy on these rows recorded."""
    from vitrail.learning import compress

    small = compress(model, table, labels, flash=flash)
    right = small.answers(table).numbers.numpy() == small.labels.encode(labels)
    known = {name: model.record[name] for name in ("seconds", "status") if name in model.record}
    small.record.update(known, train_accuracy=round(float(np.mean(right)), 6))
    return small


def tested(model: Model, table: Table, labels: np.ndarray) -> Model:
    """The model with its accuracy on held-out rows, and abstention thresholds if they suffice."""
    from vitrail.model.model import thresholds_of

    answers = model.answers(table)
    right = answers.numbers.numpy() == model.labels.encode(labels)
    model.record["test_accuracy"] = round(float(np.mean(right)), 6)
    model.record["test_rows"] = len(labels)
    return replace(model, thresholds=thresholds_of(answers.confidence) or model.thresholds)
