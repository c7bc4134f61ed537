"""Belief propagation that looks at samples of its marginals too: S4P's rival in looks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, bernoulli, thresholds
from vitrail.solvers.bp import BeliefPropagation, BPState


@dataclass(frozen=True)
class LookingBP(BeliefPropagation):
    """The decoded configuration and `looks` drawn from the marginals, at every scoring."""

    looks: int

    def candidates(self, key: Key, graph: FactorGraph, state: BPState) -> Tensor:
        """(1 + looks, V) bool."""
        zero = torch.zeros((), dtype=torch.int64, device=graph.device)
        numbers = torch.arange(1, self.looks + 1, device=graph.device)
        drawn = bernoulli(key.of(Stream.DECODE), zero, numbers, thresholds(state.belief))
        return torch.cat([super().candidates(key, graph, state), drawn])


def looking(solver: BeliefPropagation, looks: int) -> LookingBP:
    """The same belief propagation, looking at more."""
    return LookingBP(**vars(solver), looks=looks)
