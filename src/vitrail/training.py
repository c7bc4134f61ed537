"""From labelled bits to a trained model: factors, a run, and what the run found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail.data.errors import TableTooLargeError
from vitrail.data.memory import available_memory, in_gigabytes
from vitrail.factors import network
from vitrail.graph import FactorGraph, factor_graph, join
from vitrail.nn import Program
from vitrail.settings import Plan, stages
from vitrail.solvers import Solution, Stage, StagedSolution, Status, run_stages

Progress = Callable[[int, Tensor, Tensor], None]
NAN = float("nan")
MESSAGE_BYTES = 10  # of an example and a weight: a message, its copy as it changes, the input


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
        """Merge equal rows of bits (0/1 or ±1); rows without weight are left out.

        Cost: a sort of the rows, an eighth of a byte an input.
        """
        counts = weight > 0
        inputs, labels, weight = inputs[counts], labels[counts], weight[counts]
        spelled = np.packbits((inputs > 0).numpy(), axis=1)
        number = labels.numpy().astype(">u4")[:, None].view(np.uint8)
        rows = np.ascontiguousarray(np.concatenate([spelled, number], 1))
        whole = rows.view(np.dtype((np.void, rows.shape[1])))[:, 0]
        _, first, place = np.unique(whole, return_index=True, return_inverse=True)
        totals = np.bincount(place.reshape(-1), weights=weight.numpy(), minlength=len(first))
        kept = torch.from_numpy(first)
        return Examples(inputs[kept], labels[kept], torch.from_numpy(totals))

    def where(self, chosen: Tensor) -> Examples:
        """The examples at which `chosen` (F,) bool holds."""
        return Examples(self.inputs[chosen], self.labels[chosen], self.weight[chosen])

    def pair(self, low: int, high: int) -> Examples:
        """The examples of two classes; label 1 is the second."""
        both = self.where((self.labels == low) | (self.labels == high))
        return replace(both, labels=(both.labels == high).to(torch.int64))


@dataclass(frozen=True)
class Trained:
    """What training found for N nets, each from R starts. NaN is a net that never had examples."""

    solution: StagedSolution  # its problems are the nets that had examples, start by start
    starts: Tensor  # (R, N, A) bool, the best network of each start
    before: Tensor  # (R, N, A) bool, the same before local search
    accuracy: Tensor  # (R, N) float64, on the training rows, of `starts`
    log_odds: Tensor  # (R, N, A) float64, the marginals of message passing
    stage: tuple[tuple[str, ...], ...]  # (R, N), which found each of `starts`; "" for none

    @property
    def chosen(self) -> Tensor:
        """The start that found the best network of each net, (N,) int64."""
        return self.accuracy.nan_to_num(-1.0).argmax(0)

    @property
    def best(self) -> Tensor:
        """The best network of each net, (N, A) bool."""
        return self._of_chosen(self.starts)

    @property
    def unpolished(self) -> Tensor:
        """What message passing alone found, (N, A) bool."""
        return self._of_chosen(self.before)

    @property
    def marginals(self) -> Tensor:
        """P(w = 1) at the end of the chosen start, (N, A) float32."""
        return torch.sigmoid(self._of_chosen(self.log_odds)).to(torch.float32)

    @property
    def status(self) -> tuple[Status, ...]:
        """How the runs ended, one per net that had examples: solved if any start was."""
        rows = self.solution.status
        nets = len(rows) // self.starts.shape[0]
        of_net = [rows[net::nets] for net in range(nets)]
        return tuple(Status.SOLVED if Status.SOLVED in row else row[0] for row in of_net)

    @property
    def found_by(self) -> tuple[str, ...]:
        """The stage that found the best network of each net; "" where none had examples."""
        return tuple(self.stage[start][net] for net, start in enumerate(self.chosen.tolist()))

    def _of_chosen(self, values: Tensor) -> Tensor:
        return values[self.chosen, torch.arange(values.shape[1])]


def nets_of(examples: Examples, num_classes: int, pairs: bool) -> list[Examples]:
    """The examples of each net: all of them, or those of each pair of classes."""
    if not pairs:
        return [examples]
    return [examples.pair(low, high) for low, high in combinations(range(num_classes), 2)]


def graph_of(program: Program, nets: list[Examples], beta: float, restarts: int) -> FactorGraph:
    """R·N problems as one graph; an example of weight k counts as k of them: its beta is k·beta."""
    graphs = [
        factor_graph(network(program, one.inputs, one.labels, beta * one.weight, weight=one.weight))
        for one in nets
    ] * restarts
    return join(graphs) if len(graphs) > 1 else graphs[0]


def train(
    program: Program,
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
    _check_memory(sum(len(examples.labels) for examples in nets), program.num_bits, plan)
    graph = graph_of(program, [nets[number] for number in present], plan.beta, plan.restarts)
    if log_prior is not None:
        graph = graph.with_prior(log_prior[:, present].flatten())
    largest = max(len(nets[number].labels) for number in present)
    graph = graph.to(device)
    passed: list[Tensor] = []  # what message passing found, before any local search

    def keep(stage: Stage, found: Solution[Any]) -> None:
        if stage.marginals:
            found_odds = stage.solver.log_odds(graph, found.state)
            passed[:] = [found_odds.cpu(), found.best.cpu()]

    solution = run_stages(
        stages(plan, graph, largest), graph, seed=seed, progress=progress, on_stage=keep
    )

    lead, everywhere = (plan.restarts, len(present)), (plan.restarts, len(nets))
    bits = torch.zeros(*everywhere, program.num_bits, dtype=torch.bool)
    starts, before, log_odds = bits.clone(), bits.clone(), bits.double()
    accuracy = torch.full(everywhere, NAN, dtype=torch.float64)
    stage = [[""] * len(nets) for _ in range(plan.restarts)]
    if earlier is not None:
        starts, before, log_odds = (
            part.clone() for part in (earlier.starts, earlier.before, earlier.log_odds)
        )
        accuracy = earlier.accuracy.clone()
        stage = [[*names] for names in earlier.stage]
    starts[:, present] = solution.best.cpu().reshape(*lead, -1)
    before[:, present] = passed[1].reshape(*lead, -1)
    log_odds[:, present] = passed[0].reshape(*lead, -1)
    accuracy[:, present] = solution.best_accuracy.cpu().reshape(lead)
    for place, name in enumerate(solution.found_by):
        start, net = divmod(place, len(present))
        stage[start][present[net]] = name
    found_by = tuple(tuple(names) for names in stage)
    return Trained(solution, starts, before, accuracy, log_odds, found_by)


def _check_memory(num_examples: int, weights: int, plan: Plan) -> None:
    """Raise, before anything is allocated, where the messages will not fit."""
    needed = MESSAGE_BYTES * num_examples * weights * plan.restarts
    available = available_memory()
    if available is not None and needed > available:
        raise TableTooLargeError(
            f"training {weights} weights on {num_examples:,} different rows needs "
            f"{in_gigabytes(needed)} of memory for messages, {in_gigabytes(available)} is "
            "available; use a sample of the rows or fewer hidden units"
        )
