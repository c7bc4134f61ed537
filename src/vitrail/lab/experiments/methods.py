"""The methods that figures compare, as frozen settings that make a solver.

A method runs for a given number of epochs. All are scored once per epoch, so the best decoded
configuration is the best of equally many. S4P's tracks are scored too and count as configurations
found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from vitrail.baselines.ste import Optimiser, straight_through
from vitrail.factors import HARD
from vitrail.graph import FactorGraph
from vitrail.lab.experiments.units import Row
from vitrail.learning.table import IN_FIGURES
from vitrail.random import Key
from vitrail.solvers import Solver, adaptive, belief_propagation, linear, reinforced, steady
from vitrail.solvers.s4p import from_messages, s3p, s4p
from vitrail.solvers.stages import Stage, StagedSolution, run_stages
from vitrail.surveys import weighted
from vitrail.updates import UPDATES, flip

UpdateName = Literal["pinned", "flip", "counting", "closed_form"]
Settling = Literal["none", "steady", "reinforced"]
EARLY = 5  # epochs within which the paper says that message passing converges


@dataclass(frozen=True)
class SBP:
    """Stochastic belief propagation, or exact with `closed_form`.

    settling: what makes its messages converge; reinforcement does so within EARLY epochs.
    """

    name: str = IN_FIGURES["sbp"]
    update: UpdateName = "flip"
    samples: int = 5
    damping: float | Literal["adaptive"] = 0.8
    batch: int | None = None
    beta: float = HARD
    settling: Settling = "none"

    def solver(self) -> Solver[Any]:
        damping = adaptive() if self.damping == "adaptive" else self.damping
        drawn = () if self.update == "closed_form" else (self.samples,)
        update = UPDATES[self.update](*drawn)
        solver = belief_propagation(update, damping=damping, batch=self.batch)
        if self.settling == "steady":
            return steady(solver)
        if self.settling == "reinforced":
            return reinforced(solver, linear(1 / EARLY), attempts=1)
        return solver


@dataclass(frozen=True)
class SNMP(SBP):
    """SBP for all epochs, then S4P for as many on the problems that SBP did not solve.

    Variable→factor surveys are drawn from the tilted measure, Gaussian from 200 examples on, since
    the weights of Algorithm 3 degenerate with the number of examples.
    """

    name: str = IN_FIGURES["snmp"]
    survey_samples: int = 100
    bins: int = 201
    survey_damping: float = 0.2

    def surveys(self) -> Any:
        """The second stage."""
        return s4p(
            UPDATES[self.update](self.samples),
            survey_samples=self.survey_samples,
            bins=self.bins,
            damping=self.survey_damping,
            batch=self.batch,
        )


@dataclass(frozen=True)
class GD:
    """Straight-through gradient descent; beta has no effect."""

    name: str = IN_FIGURES["ste"]
    optimiser: Optimiser = "adam"
    lr: float = 0.03
    batch: int | None = None
    beta: float = HARD

    def solver(self) -> Solver[Any]:
        return straight_through(self.optimiser, lr=self.lr, batch=self.batch)


@dataclass(frozen=True)
class Rate:
    """GD's step on problems of up to `examples` examples, by scripts/tune_baselines.py."""

    examples: int
    lr: float
    optimiser: Optimiser = "adam"


def tuned(rates: Sequence[Rate], examples: int, batch: int) -> GD:
    """GD with the step tuned on other problems of about this size; `rates` are ascending."""
    rate = next((rate for rate in rates if examples <= rate.examples), rates[-1])
    return GD(optimiser=rate.optimiser, lr=rate.lr, batch=batch)


@dataclass(frozen=True)
class S4P:
    """Stochastic survey propagation as printed: Algorithms 2 and 3, histograms both ways."""

    name: str = IN_FIGURES["s4p"]
    samples: int = 5
    survey_samples: int = 100
    bins: int = 201
    damping: float = 0.2
    beta: float = HARD

    def solver(self) -> Solver[Any]:
        settings = {"variable": weighted(), "feed": "histogram"}
        return s4p(flip(self.samples), **self._sizes, **settings)

    @property
    def _sizes(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("survey_samples", "bins", "damping")}


