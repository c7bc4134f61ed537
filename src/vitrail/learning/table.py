"""The one table of solver names: classifier, command line and experiments all read it.

A name stands for a learner and the options it takes. Most learners run stages of
`vitrail.solvers`: their entries have a rule for their settings and one for their stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vitrail.baselines import BASELINES
from vitrail.learning.problem import (
    AUTO,
    POLISH_FLIPS,
    POLISH_ROUNDS,
    Problem,
    Settings,
    usual,
)
from vitrail.solvers import (
    MessagePassing,
    Stage,
    belief_propagation,
    falling,
    geometric,
    portfolio,
    s3p,
    s4p,
    snmp,
    streaming,
    usual_rate,
)
from vitrail.solvers.annealed import Geometric
from vitrail.solvers.portfolio import NAMES, reinforced_stage
from vitrail.solvers.streaming import Falling
from vitrail.updates import flip

SURVEY_SAMPLES = 100  # as in the paper
SURVEY_BETA = 3.0  # of an example of mean weight
SURVEY_DAMPING = 0.2  # of the old message, as in the paper
GRADIENT_EPOCHS = 40
STREAM_BATCH, STREAM_BATCHES = 128, 16  # examples added up at once, and batches of a step at most
STREAM_STEPS = 20  # at least, so that beta and rate change little at each
STREAM_EPOCHS, LEAST_BATCHES = 20, 500  # few examples are seen more often
LAST_BETA = 10.0  # serves the posterior and one network alike
SAMPLED_DRAWS = 32  # a message, where beliefs that commit are sampled
ALIASES = {"straight_through": "ste", "portfolio": "messages"}
OPTIONS = ("update", "samples", "beta", "damping", "batch", "epochs", "restarts", "polish")
PARAMETERS = {"batch": "batch_size"}  # of the classifier, where it has another name
FOUND = ", which solver='auto' takes for these rows and this net"
STEPS = ("beta", "batch", "epochs", "restarts", "polish")
PROVING = ("beta", "polish")
SEARCHING = ("beta", "restarts", "polish")
IN_FIGURES = {"sbp": "SBP", "ste": "GD", "s3p": "S3P", "s4p": "S4P", "snmp": "SNMP"}  # the paper's

Stages = Sequence[Stage]


@dataclass(frozen=True)
class Entry:
    """What a solver's name stands for.

    settings, stages: of learners that run stages; None of those that do not.
    """

    summary: str
    options: tuple[str, ...]  # those of OPTIONS that it takes
    settings: Callable[[Problem], Settings] | None = None
    stages: Callable[[Settings, Problem], Stages] | None = None


def canonical(name: str) -> str:
    """AUTO or the table's name for this one; ValueError for a name it does not know."""
    found = ALIASES.get(name, name)
    if found != AUTO and found not in SOLVERS:
        raise ValueError(f"unknown solver {name!r}; choose one of: {AUTO}, {', '.join(SOLVERS)}")
    return found


def parameter_of(option: str) -> str:
    """What the classifier calls an option."""
    return PARAMETERS.get(option, option)


def check_options(solver: str, given: Iterable[str], *, found: bool = False) -> None:
    """Raise for an option that a solver does not take; found: it was found by the rules."""
    for option in given:
        if option in SOLVERS[solver].options:
            continue
        others = [name for name, entry in SOLVERS.items() if option in entry.options]
        raise ValueError(
            f"{parameter_of(option)} is no option of {solver!r}{FOUND if found else ''}; leave it "
            f"out, or take a solver that has it: {', '.join(others)}"
        )


def baseline(name: str, **settings: Any) -> Any:
    """The baseline of a name of this table."""
    return BASELINES["straight_through" if name == "ste" else name](**settings)


def polish(settings: Settings, problem: Problem) -> Stages:
    """Local search after any solver, if settings ask for some."""
    if not settings.polish:
        return ()
    shape = problem.shape(settings.beta, settings.restarts)
    flips = settings.polish * POLISH_FLIPS
    return portfolio(shape, ("polish",), flips=flips, rounds=settings.polish)


def _messages(settings: Settings, problem: Problem) -> Stages:
    return portfolio(
        problem.shape(settings.beta, settings.restarts),
        NAMES if settings.polish else ("sbp",),
        passing=settings.passing(),
        flips=max(1, settings.polish) * POLISH_FLIPS,
        rounds=max(1, settings.polish),
    )


def _polished(problem: Problem) -> Settings:
    rounds = POLISH_ROUNDS if problem.cheap_flips else 0
    return replace(usual(problem), solver="messages", polish=rounds)


def _unsampled(problem: Problem) -> Settings:
    update = "closed_form" if problem.linear else "exact"
    return replace(usual(problem), solver="bp", update=update)


def _surveys(name: str) -> Callable[[Problem], Settings]:
    """The paper's surveys: every factor at every step."""
    return lambda problem: replace(
        usual(problem),
        solver=name,
        beta=problem.beta(SURVEY_BETA),
        damping=SURVEY_DAMPING,
        batch=None,
        epochs=20,
    )


def _epochs(name: str, epochs: int) -> Callable[[Problem], Settings]:
    return lambda problem: replace(usual(problem), solver=name, epochs=epochs)


def _hard(name: str) -> Callable[[Problem], Settings]:
    return lambda problem: replace(usual(problem), solver=name, beta=math.inf)


