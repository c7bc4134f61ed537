"""From labelled bits to a trained model: factors, a run, and what the run found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vitrail.factors import Factors, network, perceptron
from vitrail.graph import FactorGraph, factor_graph, join
from vitrail.nn import BinaryLinear, num_weights
from vitrail.settings import Plan, build
from vitrail.solvers import Solution, Status, run

Progress = Callable[[int, Tensor, Tensor], None]
NAN = float("nan")


@dataclass(frozen=True)
class Examples:
    """Distinct training examples, in an order that is a function of the set alone.

    Equal rows with equal labels are one example with their weights added up, which is the same
    graph: potentials multiply. So repeating a row and weighting it give the same network.
    """

    inputs: Tensor  # (F, I) int8
    labels: Tensor  # (F,) int64
    weight: Tensor  # (F,) float64 > 0

    @staticmethod
    def distinct(inputs: Tensor, labels: Tensor, weight: Tensor) -> Examples:
        """Merge equal rows; rows without weight are left out. Cost: a sort of the rows."""
        counts = weight > 0
        inputs, labels, weight = inputs[counts], labels[counts], weight[counts]
        rows = torch.cat([inputs, labels[:, None].to(torch.int32)], 1).numpy()
        unique, place = np.unique(rows, axis=0, return_inverse=True)
        totals = np.bincount(place.reshape(-1), weights=weight.numpy(), minlength=len(unique))
        return Examples(
            torch.from_numpy(unique[:, :-1].astype(np.int8)),
            torch.from_numpy(unique[:, -1].astype(np.int64)),
            torch.from_numpy(totals),
        )

    def pair(self, low: int, high: int) -> Examples:
        """The examples of two classes; label 1 is the second."""
        chosen = (self.labels == low) | (self.labels == high)
        labels = (self.labels[chosen] == high).to(torch.int64)
        return Examples(self.inputs[chosen], labels, self.weight[chosen])


@dataclass(frozen=True)
class Trained:
    """What training found for N nets, each from R starts."""

    solution: Solution[Any]  # its problems are the nets that had examples, start by start
    best: Tensor  # (N, A) bool
    best_accuracy: Tensor  # (N,) float64; NaN for a net without examples
    log_odds: Tensor  # (R, N, A) float64
    chosen: Tensor  # (N,) int64, the start that found the best of each net
    status: tuple[Status, ...]  # of those starts, one per net that had examples

    @property
    def marginals(self) -> Tensor:
        """P(w = 1) at the end of the start that found the best, (N, A) float32."""
        nets = torch.arange(len(self.chosen))
        return torch.sigmoid(self.log_odds[self.chosen, nets]).to(torch.float32)


def nets_of(examples: Examples, num_classes: int, pairs: bool) -> list[Examples]:
    """The examples of each net: all of them, or those of each pair of classes."""
    if not pairs:
        return [examples]
    return [examples.pair(low, high) for low, high in combinations(range(num_classes), 2)]


def graph_of(module: nn.Module, nets: list[Examples], beta: float, restarts: int) -> FactorGraph:
    """R·N problems as one graph; an example of weight k counts as k of them: its beta is k·beta.

    A module of one binary layer with one output makes perceptron factors, any other network ones.
    """
    layers = list(module) if isinstance(module, nn.Sequential) else [module]
    alone = len(layers) == 1 and isinstance(layers[0], BinaryLinear) and layers[0].out_features == 1

    def block(examples: Examples) -> Factors:
        strength = beta * examples.weight
        if alone:
            return perceptron(examples.inputs, examples.labels, strength, weight=examples.weight)
        return network(module, examples.inputs, examples.labels, strength, weight=examples.weight)

    graphs = [factor_graph(block(examples)) for examples in nets] * restarts
    return join(graphs) if len(graphs) > 1 else graphs[0]


def train(
    module: nn.Module,
    nets: list[Examples],
    plan: Plan,
    *,
    seed: int,
    device: str = "cpu",
    earlier: Trained | None = None,
    log_prior: Tensor | None = None,
    progress: Progress | bool = False,
) -> Trained:
    """Run the plan's solver on every net at once and keep the best start of each.

    log_prior (R, N, A): log-odds to start from. A net without examples keeps what `earlier` has.
    """
    present = [number for number, examples in enumerate(nets) if len(examples.labels)]
    graph = graph_of(module, [nets[number] for number in present], plan.beta, plan.restarts)
    if log_prior is not None:
        graph = graph.with_prior(log_prior[:, present].flatten())
    largest = max(len(nets[number].labels) for number in present)
    solver, graph = build(plan), graph.to(device)
    solution = run(solver, graph, seed=seed, max_steps=plan.steps(largest), progress=progress)

    lead, all_nets = (plan.restarts, len(present)), (len(nets), num_weights(module))
    accuracy, start = solution.best_accuracy.cpu().reshape(lead).max(0)
    best, best_accuracy = torch.zeros(all_nets, dtype=torch.bool), torch.full(all_nets[:1], NAN)
    log_odds = torch.zeros(plan.restarts, *all_nets, dtype=torch.float64)
    chosen = torch.zeros(len(nets), dtype=torch.int64)
    if earlier is not None:
        best, log_odds, chosen = earlier.best.clone(), earlier.log_odds.clone(), earlier.chosen
    found = solution.best.cpu().reshape(*lead, -1)
    best[present] = found[start, torch.arange(len(present))]
    best_accuracy[present] = accuracy.to(best_accuracy.dtype)
    log_odds[:, present] = solver.log_odds(graph, solution.state).cpu().reshape(*lead, -1)
    chosen = chosen.index_copy(0, torch.tensor(present), start)
    status = tuple(
        solution.status[int(s) * len(present) + number] for number, s in enumerate(start)
    )
    return Trained(solution, best, best_accuracy.double(), log_odds, chosen, status)
