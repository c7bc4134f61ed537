"""Settings chosen from the problem, and the table of solver names.

`plan` fills what the caller left to "auto" from the number of examples F, the weights A and the
shape of the net; docs/choosing.md gives the measurements behind each rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from vitrail.baselines import straight_through
from vitrail.data.dataset import Coding
from vitrail.solvers import Solver, belief_propagation
from vitrail.updates import UPDATES, Update

AUTO = "auto"


@dataclass(frozen=True)
class Problem:
    """What the rules look at, for one net."""

    num_factors: int  # distinct training examples
    num_inputs: int
    hidden: tuple[int, ...] | None  # None for a network of the user's own
    num_weights: int
    num_problems: int = 1

    @property
    def linear(self) -> bool:
        return self.hidden == ()


@dataclass(frozen=True)
class Plan:
    """All settings of a training run."""

    solver: str
    update: str
    samples: int
    beta: float
    damping: float
    batch: int | None
    epochs: int
    restarts: int

    def steps(self, num_factors: int) -> int:
        """Steps of a run in which every factor is updated `epochs` times."""
        size = num_factors if self.batch is None else self.batch
        return max(1, self.epochs * math.ceil(num_factors / size))


Given = dict[str, Any]


def plan(problem: Problem, **given: Any) -> Plan:
    """The plan for a problem; what is given and not "auto" stands as it is."""
    given = {name: value for name, value in given.items() if value != AUTO}
    solver = given.pop("solver", "sbp")
    if solver not in SOLVERS:
        raise ValueError(f"unknown solver {solver!r}; choose one of: auto, {', '.join(SOLVERS)}")
    chosen = replace(SOLVERS[solver].plan(problem), solver=solver)
    update = given.get("update", chosen.update)
    if update not in UPDATES:
        raise ValueError(f"unknown update {update!r}; choose one of: auto, {', '.join(UPDATES)}")
    return replace(chosen, **given)


def auto_hidden(num_factors: int, num_inputs: int) -> tuple[int, ...]:
    """Hidden units: odd, so that a vote of the units has no tie."""
    return (7,)


def auto_bias(coding: Coding, num_bits: int) -> int:
    """Constant inputs: a few for a net that reads 0/1, one for a net that reads ±1."""
    return 3 if coding == "binary" else 1


@dataclass(frozen=True)
class Entry:
    """A solver's name stands for a rule for its settings and a way to build it."""

    plan: Callable[[Problem], Plan]
    build: Callable[[Plan], Solver[Any]]


def build(plan: Plan) -> Solver[Any]:
    """The solver that a plan describes."""
    return SOLVERS[plan.solver].build(plan)


def _update(plan: Plan) -> Update:
    if plan.update in ("exact", "closed_form"):
        return UPDATES[plan.update]()
    return UPDATES[plan.update](plan.samples)


def _stochastic(problem: Problem) -> Plan:
    batch = 128 if problem.num_factors > 600 else 32
    update = "flip" if problem.hidden is not None and len(problem.hidden) < 2 else "counting"
    samples = 5 if update == "flip" else 64
    return Plan("sbp", update, samples, 3.0, 0.2, batch, 20, 1)


def _unsampled(problem: Problem) -> Plan:
    update = "closed_form" if problem.linear else "exact"
    return replace(_stochastic(problem), update=update, samples=0)


def _gradient(problem: Problem) -> Plan:
    return replace(_stochastic(problem), epochs=40)


def _bp(plan: Plan) -> Solver[Any]:
    return belief_propagation(_update(plan), damping=plan.damping, batch=plan.batch)


def _ste(plan: Plan) -> Solver[Any]:
    return straight_through(batch=plan.batch)


SOLVERS: dict[str, Entry] = {
    "bp": Entry(_unsampled, _bp),
    "sbp": Entry(_stochastic, _bp),
    "ste": Entry(_gradient, _ste),
}