def _paced(solver: Any, settings: Settings, problem: Problem) -> Stages:
    """A solver that takes batches, for as many epochs as the settings say."""
    passing = settings.passing()
    every = passing.score_every(problem.factors)
    return (Stage(settings.solver, solver, passing.steps(problem.factors), score_every=every),)


def _bp(settings: Settings, problem: Problem) -> Stages:
    return _paced(_passing(settings), settings, problem)


def _sbp(settings: Settings, problem: Problem) -> Stages:
    shape, solver = problem.shape(settings.beta, settings.restarts), _passing(settings)
    if not shape.hard:
        solver = shape.softened(solver, settings.passing().steps(problem.factors))
    return _paced(solver, settings, problem)


def _passing(settings: Settings) -> MessagePassing[Any]:
    return belief_propagation(
        settings.made_update(), damping=settings.damping, batch=settings.batch
    )


def _gradient(settings: Settings, problem: Problem) -> Stages:
    return _paced(baseline(settings.solver, batch=settings.batch), settings, problem)


def _streamed(problem: Problem) -> Settings:
    epochs = max(STREAM_EPOCHS, -(-LEAST_BATCHES // -(-problem.factors // STREAM_BATCH)))
    return replace(
        usual(problem), solver="streaming", beta=math.inf, batch=STREAM_BATCH, epochs=epochs
    )


def stream_schedules(steps: int, batches: int) -> tuple[Geometric, Falling]:
    """Beta and rate of `streaming`, for so many steps and batches in all."""
    return geometric(1.0, LAST_BETA, max(2, steps)), falling(usual_rate(batches), steps)


def _streaming(settings: Settings, problem: Problem) -> Stages:
    batch = settings.batch or problem.factors
    in_all = settings.epochs * -(-problem.factors // batch)
    batches = max(1, min(STREAM_BATCHES, in_all // STREAM_STEPS))
    steps = -(-in_all // batches)
    beta, rate = stream_schedules(steps, in_all)
    solver = streaming(batch=batch, batches=batches, beta=beta, rate=rate)
    return (Stage("streaming", solver, steps, score_every=steps),)


def _search(settings: Settings, problem: Problem) -> Stages:
    solver = baseline(settings.solver)
    return (Stage(settings.solver, solver, getattr(solver, "steps", 1)),)


def _sp(make: Callable[..., Any]) -> Callable[[Settings, Problem], Stages]:
    def build(settings: Settings, problem: Problem) -> Stages:
        solver = make(
            settings.made_update(),
            survey_samples=SURVEY_SAMPLES,
            damping=settings.damping,
            batch=settings.batch,
        )
        return (Stage(settings.solver, solver, settings.passing().steps(problem.factors)),)

    return build


def _snmp(settings: Settings, problem: Problem) -> Stages:
    steps = settings.passing().steps(problem.factors)
    return snmp(
        settings.made_update(),
        steps=(steps, steps),
        batch=settings.batch,
        survey_samples=SURVEY_SAMPLES,
        damping=settings.damping,
    )


def _reinforced(settings: Settings, problem: Problem) -> Stages:
    return (reinforced_stage(problem.shape(settings.beta, settings.restarts)),)


def _sampled(settings: Settings, problem: Problem) -> Stages:
    shape = problem.shape(settings.beta, settings.restarts)
    stage = reinforced_stage(shape, shape.sampled(SAMPLED_DRAWS) if not shape.linear else FLIPS)
    return (replace(stage, name="sampled"),)


FLIPS = flip(SAMPLED_DRAWS)

SOLVERS: dict[str, Entry] = {
    "chains": Entry("Metropolis chains from random starts, calibrated on held-out rows", ("beta",)),
    "messages": Entry(
        "messages, then local search; hard examples get all stages", OPTIONS, _polished, _messages
    ),
    "select": Entry("streaming or ste, by accuracy on held-out rows", ("batch", "epochs")),
    "bp": Entry("belief propagation with exact messages", OPTIONS, _unsampled, _bp),
    "sbp": Entry("stochastic belief propagation: sampled messages", OPTIONS, usual, _sbp),
    "s3p": Entry("surveys, exact on the side of variables", OPTIONS, _surveys("s3p"), _sp(s3p)),
    "s4p": Entry("surveys, sampled on both sides", OPTIONS, _surveys("s4p"), _sp(s4p)),
    "snmp": Entry("sbp, then s4p on what is left", OPTIONS, _surveys("snmp"), _snmp),
    "reinforced": Entry(
        "belief propagation that commits", SEARCHING, _hard("reinforced"), _reinforced
    ),
    "sampled": Entry("the same by sampled flips", SEARCHING, _hard("sampled"), _sampled),
    "streaming": Entry("messages that no batch outlives; any depth", STEPS, _streamed, _streaming),
    "ste": Entry("straight-through gradients", STEPS, _epochs("ste", GRADIENT_EPOCHS), _gradient),
    "bop": Entry("binary optimiser", STEPS, _epochs("bop", GRADIENT_EPOCHS), _gradient),
    "bayesbinn": Entry("Bayesian rule", STEPS, _epochs("bayesbinn", GRADIENT_EPOCHS), _gradient),
    "annealing": Entry("simulated annealing", SEARCHING, _epochs("annealing", 1), _search),
    "exhaustive": Entry("every configuration", PROVING, _epochs("exhaustive", 1), _search),
    "cpsat": Entry("constraint solver with proofs", PROVING, _epochs("cpsat", 1), _search),
}
"""Each solver by name, with the options it takes: names of the classifier and the command line."""