@dataclass(frozen=True)
class S3P(S4P):
    """The same with the variable side exact, by convolution."""

    name: str = IN_FIGURES["s3p"]

    def solver(self) -> Solver[Any]:
        return s3p(flip(self.samples), **self._sizes)


Method = SBP | SNMP | GD | S4P | S3P


@dataclass(frozen=True)
class Watched(Solver[Any]):
    """A solver whose decoded configuration is also scored on test examples."""

    solver: Solver[Any]
    test: FactorGraph
    seen: list[Tensor] = field(default_factory=list)  # (P,) float64 per score, the first untrained

    def init(self, key: Key, graph: FactorGraph) -> Any:
        return self.solver.init(key, graph)

    def step(self, key: Key, graph: FactorGraph, state: Any, feedback: Any) -> Any:
        return self.solver.step(key, graph, state, feedback)

    def log_odds(self, graph: FactorGraph, state: Any) -> Tensor:
        return self.solver.log_odds(graph, state)

    def candidates(self, key: Key, graph: FactorGraph, state: Any) -> Tensor:
        found = self.solver.candidates(key, graph, state)
        self.seen.append(self.test.accuracy(found[:1])[0])
        return found

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return self.solver.epoch_steps(graph)


@dataclass(frozen=True)
class Outcome:
    """A solution with the number of steps between scores."""

    solution: StagedSolution
    every: int

    def scores(self, quantity: str) -> Tensor:
        """A column of the history at every score, (scores, P); the last row of a shorter run.

        A run that starts at a solution takes no step: its start is scored.
        """
        solution = self.solution
        if solution.steps == 0:
            stage = torch.zeros_like(solution.accuracy)
            start = {"accuracy": solution.accuracy, "best": solution.best_accuracy, "stage": stage}
            return start[quantity][None]
        rows = solution.history[quantity]
        return rows[self.every - 1 :: self.every] if len(rows) >= self.every else rows[-1:]

    def row(self, problem: int) -> Row:
        """One problem's scores: best found, best and last decoded, and after few epochs.

        early and fifth are the best so far and the decoded accuracy after five epochs of the last
        stage, which for SNMP is that of surveys.
        """
        solution = self.solution
        stages = self.scores("stage")
        few = min(len(stages), int((stages < stages[-1]).sum()) + EARLY)
        accuracy = self.scores("accuracy")[:, problem]
        best = float(solution.best_accuracy[problem])
        return {
            "best": best,
            "decoded": float(accuracy.max()),
            "last": float(solution.accuracy[problem]),
            "early": float(self.scores("best")[:few, problem].max()),
            "fifth": float(accuracy[few - 1]),
            "solved": best >= 1.0,
            "evaluations": solution.evaluations / len(solution.status),
        }


def solve(
    method: Method,
    graph: FactorGraph,
    epochs: int,
    seed: int,
    *,
    scores: int = 1,
    test: FactorGraph | None = None,
) -> tuple[Outcome, Tensor]:
    """Run a method for `epochs` epochs on problems of one size, with `scores` scores per epoch.

    Also gives the decoded accuracies on `test` examples at every score of the first stage,
    (1 + scores, P), the first untrained; nothing without `test`.
    """
    first = method.solver()
    steps = first.epoch_steps(graph)
    if bool((steps != steps[0]).any()):
        raise ValueError(
            "problems of different size differ in steps per epoch; solve them separately"
        )
    every = max(1, int(steps[0]) // scores)
    watched = None if test is None else Watched(first, test)
    limit = epochs * int(steps[0])
    stages = [Stage("first", watched or first, limit, score_every=every)]
    if isinstance(method, SNMP):
        surveys = method.surveys()
        start = from_messages(surveys)
        stages.append(Stage("surveys", surveys, limit, start=start, score_every=every))
    # no tolerance, so that converged messages are scored to the end as all others are
    solution = run_stages(stages, graph.with_beta(method.beta), seed=seed, tolerance=0.0)
    seen = [] if watched is None else watched.seen
    return Outcome(solution, every), torch.stack(seen) if seen else torch.empty(0)
