"""`vitrail compare`: several solvers on one data set, side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from vitrail import interrupts
from vitrail.cli.app import app
from vitrail.cli.options import (
    LEARN,
    SOLVER_NAMES,
    Epochs,
    FigureFile,
    Hidden,
    Jobs,
    Json,
    Seed,
    Target,
    TestSize,
    Workers,
    check_figure,
    hidden_units,
    plain_console,
    print_table,
    shown,
    target_column,
)

if TYPE_CHECKING:
    from vitrail.engines import Backend

NAMED = "glass[:NxM], stained-glass[:NxM], digits[:A-B], mnist:A-B"


@app.command(rich_help_panel=LEARN)
def compare(
    data: Annotated[str, typer.Argument(metavar="DATA", help=f"A file or one of: {NAMED}.")],
    solvers: Annotated[str, typer.Option(help=f"With commas: {SOLVER_NAMES}.")] = "sbp,ste",
    target: Target = None,
    hidden: Hidden = "0",
    epochs: Epochs = None,
    test_size: TestSize = 0.2,
    seed: Seed = 0,
    jobs: Jobs = 1,
    backend: Workers = "processes",
    as_json: Json = False,
    figure: FigureFile = None,
) -> None:
    """Train the same net by several solvers and print their scores.

    Each predicts as `fit` with its name does: chains, streaming and messages by many networks, the
    others by the best one. Files are divided by --test-size; named data sets have their own test
    rows. --figure shows training curves.

    Example: `vitrail compare mnist:3-5 --solvers sbp,ste --figure curves.png`
    """
    from vitrail.engines import checked_backend
    from vitrail.learning.table import canonical

    check_figure(figure)
    task = Task(data, target, hidden_units(hidden), epochs, test_size, seed)
    names = [name.strip() for name in solvers.split(",")]
    for name in names:
        canonical(name)
    results, curves = [], {}
    stopped: BaseException | None = None
    try:
        with interrupts.all_or_nothing():
            for result, curve in _compared(task, names, jobs, checked_backend(backend)):
                results.append(result)
                curves[result["solver"]] = curve
    except (KeyboardInterrupt, ChildProcessError) as error:
        stopped = error
    results.sort(key=lambda result: names.index(result["solver"]))
    if as_json:
        typer.echo(json.dumps({"data": data, "seed": seed, "results": results}))
    elif results:
        head = [name.replace("_", " ") for name in results[0]]
        print_table(head, [list(result.values()) for result in results], data)
    if stopped is not None:
        raise stopped
    if figure is not None:
        from vitrail.lab.plots import curves_figure, save

        save(curves_figure(curves, data), figure)
        plain_console(stderr=True).print(f"training curves: {shown(figure)}")


@dataclass(frozen=True)
class Task:
    """The settings of a comparison, sent to workers in place of the rows."""

    data: str
    target: str | None
    hidden: Any
    epochs: int | None
    test_size: float
    seed: int

    def done(self, solver: str) -> tuple[dict[str, Any], tuple[np.ndarray, np.ndarray]]:
        """The results of one solver, and its training curve."""
        from vitrail.estimator import BinaryNetClassifier
        from vitrail.learning import SOLVERS
        from vitrail.learning.table import canonical

        rows, labels, test_rows, test_labels, named = _rows(self)
        paced = solver != "auto" and "epochs" in SOLVERS[canonical(solver)].options
        net = BinaryNetClassifier(
            hidden=self.hidden,
            solver=solver,
            bias=0 if named else "auto",  # the paper's nets have none
            epochs=self.epochs if self.epochs is not None and paced else "auto",
            random_state=self.seed,
            verbose=1,
        )
        net.fit(rows, labels)
        accuracy = net.history_["accuracy"].mean(1).numpy()
        record, score = net.model_.record, None
        if len(test_labels):
            score = round(float(net.score(test_rows, test_labels)), 6)
        result = {
            "solver": solver,
            "train_best": record["best_accuracy"],
            "train_last": round(float(accuracy[-1]), 6),
            "test": score,
            "seconds": record["seconds"],
            "evaluations": record["evaluations"],
            "bits": net.model_.bits,
        }
        return result, (np.linspace(0, net.plan_.get("epochs", 1), len(accuracy)), accuracy)


@cache
def _rows(task: Task) -> tuple[Any, Any, Any, Any, bool]:
    """Training and test rows with labels, and whether the data set is a named one."""
    named = _named(task.data, task.seed)
    found = named or _file(task.data, task.target, task.test_size, task.seed)
    return *found, named is not None


def _compared(task: Task, names: list[str], jobs: int, backend: Backend) -> Iterator[Any]:
    """The results of each solver as it ends; solvers that fail twice are reported at the end."""
    if jobs == 1 and backend == "processes":
        for name in names:
            try:  # results of a stopped solver are not comparable
                with interrupts.all_or_nothing():
                    done = task.done(name)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"stopped in {name}, which is not shown") from None
            yield done
        return
    from joblib import delayed

    from vitrail.engines import Failure, run_task, worker_pool

    failed = []
    with worker_pool(backend, min(jobs, len(names))) as pool:
        for done in pool(delayed(run_task)(task.done, name) for name in names):
            if isinstance(done, Failure):
                failed.append(done.reason)
            else:
                yield done
    if failed:
        raise ChildProcessError(
            f"{len(failed)} of {len(names)} solvers failed twice, the first with: {failed[0]}"
        )


def _named(name: str, seed: int) -> tuple[Any, Any, Any, Any] | None:
    """Rows, labels, test rows and test labels of a named data set; None for another name."""
    from vitrail.datasets import digits, glass, mnist, stained_glass

    kind, _, detail = name.partition(":")
    try:
        if kind in ("glass", "stained-glass"):
            inputs, examples = _two(detail or "31x35", "x")
            maker = glass if kind == "glass" else stained_glass
            found = maker(examples, inputs, seed, num_test=1000 * (maker is not glass))
        elif kind in ("digits", "mnist"):
            pair = _two(detail or "3-5", "-")
            found = digits(150, pair, seed) if kind == "digits" else mnist(pair)
        else:
            return None
    except ValueError as error:
        raise ValueError(f"cannot read {name!r} as one of {NAMED}: {error}") from None
    labels, test = (np.array(found.classes)[one] for one in (found.labels, found.test_labels))
    return found.inputs.numpy(), labels, found.test_inputs.numpy(), test


def _two(text: str, mark: str) -> tuple[int, int]:
    first, *others = text.split(mark)
    if len(others) != 1:
        raise ValueError(f"expected two numbers with {mark!r} between them, got {text!r}")
    return int(first), int(others[0])


def _file(path: str, target: str | None, test_size: float, seed: int) -> tuple[Any, Any, Any, Any]:
    from vitrail.learning.examples import split_rows
    from vitrail.tables.table import read_table

    table = read_table(path)
    column = target_column(table, target)
    labels, features = table.labels(column), table.without(column)
    rows, held_out = split_rows(labels, test_size, seed)
    return features.take(rows), labels[rows], features.take(held_out), labels[held_out]
