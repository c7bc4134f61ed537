"""Runs whose bits must not depend on how many ranks do them; also a job for torchrun.

    python -m torch.distributed.run --nproc-per-node=2 cases.py FOLDER

Every rank writes what it found to FOLDER/<rank>.json; checkpoints go to FOLDER, too.
Classifiers and tables are imported where they are used: ranks of faulty.py need neither, and
start sooner.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail import factor_graph, join, network, perceptron, run
from vitrail.datasets import glass
from vitrail.graph import FactorGraph
from vitrail.nn import mlp
from vitrail.ranks import World, joined
from vitrail.solvers import (
    Solution,
    adaptive,
    belief_propagation,
    linear,
    reinforced,
    run_stages,
    s4p,
    snmp,
    streaming,
)
from vitrail.surveys import gaussian
from vitrail.updates import closed_form, counting, exact, flip

FIRST_SITTING = 10  # steps until the checkpoint
STEPS = 30
ROWS = 1501  # of streams
READ: dict[str, int] = {}  # how many of them, in two epochs, were made bits of here


def digest(*values: Tensor) -> str:
    both = hashlib.sha256()
    for value in values:
        both.update(value.contiguous().numpy().tobytes())
    return both.hexdigest()


def found(solution: Solution[Any]) -> dict[str, Any]:
    history = solution.history
    return {
        "bits": digest(solution.weights, solution.best),
        "marginals": digest(solution.marginals),
        "accuracy": digest(solution.accuracy, solution.best_accuracy),
        # of float64 sigmoids, whose last bit may differ between compiled and plain rows
        "residual": round(float(history["residual"].sum()), 9),
        "status": [str(status) for status in solution.status],
        "evaluations": solution.evaluations,
        "steps": solution.steps,
        "starved": float(history["starved"].sum()),
    }


@cache
def soft(size: int, inputs: int) -> FactorGraph:
    data = glass(size, inputs, seed=size)
    return factor_graph(perceptron(data.inputs, data.labels, 2.0))


def two() -> FactorGraph:
    return join([soft(60, 21), soft(41, 15)])


def hard(size: int, inputs: int) -> FactorGraph:
    data = glass(size, inputs, seed=3)
    return factor_graph(perceptron(data.inputs, data.labels))


def weighted() -> FactorGraph:
    """Weights that no float64 holds exactly."""
    data = glass(60, 21, seed=5)
    weight = torch.arange(1, 61).double() / 7
    return factor_graph(perceptron(data.inputs, data.labels, 2.0, weight=weight))


def deep() -> FactorGraph:
    data = glass(60, 11, seed=6)
    return factor_graph(network(mlp(11, (3,), 1), data.inputs, data.labels, 2.0))


def batches(world: World, **how: Any) -> Solution[Any]:
    """Stochastic belief propagation in batches, the run that checkpoints are taken of."""
    solver = belief_propagation(flip(5), damping=0.5, batch=7)
    return run(solver, two().shared(world), seed=3, **{"max_steps": STEPS, **how})


def by_solver(solver: Any, graph: Callable[[], FactorGraph], steps: int) -> Callable[..., Any]:
    return lambda world: found(run(solver, graph().shared(world), seed=3, max_steps=steps))


def surveys(world: World) -> dict[str, Any]:
    """Both stages; the second begins at the messages of the first."""
    stages = snmp(flip(5), steps=(4, 4), survey_samples=20, bins=31)
    return found(run_stages(stages, soft(60, 21).shared(world), seed=3))


def classifier(world: World, **settings: Any) -> dict[str, Any]:
    """A model, by the classifier: it looks for ranks itself."""
    from vitrail import BinaryNetClassifier

    rows = glass(80, 12, seed=9).inputs.numpy() > 0
    labels = np.where(rows[:, :5].sum(1) > 2, "many", "few")
    net = BinaryNetClassifier(**{"hidden": (3,), "networks": 16, **settings}).fit(rows, labels)
    model = net.model_
    tables = model.best, model.marginals, model.networks, model.votes, model.calibration
    kept = {name: model.record[name] for name in ("train_accuracy", "status", "evaluations")}
    return {"model": digest(*tables), "steps": net.n_iter_, **kept}


def stream(_: World, suffix: str, hidden: tuple[int, ...] = ()) -> dict[str, Any]:
    """A model of rows that are read as they come."""
    import pyarrow as pa

    from vitrail.learning.streams import BASE, fit_stream
    from vitrail.tables.encoders import TableEncoder
    from vitrail.tables.table import Table
    from vitrail.tables.writing import write_table

    values = np.random.default_rng(9).integers(0, 10, (ROWS, 6))
    table = pa.table({f"c{i}": values[:, i] for i in range(6)})
    table = table.append_column("kind", pa.array(np.where(values.sum(1) > 27, "many", "few")))
    with TemporaryDirectory() as folder, counted(TableEncoder) as rows:
        path = Path(folder) / f"rows.{suffix}"
        write_table(path, [Table(table.slice(i, 250)) for i in range(0, ROWS, 250)])
        memory = BASE + 100_000  # so little that there are several windows
        model = fit_stream(path, "kind", hidden=hidden, epochs=2, ceiling=memory, networks=9)
    tables = model.best, model.marginals, model.networks, model.calibration
    note = model.record
    assert note["settings"]["window_rows"] < ROWS / 2
    READ[suffix] = rows[0] - note["test_rows"]
    return {"model": digest(*tables), "test_accuracy": note["test_accuracy"]}


@contextmanager
def counted(encoder: type) -> Iterator[list[int]]:
    """How many rows it has made bits of."""
    rows, whole = [0], encoder.transform

    def transform(self: Any, table: Any) -> np.ndarray:
        rows[0] += len(table)
        return whole(self, table)

    encoder.transform = transform
    try:
        yield rows
    finally:
        encoder.transform = whole


CASES: dict[str, Callable[[World], dict[str, Any]]] = {
    "batches": lambda world: found(batches(world)),
    "adaptive damping, fractional weights": by_solver(
        belief_propagation(flip(5), damping=adaptive(every=5), batch=7), weighted, 40
    ),
    "exact messages that contradict": by_solver(
        belief_propagation(exact(), damping=0.5), lambda: hard(40, 7), 10
    ),
    "convolution": by_solver(belief_propagation(closed_form(), damping=0.5), two, 10),
    "counting": by_solver(belief_propagation(counting(64), batch=9), deep, 10),
    "reinforced": by_solver(
        reinforced(belief_propagation(closed_form()), linear(0.05), attempts=2),
        lambda: hard(41, 51),
        60,
    ),
    "surveys in batches": by_solver(
        s4p(flip(5), survey_samples=20, bins=31, batch=9), lambda: soft(60, 21), 8
    ),
    "gaussian surveys": by_solver(
        s4p(flip(5), survey_samples=20, bins=31, variable=gaussian()), lambda: soft(60, 21), 4
    ),
    "messages, then surveys": surveys,
    "rows of Parquet": lambda world: stream(world, "parquet"),
    "rows of CSV, hidden units": lambda world: stream(world, "csv", (3,)),
    "classifier": lambda world: classifier(world, solver="messages", epochs=3, random_state=2),
    "restarts": lambda world: classifier(
        world, solver="sbp", predictor="best", epochs=3, restarts=3, random_state=2, networks=1
    ),
    "posterior by chains": lambda world: classifier(world, predictor="posterior", random_state=2),
}


def moments(world: World) -> list[float]:
    """Marginals after streaming by moments, whose sums of float32 are not exact."""
    solver = streaming(batch=16, batches=2)
    return run(solver, deep().shared(world), seed=3, max_steps=8).marginals.tolist()


def handed(world: World) -> dict[str, list[float]]:
    """Most bytes that a rank gives to collectives in a step of belief propagation, and may give."""
    told = {}
    wide = hard(40, 8_001)  # so many weights that a quarter of a byte for each would be too much
    for name, update, graph, batch in (
        ("flip", flip(5), two(), 7),
        ("counting", counting(64), deep(), 9),
        ("exact", exact(), hard(40, 7), None),
        ("convolution", closed_form(), two(), None),
        ("gaussian", closed_form("gaussian"), wide, 20),
    ):
        mine, seen = graph.shared(world), [world.bytes_sent]
        solver = belief_propagation(update, damping=0.5, batch=batch)
        run(solver, mine, max_steps=4, on_step=lambda *_, seen=seen: seen.append(world.bytes_sent))
        most = max(now - before for before, now in pairwise(seen[1:]))
        told[name] = [most, 8 * mine.num_variables + 32 * mine.num_problems + 1024]
    return told


def main(folder: Path) -> None:
    with joined() as world:
        told: dict[str, Any] = {name: case(world) for name, case in CASES.items()}
        told |= {"read": READ, "moments": moments(world), "handed": handed(world)}
        later = folder / "given.ckpt"
        if later.exists():
            told["resumed"] = found(batches(world, checkpoint=later))
        place = folder / f"of-{world.size}.ckpt"
        batches(world, checkpoint=place, max_steps=FIRST_SITTING)
        (folder / f"{world.rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
