"""Which factors a step updates: all of them, or a random batch from every problem."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.random import Key, permutation_keys
from vitrail.solvers.base import Feedback


@dataclass(frozen=True)
class Order:
    """The shuffle in force: each factor's place within its problem, and each problem's epoch."""

    rank: Tensor  # (F,) int64 over all blocks
    epoch: Tensor  # (P,) int64


@dataclass(frozen=True)
class Batches:
    """`size` factors from every problem a step, without replacement within an epoch.

    size None is flooding: every factor at every step. An epoch is every factor once; a problem
    of M factors has ⌈M/size⌉ steps in it, so problems of different size have epochs of their own.
    """

    size: int | None

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise ValueError(f"a batch needs at least one factor, got {self.size}; None takes all")

    def start(self, graph: FactorGraph) -> Order:
        rank = torch.zeros(graph.num_factors, dtype=torch.int64, device=graph.device)
        return Order(rank, torch.full((graph.num_problems,), -1, device=graph.device))

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        """Steps in which every factor of a problem is updated once, (P,) int64."""
        counts = graph.factors_per_problem
        if self.size is None:
            return torch.ones_like(counts)
        return (counts + self.size - 1) // self.size

    def select(
        self, key: Key, graph: FactorGraph, order: Order, feedback: Feedback
    ) -> tuple[list[Tensor | None], Order]:
        """Factors to update at step `key.step`: an index (F',) a block, None for a whole block.

        Problems that are not active are left alone.
        """
        if self.size is None and feedback.all_active():
            return [None] * len(graph.blocks), order
        problem = torch.cat([graph.factor_problem(block) for block in graph.blocks])
        chosen = feedback.active[problem]
        if self.size is not None:
            steps = self.epoch_steps(graph).clamp(min=1)
            order = _shuffled(key, graph, order, problem, key.step // steps)
            first = (key.step % steps * self.size)[problem]
            chosen = chosen & (order.rank >= first) & (order.rank < first + self.size)
        sizes = [block.num_factors for block in graph.blocks]
        return [part.nonzero()[:, 0] for part in chosen.split(sizes)], order


def _shuffled(key: Key, graph: FactorGraph, order: Order, problem: Tensor, epoch: Tensor) -> Order:
    if bool((epoch == order.epoch).all()):
        return order
    ids = torch.cat([block.ids for block in graph.blocks])
    by_draw = permutation_keys(key, ids, epoch[problem]).argsort()
    by_problem = by_draw[problem[by_draw].argsort(stable=True)]
    counts = graph.factors_per_problem
    first = (counts.cumsum(0) - counts)[problem[by_problem]]
    rank = torch.empty_like(by_problem)
    rank[by_problem] = torch.arange(len(rank), device=rank.device) - first
    return Order(rank, epoch)
