"""Schedules of factor updates: all factors, or a random batch from every problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from vitrail.checks import checked_count
from vitrail.graph import FactorGraph
from vitrail.numerics import chunks
from vitrail.random import Key, permutation_keys
from vitrail.solvers.base import Feedback

CACHE = 2**18  # bytes


@dataclass(frozen=True)
class Order:
    """The current shuffle of the factors, problem by problem, and the epoch of each problem."""

    factors: Tensor  # (F,) int64, indices over all blocks and ranks
    epoch: Tensor  # (P,) int64

    @cached_property
    def epochs(self) -> list[int]:
        """The epochs on the CPU, copied from a GPU once per shuffle."""
        return self.epoch.tolist()


@dataclass(frozen=True)
class Batches:
    """Factors of every problem per step, without replacement within an epoch.

    A problem of M factors has ⌈M/size⌉ steps per epoch. A size of None is flooding.
    """

    size: int | None  # factors per step in each problem; None is all of them

    def __post_init__(self) -> None:
        if self.size is not None:
            checked_count("batch", self.size, 1, 2**31)

    def start(self, graph: FactorGraph) -> Order:
        every = graph.everything.num_factors
        none = torch.zeros(every, dtype=torch.int64, device=graph.device)
        return Order(none, torch.full((graph.num_problems,), -1, device=graph.device))

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        """Steps in which every factor of a problem is updated once, (P,) int64."""
        counts = graph.factors_per_problem
        if self.size is None:
            return torch.ones_like(counts)
        return (counts + self.size - 1) // self.size

    def select(
        self, key: Key, graph: FactorGraph, order: Order, feedback: Feedback
    ) -> tuple[list[Tensor | None], Order]:
        """Factors to update at step `key.step`: an index (F',) per block, None for a whole block.

        Inactive problems get none. Each rank takes its own factors of the batch.
        """
        if self.size is None:
            if feedback.all_active():
                return [None] * len(graph.blocks), order
            chosen = [feedback.active[problem] for problem in graph.problem_of_factors]
            return [part.nonzero()[:, 0] for part in chosen], order
        if graph.num_problems == 1 and feedback.all_active():
            return self._select_single(key, graph, order)
        steps = self.epoch_steps(graph)
        order = _shuffle(key, graph, order, key.step // steps.clamp(min=1))
        counts = graph.factors_per_problem
        first = key.step % steps.clamp(min=1) * self.size
        taken = torch.where(feedback.active, (counts - first).clamp(0, self.size), 0)
        chosen = order.factors[_concatenated_ranges(counts.cumsum(0) - counts + first, taken)]
        return self._by_block(graph, chosen), order

    def _select_single(
        self, key: Key, graph: FactorGraph, order: Order
    ) -> tuple[list[Tensor | None], Order]:
        """`select` for a single problem, without reading from a GPU."""
        assert self.size is not None
        steps = max(1, -(-graph.everything.num_factors // self.size))
        epoch, place = divmod(key.step, steps)
        if order.epochs != [epoch]:
            order = _shuffle(key, graph, order, torch.full_like(order.epoch, epoch))
        first = place * self.size
        return self._by_block(graph, order.factors[first : first + self.size]), order

    def _by_block(self, graph: FactorGraph, chosen: Tensor) -> list[Tensor | None]:
        """This rank's index of each block, from indices over all blocks and ranks.

        Sorted, since rows are read faster in memory order.
        """

        def own(places: Tensor) -> Tensor:
            return _sort(graph.world.own(places))

        if len(graph.blocks) == 1:
            return [own(chosen)]
        ends = torch.tensor([block.num_factors for block in graph.everything.blocks]).cumsum(0)
        block = torch.bucketize(chosen, ends.to(chosen.device), right=True)
        starts = [0, *ends.tolist()]
        return [own(chosen[block == b] - starts[b]) for b in range(len(graph.blocks))]


def _sort(places: Tensor) -> Tensor:
    """Sort, on a CPU by numpy, which takes a fifth of torch's time."""
    if places.device.type != "cpu":
        return places.sort().values
    return torch.from_numpy(np.sort(places.numpy()))


def _concatenated_ranges(start: Tensor, length: Tensor) -> Tensor:
    """start[0], start[0] + 1, … length[0] of them, then those of start[1]: (Σ length,) int64."""
    before = (length.cumsum(0) - length).repeat_interleave(length)
    place = torch.arange(len(before), device=start.device)
    return start.repeat_interleave(length) + place - before


def _shuffle(key: Key, graph: FactorGraph, order: Order, epoch: Tensor) -> Order:
    if bool((epoch == order.epoch).all()):
        return order
    graph = graph.everything
    ids = torch.cat([block.ids for block in graph.blocks])
    problem = torch.cat(graph.problem_of_factors)
    # every rank shuffles all factors, in chunks that fit into the cache for speed
    parts = chunks(len(ids), 8, CACHE) if ids.device.type == "cpu" else [slice(None)]
    keys = [permutation_keys(key, ids[part], epoch[problem[part]]) for part in parts]
    by_draw = torch.cat(keys).argsort()
    if graph.num_problems > 1:
        by_draw = by_draw[problem[by_draw].argsort(stable=True)]
    return Order(by_draw, epoch)
