"""Polish: bit-flip search from configurations that message passing has found.

Marginals know where good configurations lie, and local search finds the best one near by: flips
are followed incrementally where a kernel knows the network, evaluated in batches elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, bernoulli, thresholds
from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.flip_search import Energy, FlipSearch, Stretch, flip_searches


@dataclass(frozen=True)
class PolishState:
    """R chains on all problems at once, the leader first."""

    bits: Tensor  # (R, V) bool, where the chains are
    best: Tensor  # (V,) bool, the best seen of each problem
    best_score: Tensor  # (P,) float64, its satisfied weight


@dataclass(frozen=True)
class Polish(Solver[PolishState]):
    """Rounds of annealed search, the temperature falling within each step.

    A step gives every unsolved problem `flips` proposals, shared by its chains. Even rounds start
    from where the chains ended, odd ones from the best seen: a search that lost its way comes
    back. `heat` is the first temperature in units of the last: low, because the starts are good.
    """

    flips: int
    chains: int
    heat: float
    energy: Energy | None

    def init(self, key: Key, graph: FactorGraph) -> PolishState:
        """Chains drawn from the graph's prior, which may hold marginals found earlier."""
        return self.start(key, graph, self._drawn(key, graph, graph.log_prior, self.chains))

    def start(self, key: Key, graph: FactorGraph, candidates: Tensor) -> PolishState:
        """From configurations (C, V) bool: the best of each problem, then the others by rank."""
        score = graph.satisfied(candidates)
        order = torch.sort(-score, dim=0, stable=True).indices
        rows = torch.arange(self.chains, device=graph.device) % len(candidates)
        bits = candidates.gather(0, order[rows][:, graph.problem])
        return PolishState(bits, bits[0], score.amax(0))

    def step(
        self, key: Key, graph: FactorGraph, state: PolishState, feedback: Feedback
    ) -> tuple[PolishState, Info]:
        bits = state.bits.clone()
        if key.step % 2:
            bits[0] = state.best
        best, best_score = state.best.clone(), state.best_score.clone()
        stretch = Stretch(-(-self.flips // self.chains))
        evaluations = 0
        for search in flip_searches(graph):
            number, mine = search.number, search.variables
            if not feedback.active[number]:
                continue
            found = search.run(key, bits[:, mine], self._energy(search), stretch)
            leader = int(found.best_score.argmax())
            if found.best_score[leader] > best_score[number]:
                best[mine], best_score[number] = found.best[leader], found.best_score[leader]
            bits[:, mine] = found.last
            evaluations += found.evaluations
        info = Info(
            residual=torch.ones_like(feedback.accuracy),
            evaluations=evaluations,
            contradiction=torch.zeros_like(feedback.active),
        )
        return PolishState(bits, best, best_score), info

    def log_odds(self, graph: FactorGraph, state: PolishState) -> Tensor:
        """From how many chains have a one, with half a chain for each value."""
        ones = state.bits.sum(0).double()
        return torch.log(ones + 0.5) - torch.log(self.chains - ones + 0.5)

    def candidates(self, key: Key, graph: FactorGraph, state: PolishState) -> Tensor:
        return state.best[None]

    def _energy(self, search: FlipSearch) -> Energy:
        energy = self.energy or search.default_energy()
        return replace(energy, start=min(energy.start, self.heat * energy.end))

    def _drawn(self, key: Key, graph: FactorGraph, log_odds: Tensor, num: int) -> Tensor:
        zero = torch.zeros(1, dtype=torch.int64, device=graph.device)
        rows = torch.arange(num, device=graph.device)
        return bernoulli(key.of(Stream.SEARCH), zero, rows, thresholds(log_odds))


def polish(
    flips: int = 20_000, *, chains: int = 2, heat: float = 3.0, energy: Energy | None = None
) -> Polish:
    """Local search that improves what others found.

    flips: proposals of each unsolved problem a step. chains: from the best candidates, one per
    thread at a time. heat: first temperature over the last one. energy: what goes down, see
    `vitrail.solvers.flip_search`; None takes what suits the network.
    """
    if flips < 1 or chains < 1:
        raise ValueError(f"flips and chains must be at least 1, got {flips} and {chains}")
    if heat < 1:
        raise ValueError(f"heat must be at least 1, got {heat}")
    return Polish(flips, chains, heat, energy)
