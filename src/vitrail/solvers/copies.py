"""Copies of hard problems in one graph, each with a random prior of its own.

Close to capacity it is a matter of luck which attempt commits to a solution. In rounds, every
unsolved problem gets as many copies as memory allows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.graph import FactorGraph, join
from vitrail.random import MAX_SEED
from vitrail.solvers.stages import Stage, run_stages

ROUND_SEED_STEP = 2**36  # seeds of rounds: 4,096 of them before one meets another's next stage


@dataclass(frozen=True)
class CopiesFound:
    """What rounds of copies found for G problems."""

    best: tuple[Tensor, ...]  # (V,) bool for each problem
    best_accuracy: Tensor  # (G,) float64
    copies: Tensor  # (G,) int64, how many were tried of each
    solving: Tensor  # (G,) int64, how many of them found a solution
    seconds: Tensor  # (G,) float64: until the end of the last round a problem was in

    @property
    def solved(self) -> Tensor:
        """(G,) bool: whether any copy was solved."""
        return self.solving > 0


def run_copies(
    stages_of: Callable[[FactorGraph], Sequence[Stage]],
    graphs: Sequence[FactorGraph],
    *,
    edges: int,
    first: int = 1,
    max_rounds: int = 10,
    max_seconds: float | None = None,
    device: torch.device | str = "cpu",
    seed: int = 0,
) -> CopiesFound:
    """Run rounds of copies of single problems until all are solved or time is up.

    Args:
        stages_of: The stages for a graph of many copies, e.g.
            `lambda graph: portfolio(graph, ["reinforced"])`.
        graphs: The problems, each a graph of one problem.
        edges: Maximum number of (factor, variable) pairs in one round, which has a copy of each.
        first: Copies of each problem in the first round, which solves the easy ones.
        max_rounds: Maximum number of rounds.
        max_seconds: Limit for all rounds; no round begins later.
        device: Where rounds are run.
        seed: Same number, same result.

    Examples:
        >>> from vitrail import factor_graph, perceptron
        >>> from vitrail.datasets import glass
        >>> from vitrail.solvers import portfolio
        >>> data = glass(5, 11, seed=0)
        >>> graph = factor_graph(perceptron(data.inputs, data.labels))
        >>> run_copies(lambda many: portfolio(many, ["reinforced"]), [graph], edges=500).solved
        tensor([True])
    """
    for graph in graphs:
        if graph.num_problems != 1:
            raise ValueError(f"copies are of single problems, got a graph of {graph.num_problems}")
    if edges < 1 or first < 1 or max_rounds < 1:
        given = f"{edges}, {first}, {max_rounds}"
        raise ValueError(f"edges, first and max_rounds must be positive, got {given}")
    begun, none = time.perf_counter(), torch.zeros(len(graphs), dtype=torch.int64)
    best = [torch.zeros(graph.num_variables, dtype=torch.bool) for graph in graphs]
    accuracy = torch.full((len(graphs),), -1.0, dtype=torch.float64)
    copies, solving, seconds = none.clone(), none.clone(), none.double()
    for number in range(max_rounds):
        left = (solving == 0).nonzero()[:, 0].tolist()
        spent = time.perf_counter() - begun
        if not left or (max_seconds is not None and spent >= max_seconds):
            break
        room = sum(_edges(graphs[g]) for g in left)
        count = max(1, math.floor(edges / room))
        count = min(first, count) if number == 0 else count
        together = join([graphs[g] for g in left] * count).to(device)
        found = run_stages(
            stages_of(together),
            together,
            seed=(seed + number * ROUND_SEED_STEP) % MAX_SEED,
            max_seconds=None if max_seconds is None else max_seconds - spent,
        )
        reached = found.best_accuracy.cpu().view(count, len(left))
        solved = found.solved.cpu().view(count, len(left))
        parts = found.best.cpu().split([graphs[g].num_variables for g in left] * count)
        for place, g in enumerate(left):
            copy = int(reached[:, place].argmax())
            if float(reached[copy, place]) > float(accuracy[g]):
                accuracy[g], best[g] = reached[copy, place], parts[copy * len(left) + place]
            copies[g] += count
            solving[g] += int(solved[:, place].sum())
            seconds[g] = time.perf_counter() - begun
    return CopiesFound(tuple(best), accuracy, copies, solving, seconds)


def _edges(graph: FactorGraph) -> int:
    return sum(block.num_factors * block.arity for block in graph.blocks)
