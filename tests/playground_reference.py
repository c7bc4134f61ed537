"""Python's side of the playground's tests: the same runs, told in the same words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitrail import factor_graph, perceptron
from vitrail.datasets import glass, stained_glass
from vitrail.factors import Factors
from vitrail.random import Key, thresholds
from vitrail.solvers import Feedback, Solver, belief_propagation, s4p
from vitrail.surveys import weighted
from vitrail.surveys.histogram import Grid, masses
from vitrail.surveys.variable import log_means
from vitrail.updates import Estimate
from vitrail.updates.base import configurations
from vitrail.updates.flip import Flip

ROOT = Path(__file__).parents[1]
PLAYGROUND = ROOT / "docs" / "playground"
STEPS = 50
BINS = 31


@dataclass(frozen=True)
class Case:
    """The settings of a run, as the page names them."""

    solver: str
    seed: int = 0
    data: str = "glass"
    examples: int = 20
    weights: int = 10
    beta: float = math.inf
    damping: float = 0.5
    samples: int = 5
    surveySamples: int = 100  # noqa: N815 (the page's name)

    def __str__(self) -> str:
        beta = "hard" if self.beta == math.inf else f"beta{self.beta:g}"
        return f"{self.solver}-{self.data}-{self.examples}x{self.weights}-{beta}-seed{self.seed}"

    @property
    def hash(self) -> str:
        """The settings as the page's address spells them."""
        return "&".join(f"{name}={_spelled(value)}" for name, value in asdict(self).items())


def _spelled(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


BP = Case("bp")
SURVEYS = Case("s4p")
CASES = [
    BP,
    replace(BP, seed=1, beta=1.0, damping=0.8),
    replace(BP, seed=2**32 - 1, examples=40, weights=16, beta=3.0, damping=0.0, samples=50),
    replace(BP, seed=7, data="stained", examples=31, weights=5, beta=0.1, damping=0.95, samples=1),
    SURVEYS,
    replace(SURVEYS, seed=1, beta=1.0, damping=0.2, surveySamples=20),
    replace(SURVEYS, seed=2**32 - 1, examples=9, weights=13, beta=5.0, damping=0.0, samples=3),
    replace(SURVEYS, seed=7, data="stained", examples=31, weights=7, samples=2, surveySamples=1),
    replace(SURVEYS, seed=5, examples=12, damping=0.35, surveySamples=200),
]


@dataclass(frozen=True, kw_only=True)
class RecordedFlip(Flip):
    """Flips that remember the hits behind their last estimate, (2, F, R, A)."""

    hits: list[Tensor] = field(default_factory=list)

    def estimate(self, key: Key, factors: Factors, cavity: Tensor) -> Estimate:
        states = configurations(key.of(self.stream), factors, thresholds(cavity), self.samples)
        num_factors, tracks, arity = cavity.shape
        shape = (num_factors, tracks, self.samples, arity)
        self.hits[:] = [score.view(shape).sum(2) for score in factors.flips(states)]
        return super().estimate(key, factors, cavity)


def traced(case: Case, steps: int = STEPS) -> dict[str, Any]:
    """What `trace.mjs` tells of the same run."""
    make = glass if case.data == "glass" else stained_glass
    data = make(case.examples, case.weights, seed=case.seed)
    graph = factor_graph(perceptron(data.inputs, data.labels, beta=case.beta))
    update = RecordedFlip(samples=case.samples, backend="torch")
    solver = _solver(case, update)
    start = Key(case.seed)
    state, info = solver.init(start, graph), None
    best = int(graph.satisfied(solver.candidates(start, graph, state)).max())
    feedback = Feedback(torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.bool))
    rows, decoded = [], torch.empty(0)
    for step in range(steps):
        key = start.at(step)
        state, info = solver.step(key, graph, state, feedback)
        candidates = solver.candidates(key, graph, state)
        satisfied = graph.satisfied(candidates)
        best, decoded = max(best, int(satisfied.max())), candidates[0]
        rows.append(
            {
                "hits": [_checksum(score) for score in update.hits],
                "messages": _messages(case, state).flatten().tolist(),
                "logOdds": solver.log_odds(graph, state).tolist(),
                "count": int(satisfied[0]),
                "best": best,
            }
        )
    surveys = state.surveys[0].flatten().tolist() if case.solver == "s4p" else None
    effective = float(info.records["effective_draws"]) if info and surveys else None
    return {
        "rows": rows,
        "inputs": data.inputs.flatten().tolist(),
        "labels": data.labels.tolist(),
        "one": update.hits[0].flatten().tolist(),
        "zero": update.hits[1].flatten().tolist(),
        "surveys": surveys,
        "effective": effective,
        "decoded": decoded.int().tolist(),
    }


def _solver(case: Case, update: Flip) -> Solver[Any]:
    if case.solver == "bp":
        return belief_propagation(update, damping=case.damping)
    return s4p(
        update,
        variable=weighted(),
        survey_samples=case.surveySamples,
        bins=BINS,
        damping=case.damping,
    )


def _checksum(hits: Tensor) -> int:
    numbers = hits.flatten()
    return int((numbers * (torch.arange(len(numbers)) % 97 + 1)).sum())


def _messages(case: Case, state: Any) -> Tensor:
    """Messages (F, A), log-odds; of surveys those of their means."""
    if case.solver == "bp":
        return state.messages[0]
    means = log_means(masses(state.surveys[0]), Grid(BINS, hard_ends=False))
    return means[0] - means[2]


def agree(found: dict[str, Any], case: Case) -> None:
    """Assert that a run of the page is Python's: integers, messages and beliefs bit for bit."""
    expected = traced(case)
    effective = found.pop("effective"), expected.pop("effective")
    for step, (mine, theirs) in enumerate(zip(expected["rows"], found["rows"], strict=True)):
        assert theirs == mine, f"step {step} differs"
    assert found == expected
    if effective[1] is not None:  # a sum of quotients, which no lattice holds
        assert math.isclose(*effective, rel_tol=1e-12)
