"""Select the learning rates of straight-through for the figures.

For each task, straight-through with Adam and SGD over eleven learning rates, on problems that no
figure uses. The mean of the best training accuracy is printed; the first line of a task is the
setting for its figure.

    .venv/bin/python scripts/tune_baselines.py [TASK ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from vitrail.baselines import straight_through
from vitrail.graph import FactorGraph
from vitrail.lab.experiments.tasks import Family, Net, linear_graph, mnist_graphs, problems
from vitrail.solvers import Solver, run

FIRST = 1000  # seeds of the tuning problems; figures begin at 0

# task: (graph, batch, epochs), as in the figure that it belongs to; sizes over its range
Task = tuple[Callable[[], FactorGraph], int, int]
LINEAR: dict[Family, tuple[int, tuple[int, ...]]] = {
    "glass": (10, (5, 20, 50)),
    "stained glass, 1 hidden": (31, (5, 20, 50)),
    "stained glass, 2 hidden": (31, (5, 20, 50)),
    "digits": (64, (5, 65, 245)),
}
NETS: tuple[Net, ...] = ("linear", "mlp", "conv")
TASKS: dict[str, Task] = {
    **{
        f"{family} {size}": (
            lambda family=family, inputs=inputs, size=size: linear_graph(
                problems(family, inputs, size, 20, FIRST)
            ),
            5,
            20,
        )
        for family, (inputs, sizes) in LINEAR.items()
        for size in sizes
    },
    **{
        f"{net} {size}": (
            lambda net=net, size=size: mnist_graphs(net, (3, 5), size, range(FIRST, FIRST + 10))[0],
            8,
            10,
        )
        for net in NETS
        for size in (20, 100, 300, 1000)
    },
    "conv all": (lambda: mnist_graphs("conv", (3, 5), None, range(4))[0], 128, 5),
}


def settings(batch: int) -> dict[str, Solver[Any]]:
    """The candidates."""
    tried: dict[str, Solver[Any]] = {}
    for lr in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3):
        tried[f"adam {lr}"] = straight_through("adam", lr=lr, batch=batch)
    for lr in (0.01, 0.03, 0.1, 0.3, 1.0):
        tried[f"sgd {lr}"] = straight_through("sgd", lr=lr, batch=batch)
    return tried


def main() -> None:
    """Search the tasks named, or all."""
    torch.set_num_threads(1)
    for name in sys.argv[1:] or TASKS:
        make, batch, epochs = TASKS[name]
        graph = make()
        found = []
        for label, solver in settings(batch).items():
            every = int(solver.epoch_steps(graph)[0])
            begun = time.perf_counter()
            solution = run(solver, graph, seed=1, max_steps=epochs * every, score_every=every)
            best, last = solution.best_accuracy.mean(), solution.accuracy.mean()
            found.append((float(best), float(last), label, time.perf_counter() - begun))
        print(f"{name}: {graph.num_problems} problems, batch {batch}, {epochs} epochs")
        for best, last, label, seconds in sorted(found, reverse=True):
            print(f"  {label:24s} best {best:.4f}  last {last:.4f}  {seconds:5.1f} s")


if __name__ == "__main__":
    main()
