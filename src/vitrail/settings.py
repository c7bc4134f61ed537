"""Settings chosen from the problem, and the table of solver names.

`plan` fills what the caller left to "auto" from the number of examples F, the weights A and the
shape of the net; docs/tables.md gives the measurements behind each rule. How messages pass, and
which stages "auto" goes through, is settled by `vitrail.solvers.portfolio`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from vitrail.baselines import straight_through
from vitrail.data.dataset import Coding
from vitrail.graph import FactorGraph
from vitrail.solvers import Stage, belief_propagation, portfolio, s3p, s4p, snmp
from vitrail.solvers.portfolio import LEAST_HITS, LOOKS_PER_EPOCH, NAMES, Passing, usual_passing
from vitrail.updates import UPDATES, Update, counting

AUTO = "auto"
POLISH_FLIPS = 20_000  # proposals a round of local search
EPOCHS = 5  # at least: marginals are also what the posterior and later rows start from
SURVEY_SAMPLES = 100  # as in the paper


@dataclass(frozen=True)
class Problem:
    """What the rules look at, for one net."""

    num_factors: int  # distinct training examples
    hidden: tuple[int, ...] | None  # None for a network of the user's own
    num_weights: int

    @property
    def linear(self) -> bool:
        return self.hidden == ()

    @property
    def cheap_flips(self) -> bool:
        """Whether the effect of one weight is known without evaluating the net anew."""
        return self.hidden is not None and len(self.hidden) < 2


@dataclass(frozen=True)
class Plan:
    """All settings of a training run."""

    solver: str
    update: str
    samples: int  # draws of the update, where it draws
    beta: float
    damping: float  # share of the old message that is kept
    batch: int | None
    epochs: int
    restarts: int
    polish: int  # rounds of local search after the solver

    def steps(self, num_factors: int) -> int:
        """Steps of the solver in which every factor is updated `epochs` times."""
        size = num_factors if self.batch is None else self.batch
        return max(1, self.epochs * math.ceil(num_factors / size))


def plan(problem: Problem, **given: Any) -> Plan:
    """The plan for a problem; what is given and not "auto" stands as it is."""
    given = {name: value for name, value in given.items() if value != AUTO}
    solver = given.get("solver", AUTO)
    if solver not in SOLVERS:
        raise ValueError(f"unknown solver {solver!r}; choose one of: {', '.join(SOLVERS)}")
    chosen = replace(SOLVERS[solver].plan(problem), **given)
    if chosen.update not in UPDATES:
        known = ", ".join(UPDATES)
        raise ValueError(f"unknown update {chosen.update!r}; choose one of: auto, {known}")
    for field in fields(chosen):
        value = getattr(chosen, field.name)
        least = 0 if field.name == "polish" else 1
        whole = field.name in ("samples", "batch", "epochs", "restarts", "polish")
        if whole and value is not None and (int(value) != value or value < least):
            raise ValueError(
                f"{field.name} must be a whole number of at least {least}, got {value!r}"
            )
    return chosen


def stages(plan: Plan, graph: FactorGraph, num_factors: int) -> list[Stage]:
    """What a plan runs, one after another; the largest problem has `num_factors`.

    "auto" is the portfolio; any other solver may be followed by its polish.
    """
    flips, rounds = max(1, plan.polish * POLISH_FLIPS), max(1, plan.polish)
    made = SOLVERS[plan.solver].stages
    if made is None:
        passing = Passing(_update(plan), plan.damping, plan.batch, plan.epochs)
        names = NAMES if plan.polish else ("sbp",)
        return [*portfolio(graph, names, passing=passing, flips=flips, rounds=rounds)]
    polish = portfolio(graph, ("polish",), flips=flips, rounds=rounds) if plan.polish else ()
    return [*made(plan, plan.steps(num_factors)), *polish]


HIDDEN_SIZES = ((), (3,), (7,))  # odd, so that a vote of the units has no tie


def auto_bias(coding: Coding) -> int:
    """Constant inputs: a few for a net that reads 0/1, one for a net that reads ±1."""
    return 3 if coding == "binary" else 1


def _update(plan: Plan) -> Update:
    if plan.update in ("exact", "closed_form"):
        return UPDATES[plan.update]()
    if plan.update == "counting":
        return counting(plan.samples, least_hits=LEAST_HITS)
    return UPDATES[plan.update](plan.samples)


def _sampled(problem: Problem) -> Plan:
    """Stochastic belief propagation in factor batches."""
    usual = usual_passing(problem.num_factors, problem.cheap_flips)
    return Plan(
        solver="sbp",
        update="flip" if problem.cheap_flips else "counting",
        samples=5 if problem.cheap_flips else 64,
        beta=5.0,
        damping=usual.damping,
        batch=usual.batch,
        epochs=max(usual.epochs, EPOCHS),
        restarts=1,
        polish=0,
    )


def _polished(problem: Problem) -> Plan:
    return replace(_sampled(problem), solver=AUTO, polish=20 if problem.cheap_flips else 0)


def _unsampled(problem: Problem) -> Plan:
    update = "closed_form" if problem.linear else "exact"
    return replace(_sampled(problem), solver="bp", update=update)


def _gradient(problem: Problem) -> Plan:
    return replace(_sampled(problem), solver="ste", epochs=40)


def _surveys(name: str) -> Callable[[Problem], Plan]:
    """The paper's surveys: every factor at every step, little damping."""
    return lambda problem: replace(
        _sampled(problem), solver=name, beta=3.0, damping=0.2, batch=None, epochs=20
    )


def _bp(plan: Plan, steps: int) -> list[Stage]:
    solver = belief_propagation(_update(plan), damping=plan.damping, batch=plan.batch)
    return [Stage(plan.solver, solver, steps, score_every=_scoring(plan, steps))]


def _ste(plan: Plan, steps: int) -> list[Stage]:
    solver = straight_through(batch=plan.batch)
    return [Stage(plan.solver, solver, steps, score_every=_scoring(plan, steps))]


def _scoring(plan: Plan, steps: int) -> int:
    """Steps between two looks at all examples: a few looks an epoch cost less than the messages."""
    return max(1, steps // (plan.epochs * LOOKS_PER_EPOCH))


def _sp(make: Callable[..., Any]) -> Callable[[Plan, int], list[Stage]]:
    def build(plan: Plan, steps: int) -> list[Stage]:
        solver = make(
            _update(plan), survey_samples=SURVEY_SAMPLES, damping=plan.damping, batch=plan.batch
        )
        return [Stage(plan.solver, solver, steps)]

    return build


def _snmp(plan: Plan, steps: int) -> list[Stage]:
    return list(
        snmp(
            _update(plan),
            steps=(steps, steps),
            batch=plan.batch,
            survey_samples=SURVEY_SAMPLES,
            damping=plan.damping,
        )
    )


@dataclass(frozen=True)
class Entry:
    """A solver's name stands for a rule for its settings and the stages it runs."""

    plan: Callable[[Problem], Plan]
    stages: Callable[[Plan, int], list[Stage]] | None  # None is the portfolio


SOLVERS: dict[str, Entry] = {
    AUTO: Entry(_polished, None),
    "bp": Entry(_unsampled, _bp),
    "sbp": Entry(_sampled, _bp),
    "s3p": Entry(_surveys("s3p"), _sp(s3p)),
    "s4p": Entry(_surveys("s4p"), _sp(s4p)),
    "snmp": Entry(_surveys("snmp"), _snmp),
    "ste": Entry(_gradient, _ste),
}
