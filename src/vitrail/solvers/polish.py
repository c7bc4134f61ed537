"""Polish: bit-flip search from configurations found by message passing.

Chains first search independently while the temperature falls. Then each chain continues from its
best configuration and flips only the weights on which the chains differ. Where examples outnumber
weights, good configurations share most of their weights (docs/solving.md has measurements). Below
capacity, solutions have nothing in common; with `agree=False` the chains stay independent.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import torch
from torch import Tensor

from vitrail.checks import checked_count, checked_number
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, bernoulli, thresholds
from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.flip_search import Energy, FlipSearch, SearchResult, Segment, flip_searches

RAMP_HEAT = 10.0  # one layer: wide minima are found again from any start
ERRORS_HEAT = 3.0  # hidden units: a hotter search would lose a good start
MIN_FREE_WEIGHTS = 2  # with fewer free weights there is nothing to search


@dataclass(frozen=True)
class PolishState:
    """R chains on all problems at once."""

    bits: Tensor  # (R, V) bool, current states of the chains
    score: Tensor  # (R, P) float64, `graph.objective` of `bits`
    best: Tensor  # (R, V) bool, best configuration of each chain for each problem
    best_score: Tensor  # (R, P) float64, `graph.objective` of `best`


@dataclass(frozen=True)
class Polish(Solver[PolishState]):
    """Local search that improves configurations found by other solvers.

    In the first half of a cycle chains search independently, at a falling temperature. In the
    second half each chain starts at its best configuration and flips only weights on which the
    chains differ; the best of old and new configurations are kept, duplicates last.

    Args:
        flips: Proposals per step of each unsolved problem, shared by its chains.
        steps: Steps of one cycle of cooling; a longer run starts another cycle.
        chains: Independent searches from the best candidates, one per thread at a time.
        heat: First temperature divided by the last; None is 10 for one-layer nets, 3 for others.
        energy: Energy of the first half, see `vitrail.solvers.flip_search`; None chooses it by the
            network.
        agree: Flip only the weights on which chains differ in the second half of the steps.

    Examples:
        >>> polish(flips=5_000).chains
        6
    """

    flips: int = 20_000
    _: KW_ONLY
    steps: int = 8
    chains: int = 6
    heat: float | None = None
    energy: Energy | None = None
    agree: bool = True

    def __post_init__(self) -> None:
        for name in ("flips", "steps", "chains"):
            checked_count(name, getattr(self, name), 1)
        if self.heat is not None:
            checked_number("heat", self.heat, 1)

    def init(self, key: Key, graph: FactorGraph) -> PolishState:
        """Chains drawn from the graph's prior, which may hold earlier marginals."""
        return self.start(key, graph, self.random_starts(key.of(Stream.SEARCH), graph))

    def random_starts(self, key: Key, graph: FactorGraph) -> Tensor:
        """Configurations (R, V) bool drawn from the graph's prior."""
        zero = torch.zeros(1, dtype=torch.int64, device=graph.device)
        rows = torch.arange(self.chains, device=graph.device)
        return bernoulli(key, zero, rows, thresholds(graph.log_prior))

    def start(self, key: Key, graph: FactorGraph, candidates: Tensor) -> PolishState:
        """Chains at configurations (C, V) bool, ranked by score for each problem."""
        score = graph.objective(candidates)
        order = torch.sort(-score, dim=0, stable=True).indices
        order = order[torch.arange(self.chains, device=graph.device) % len(candidates)]
        bits = candidates.gather(0, order[:, graph.problem])
        score = score.gather(0, order)
        return PolishState(bits, score, bits, score)

    def step(
        self, key: Key, graph: FactorGraph, state: PolishState, feedback: Feedback
    ) -> tuple[PolishState, Info]:
        bits, last_score = state.bits.clone(), state.score.clone()
        best, best_score = state.best.clone(), state.best_score.clone()
        independent = (self.steps + 1) // 2 if self.agree else self.steps
        part = key.step % self.steps
        proposals = -(-self.flips // self.chains)
        evaluations = 0
        for search in flip_searches(graph):
            number, mine = search.number, search.variables
            if not feedback.active[number]:
                continue
            seen, score = best[:, mine], best_score[:, number]
            if part < independent:
                shares = part / independent, (part + 1) / independent
                segment = Segment(self._energy(search), proposals, *shares)
                found = search.run(key, bits[:, mine], segment)
                bits[:, mine], last_score[:, number] = found.last, found.last_score
                better = found.best_score > score
                seen = torch.where(better[:, None], found.best, seen)
                score = torch.where(better, found.best_score, score)
            else:
                segment = Segment(search.last_energy, proposals, free=_differing(seen))
                found = search.run(key, seen, segment)
                seen, score = _best_of(found, seen, score)
                bits[:, mine], last_score[:, number] = seen, score
            best[:, mine], best_score[:, number] = seen, score
            evaluations += found.evaluations
        info = Info(
            residual=torch.ones_like(feedback.accuracy),
            evaluations=evaluations,
            contradiction=torch.zeros_like(feedback.active),
        )
        return PolishState(bits, last_score, best, best_score), info

    def log_odds(self, graph: FactorGraph, state: PolishState) -> Tensor:
        """From the chains whose best has a one, with half a pseudo-count per value."""
        ones = state.best.sum(0).double()
        return torch.log(ones + 0.5) - torch.log(self.chains - ones + 0.5)

    def candidates(self, key: Key, graph: FactorGraph, state: PolishState) -> Tensor:
        """The best configuration of each problem so far."""
        leader = state.best_score.argmax(0)[graph.problem]
        return state.best.gather(0, leader[None])

    def _energy(self, search: FlipSearch) -> Energy:
        energy = self.energy or search.default_energy
        heat = self.heat or search.default_heat or (RAMP_HEAT if energy.width > 0 else ERRORS_HEAT)
        return replace(energy, start=min(energy.start, heat * energy.end))


def _differing(seen: Tensor) -> Tensor | None:
    """Weights on which configurations (R, N) differ, (K,) int64; None (all) if too few differ."""
    free = torch.nonzero((seen != seen[0]).any(0))[:, 0]
    return free if len(free) >= MIN_FREE_WEIGHTS else None


def _best_of(found: SearchResult, seen: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    """The best R of old and new configurations, (R, N) and (R,); duplicates come last."""
    bits, points = torch.cat([found.best, seen]), torch.cat([found.best_score, score])
    order = torch.sort(-points, stable=True).indices
    bits, points = bits[order], points[order]
    again = (bits[:, None] == bits[None]).all(-1).tril(-1).any(1)
    kept = torch.sort(again.to(torch.int8), stable=True).indices[: len(seen)]
    return bits[kept], points[kept]


polish = Polish
