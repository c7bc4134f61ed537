"""Simulated annealing: single bit flips at a falling temperature (Kirkpatrick et al. 1983)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, bernoulli, thresholds
from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.flip_search import Energy, Stretch, flip_searches


@dataclass(frozen=True)
class AnnealingState:
    """R chains on all problems at once."""

    bits: Tensor  # (R, V) bool, where the chains are
    score: Tensor  # (R, P) float64, satisfied weight of `bits`
    best: Tensor  # (R, V) bool, the best that each has seen of each problem
    best_score: Tensor  # (R, P) float64


@dataclass(frozen=True)
class Annealing(Solver[AnnealingState]):
    """`flips` proposals of each problem, shared by the chains and cut into `steps` steps.

    After the last step nothing is left to cool, so the run counts as converged.
    """

    flips: int
    chains: int
    steps: int
    energy: Energy | None

    def init(self, key: Key, graph: FactorGraph) -> AnnealingState:
        zero = torch.zeros(1, dtype=torch.int64, device=graph.device)
        chain = torch.arange(self.chains, device=graph.device)
        bits = bernoulli(key.of(Stream.PRIOR), zero, chain, thresholds(graph.log_prior))
        score = graph.satisfied(bits)
        return AnnealingState(bits, score, bits, score)

    def step(
        self, key: Key, graph: FactorGraph, state: AnnealingState, feedback: Feedback
    ) -> tuple[AnnealingState, Info]:
        bits, score = state.bits.clone(), state.score.clone()
        best, best_score = state.best.clone(), state.best_score.clone()
        here = min(key.step, self.steps - 1)
        proposals = -(-self.flips // (self.steps * self.chains))
        stretch = Stretch(proposals, here / self.steps, (here + 1) / self.steps)
        evaluations = 0
        for search in flip_searches(graph):
            number, mine = search.number, search.variables
            if not feedback.active[number]:
                continue
            energy = self.energy or search.default_energy()
            found = search.run(key, bits[:, mine], energy, stretch)
            better = found.best_score > best_score[:, number]
            best[:, mine] = torch.where(better[:, None], found.best, best[:, mine])
            best_score[:, number] = torch.where(better, found.best_score, best_score[:, number])
            bits[:, mine], score[:, number] = found.last, found.last_score
            evaluations += found.evaluations
        cold = key.step + 1 >= self.steps
        info = Info(
            residual=torch.full_like(feedback.accuracy, 0.0 if cold else 1.0),
            evaluations=evaluations,
            contradiction=torch.zeros_like(feedback.active),
        )
        return AnnealingState(bits, score, best, best_score), info

    def log_odds(self, graph: FactorGraph, state: AnnealingState) -> Tensor:
        """From how many chains have a one at their best, with half a chain for each value."""
        ones = state.best.sum(0).double()
        return torch.log(ones + 0.5) - torch.log(self.chains - ones + 0.5)

    def candidates(self, key: Key, graph: FactorGraph, state: AnnealingState) -> Tensor:
        """Where the leading chain of each problem is, then the best seen of each."""
        rows = []
        for bits, score in ((state.bits, state.score), (state.best, state.best_score)):
            leader = score.argmax(0)[graph.problem]
            rows.append(bits.gather(0, leader[None])[0])
        return torch.stack(rows)


def annealing(
    flips: int = 1_000_000,
    *,
    chains: int = 2,
    steps: int = 20,
    energy: Energy | None = None,
) -> Annealing:
    """Simulated annealing of any graph; fastest on nets of this package's layers.

    A flip costs an evaluation of every factor, incremental where a kernel follows it. The best
    temperatures differ from task to task: settle them by a small search.

    Args:
        flips: Proposals of each problem, all chains together.
        chains: Independent searches, one per thread at a time.
        steps: Steps of the run that the flips are cut into.
        energy: `errors()` or `ramp()` of `vitrail.solvers.flip_search`, with their temperatures;
            None takes a ramp for one-layer nets and errors for the rest.

    Returns:
        The solver, for `run`.

    Examples:
        >>> annealing(flips=50_000).chains
        2
    """
    for name, value in (("flips", flips), ("chains", chains), ("steps", steps)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    return Annealing(flips, chains, steps, energy)
