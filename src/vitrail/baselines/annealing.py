"""Simulated annealing: single bit flips at a falling temperature (Kirkpatrick et al. 1983)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vitrail.checks import checked_count
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream
from vitrail.solvers.base import Feedback, Info
from vitrail.solvers.flip_search import Energy
from vitrail.solvers.polish import Polish, PolishState


@dataclass(frozen=True)
class Annealing(Polish):
    """Only the independent half of `polish`, from random starts at full heat, for one cooling."""

    def init(self, key: Key, graph: FactorGraph) -> PolishState:
        bits = self.random_starts(key.of(Stream.PRIOR), graph)
        score = graph.objective(bits)
        return PolishState(bits, score, bits, score)

    def step(
        self, key: Key, graph: FactorGraph, state: PolishState, feedback: Feedback
    ) -> tuple[PolishState, Info]:
        state, info = super().step(key, graph, state, feedback)
        cold = key.step + 1 >= self.steps
        return state, replace(info, residual=info.residual * (not cold))

    def candidates(self, key: Key, graph: FactorGraph, state: PolishState) -> Tensor:
        """The current state of the best chain of each problem, and the best configuration."""
        leader = state.score.argmax(0)[graph.problem]
        last = state.bits.gather(0, leader[None])
        return torch.cat([last, super().candidates(key, graph, state)])


def annealing(
    flips: int = 1_000_000,
    *,
    chains: int = 2,
    steps: int = 20,
    energy: Energy | None = None,
) -> Annealing:
    """Simulated annealing of any graph; fastest on nets of this package's layers.

    A flip costs an evaluation of every factor, which kernels compute incrementally. The best
    temperatures depend on the task.

    Args:
        flips: Proposals per problem, of all chains together.
        chains: Independent searches, one per thread at a time.
        steps: Steps into which the flips are divided.
        energy: `errors()` or `ramp()` of `vitrail.solvers.flip_search`, with their temperatures;
            None takes a ramp for one-layer nets and errors for others.

    Examples:
        >>> annealing(flips=50_000).chains
        2
    """
    for name, value in (("flips", flips), ("chains", chains), ("steps", steps)):
        checked_count(name, value, 1)
    proposals = -(-flips // (steps * chains))
    return Annealing(
        proposals * chains, steps=steps, chains=chains, heat=math.inf, energy=energy, agree=False
    )
