"""The first thing to try: 196 bits that tell a 3 from a 5, found by two means."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from vitrail.baselines.ste import straight_through
from vitrail.data import Dataset, mnist
from vitrail.factors import perceptron
from vitrail.graph import FactorGraph, factor_graph
from vitrail.plots import Figure, training_figure
from vitrail.solvers import Solution, Solver, belief_propagation, run
from vitrail.solvers.progress import progress_bar
from vitrail.updates import flip

BATCH = 128
EPOCHS = 6
BETA = 2.0  # examples that no linear net can satisfy must not count too much


@dataclass(frozen=True)
class Result:
    """One solver's networks and how well they do."""

    name: str
    solution: Solution
    train_best: float
    train_last: float
    test_best: float
    test_last: float
    seconds: float

    @property
    def bits(self) -> int:
        return len(self.solution.best)


def race(seed: int = 0) -> list[Result]:
    """Train the same net on the same batches by belief propagation and by straight-through."""
    pair = mnist(pair=(3, 5))
    solvers = {
        "belief propagation": belief_propagation(flip(5), damping=0.9, batch=BATCH),
        "straight-through": straight_through(batch=BATCH),
    }
    return [train(name, solver, pair, seed) for name, solver in solvers.items()]


def train(name: str, solver: Solver, pair: Dataset, seed: int) -> Result:
    """Run one solver for EPOCHS epochs, with a progress bar on a terminal."""
    graph = factor_graph(perceptron(pair.inputs, pair.labels, beta=BETA))
    steps = EPOCHS * steps_per_epoch(graph)
    with progress_bar(steps, name) as bar:
        solution = run(solver, graph, seed=seed, max_steps=steps, progress=bar)
    unseen = factor_graph(perceptron(pair.test_inputs, pair.test_labels))
    test_best, test_last = unseen.accuracy(torch.stack([solution.best, solution.weights]))[:, 0]
    return Result(
        name,
        solution,
        train_best=float(solution.best_accuracy),
        train_last=float(solution.accuracy),
        test_best=float(test_best),
        test_last=float(test_last),
        seconds=solution.seconds,
    )


def steps_per_epoch(graph: FactorGraph) -> int:
    """Steps of BATCH factors that see every example once."""
    return -(-graph.num_factors // BATCH)


def figure(results: list[Result]) -> Figure:
    """The training curves, and each net's weights as an image."""
    curves = {r.name: r.solution.history["accuracy"][:, 0].numpy() for r in results}
    images = {r.name: 2 * r.solution.best.double().numpy().reshape(14, 14) - 1 for r in results}
    per_epoch = results[0].solution.steps / EPOCHS
    return training_figure(curves, per_epoch, images, "MNIST 3-vs-5, 196 one-bit weights")
