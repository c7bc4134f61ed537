"""The one table of solver names: classifier, command line and experiments all read it.

A name stands for a learner and the options it takes. Most learners run stages of
`vitrail.solvers`: their entries have a rule for their settings and one for their stages, from which
`make_plan` makes the plan of a training run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vitrail.baselines import BASELINES
from vitrail.baselines.ste import gradient_polish
from vitrail.nn import Program
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
from vitrail.solvers.portfolio import (
    MIN_HITS,
    NAMES,
    MessageOptions,
    Shape,
    default_message_options,
    reinforced_stage,
)
from vitrail.solvers.streaming import Falling
from vitrail.updates import UPDATES, Update, counting, flip

AUTO = "auto"
EPOCHS = 5  # at least: marginals are also what the posterior and later rows start from
BETA = 5.0  # of an example of mean weight
POLISH_ROUNDS = 20  # of local search, where a flip is cheap
POLISH_FLIPS = 20_000  # proposals per round
POLISH_SHARE = 0.25  # of the epochs before, of gradients
SURVEY_SAMPLES = 100  # as in the paper
SURVEY_BETA = 3.0  # of an example of mean weight
SURVEY_DAMPING = 0.2  # of the old message, as in the paper
GRADIENT_EPOCHS = 40
STREAM_BATCH, STREAM_BATCHES = 128, 16  # examples added up at once, and batches of a step at most
STREAM_STEPS = 20  # at least, so that beta and rate change little at each
STREAM_EPOCHS, LEAST_BATCHES = 20, 500  # few examples are seen more often
LAST_BETA = 10.0  # serves the posterior and one network alike
SAMPLED_DRAWS = 32  # per message, where beliefs that commit are sampled
ALIASES = {"straight_through": "ste", "portfolio": "messages"}
PASSING = ("update", "samples", "beta", "damping", "batch", "epochs", "restarts", "polish")
OPTIONS = (*PASSING, "effort")
EFFORTS = {"quick": 0.25, "normal": 1.0, "best": 8.0}  # times the work of chains
PARAMETERS = {"batch": "batch_size"}  # of the classifier, where it has another name
STEPS = ("beta", "batch", "epochs", "restarts", "polish")
PROVING = ("beta", "polish")
SEARCHING = ("beta", "restarts", "polish")
SETTLED = ("update", "samples", "damping", "batch")  # by a solver object itself
BY_STAGES = ("beta", "epochs", "restarts", "polish")  # what can be set beside a solver object
IN_FIGURES = {"sbp": "SBP", "ste": "GD", "s3p": "S3P", "s4p": "S4P", "snmp": "SNMP"}  # the paper's

HARD, MANY_EPOCHS = {"beta": math.inf}, {"epochs": GRADIENT_EPOCHS}

Stages = Sequence[Stage]
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """Nets of one program, each with its examples, that are trained side by side."""

    program: Program
    factors: int  # distinct examples of the largest net
    examples: int  # of all nets together
    weight: float = 1.0  # mean weight of an example, in rows

    def beta(self, of_example: float = BETA) -> float:
        """Inverse temperature of a row under which an example has this one on average.

        Many rows on few distinct examples would otherwise make every example as good as hard, the
        rare wrong labels as much as the frequent right ones.
        """
        return of_example / self.weight

    @property
    def linear(self) -> bool:
        return self.program.perceptron_low is not None

    @property
    def cheap_flips(self) -> bool:
        """Whether the effect of one flip is known without evaluating the whole net."""
        return self.program.shallow is not None


@dataclass(frozen=True)
class Plan:
    """A training run: `stages`, one after another, on `restarts` copies of each net.

    The other fields are the settings that the stages are made from.
    """

    problem: Problem
    solver: str
    update: str
    samples: int  # draws of the update, where it draws
    beta: float
    damping: float  # share of the old message that is kept
    batch: int | None
    epochs: int
    restarts: int = 1
    polish: int = 0  # rounds of local search after the solver, or epochs of gradients
    stages: tuple[Stage, ...] = ()

    @property
    def record(self) -> dict[str, Any]:
        """The settings that run, as plain values; inf as text, which JSON can hold."""
        options = SOLVERS[self.solver].options if self.solver in SOLVERS else BY_STAGES
        plain: dict[str, Any] = {"solver": self.solver}
        plain |= {parameter_of(name): getattr(self, name) for name in options}
        plain["stages"] = [stage.name for stage in self.stages]
        return {name: "inf" if value == math.inf else value for name, value in plain.items()}

    @property
    def settings(self) -> dict[str, Any]:
        """Settings from which `make_plan` makes this plan again."""
        if self.solver in SOLVERS:
            return {name: getattr(self, name) for name in ("solver", *PASSING)}
        stages = self.stages[: len(self.stages) - bool(self.polish)]
        return {"solver": stages, **{name: getattr(self, name) for name in BY_STAGES}}

    def changed(self, **settings: Any) -> Plan:
        """The plan with some settings changed and new stages."""
        return make_plan(self.problem, {**self.settings, **settings})

    def __reduce__(self) -> Any:
        """Pickled by its settings: stages may hold functions that cannot be."""
        return make_plan, (self.problem, self.settings)

    def made_update(self) -> Update:
        """The update that the settings name."""
        if self.update in ("exact", "closed_form"):
            return UPDATES[self.update]()
        if self.update == "counting":
            return counting(self.samples, least_hits=MIN_HITS)
        return UPDATES[self.update](self.samples)

    def passing(self) -> MessageOptions:
        """The options of message passing."""
        return MessageOptions(self.made_update(), self.damping, self.batch, self.epochs)

    def shape(self) -> Shape:
        """The problem as the portfolio describes it."""
        problem, bits = self.problem, self.problem.program.num_bits
        return Shape(
            factors=problem.factors,
            variables=bits,
            edges=problem.examples * bits * self.restarts,
            arity=bits,
            weight=problem.factors * problem.weight,
            linear=problem.linear,
            cheap_flips=problem.cheap_flips,
            hard=math.isinf(self.beta),
        )


@dataclass(frozen=True)
class Entry:
    """The learner and the options of a solver's name.

    settings: other than those of `default_plan`. stages: None of learners that do not run any.
    """

    summary: str
    options: tuple[str, ...]  # those of OPTIONS that it takes
    settings: Settings | Callable[[Problem], Settings] = field(default_factory=dict)
    stages: Callable[[Plan], Stages] | None = None


def canonical(name: str) -> str:
    """AUTO or the table's name for this one; ValueError for a name it does not know."""
    found = ALIASES.get(name, name)
    if found != AUTO and found not in SOLVERS:
        raise ValueError(f"unknown solver {name!r}; choose one of: {AUTO}, {', '.join(SOLVERS)}")
    return found


def parameter_of(option: str) -> str:
    """The classifier's name of an option."""
    return PARAMETERS.get(option, option)


def baseline(name: str, **settings: Any) -> Any:
    """The baseline of a name of this table."""
    return BASELINES["straight_through" if name == "ste" else name](**settings)


def default_plan(problem: Problem, solver: str = "sbp") -> Plan:
    """Settings of stochastic belief propagation in batches, from which other rules start."""
    passing = default_message_options(problem.factors, problem.cheap_flips)
    return Plan(
        problem=problem,
        solver=solver,
        update="flip" if problem.cheap_flips else "counting",
        samples=5 if problem.cheap_flips else 64,
        beta=problem.beta(),
        damping=passing.damping,
        batch=passing.batch,
        epochs=max(passing.epochs, EPOCHS),
    )


def make_plan(problem: Problem, given: Mapping[str, Any]) -> Plan:
    """The plan for a problem; given options are not changed.

    given: any of PASSING, and `solver`: a name, a solver, or a sequence of stages.
    """
    given = dict(given)
    solver = given.pop("solver", "messages")
    if isinstance(solver, str):
        entry = SOLVERS[solver]
        assert entry.stages is not None
        settings = entry.settings(problem) if callable(entry.settings) else entry.settings
        plan = replace(default_plan(problem, solver), **{**settings, **given})
        stages = entry.stages(plan)
        if solver == "messages":
            return replace(plan, stages=tuple(stages))
    else:
        foreign = [name for name in SETTLED if name in given]
        if foreign:
            raise ValueError(
                f"{foreign[0]} belongs to the solver that was passed; set it there, or leave it "
                "auto"
            )
        staged = isinstance(solver, tuple)
        name = " + ".join(stage.name for stage in solver) if staged else repr(solver)
        plan = replace(default_plan(problem, name), **given)
        stages = solver if staged else (_own_pace(solver, plan),)
    return replace(plan, stages=(*stages, *_polish(plan)))


def _own_pace(solver: Any, plan: Plan) -> Stage:
    """The solver's own number of steps, or that of `epochs` passes over the examples."""
    name, steps = type(solver).__name__, getattr(solver, "steps", None)
    if isinstance(steps, int):
        return Stage(name, solver, steps)
    return _by_epochs(name, solver, replace(plan, batch=getattr(solver, "batch", None)))


def _by_epochs(name: str, solver: Any, plan: Plan) -> Stage:
    """A solver in batches, for the epochs of the plan."""
    passing, factors = plan.passing(), plan.problem.factors
    return Stage(name, solver, passing.steps(factors), score_every=passing.score_every(factors))


def polished(plan: Plan) -> Plan:
    """A plan of `streaming` whose one network, if it is deep, is finished by gradients."""
    if not _finishes_by_gradients(plan):
        return plan
    return plan.changed(polish=max(1, round(POLISH_SHARE * plan.epochs)))


def _finishes_by_gradients(plan: Plan) -> bool:
    """Whether a flip evaluates the whole net, in a plan of streaming."""
    return plan.solver == "streaming" and not plan.problem.cheap_flips


def _polish(plan: Plan) -> Stages:
    """Local search after any solver, if there are rounds of it; gradients after deep streaming."""
    if not plan.polish:
        return ()
    if _finishes_by_gradients(plan):
        batch = plan.batch or plan.problem.factors
        return (gradient_polish(plan.polish * -(-plan.problem.factors // batch), batch),)
    flips = plan.polish * POLISH_FLIPS
    return portfolio(plan.shape(), ("polish",), flips=flips, rounds=plan.polish)


def _messages(plan: Plan) -> Stages:
    return portfolio(
        plan.shape(),
        NAMES if plan.polish else ("sbp",),
        passing=plan.passing(),
        flips=max(1, plan.polish) * POLISH_FLIPS,
        rounds=max(1, plan.polish),
    )


def _bp(plan: Plan) -> Stages:
    return (_by_epochs(plan.solver, _belief_propagation(plan), plan),)


def _sbp(plan: Plan) -> Stages:
    shape, solver = plan.shape(), _belief_propagation(plan)
    if not shape.hard:
        solver = shape.with_annealing(solver, plan.passing().steps(plan.problem.factors))
    return (_by_epochs(plan.solver, solver, plan),)


def _belief_propagation(plan: Plan) -> MessagePassing[Any]:
    return belief_propagation(plan.made_update(), damping=plan.damping, batch=plan.batch)


def _gradient(plan: Plan) -> Stages:
    return (_by_epochs(plan.solver, baseline(plan.solver, batch=plan.batch), plan),)


def _streaming_settings(problem: Problem) -> dict[str, Any]:
    epochs = max(STREAM_EPOCHS, -(-LEAST_BATCHES // -(-problem.factors // STREAM_BATCH)))
    return {"beta": math.inf, "batch": STREAM_BATCH, "epochs": epochs}


def stream_schedules(steps: int, batches: int) -> tuple[Geometric, Falling]:
    """Beta and rate of `streaming`, for so many steps and batches in all."""
    return geometric(1.0, LAST_BETA, max(2, steps)), falling(usual_rate(batches), steps)


def _streaming(plan: Plan) -> Stages:
    batch = plan.batch or plan.problem.factors
    in_all = plan.epochs * -(-plan.problem.factors // batch)
    batches = max(1, min(STREAM_BATCHES, in_all // STREAM_STEPS))
    steps = -(-in_all // batches)
    beta, rate = stream_schedules(steps, in_all)
    solver = streaming(batch=batch, batches=batches, beta=beta, rate=rate)
    return (Stage("streaming", solver, steps, score_every=steps),)


def _search(plan: Plan) -> Stages:
    solver = baseline(plan.solver)
    return (Stage(plan.solver, solver, getattr(solver, "steps", 1)),)


def _survey_settings(problem: Problem) -> dict[str, Any]:
    """The paper's surveys: every factor at every step."""
    beta = problem.beta(SURVEY_BETA)
    return {"beta": beta, "damping": SURVEY_DAMPING, "batch": None, "epochs": 20}


def _surveys(make: Callable[..., Any]) -> Callable[[Plan], Stages]:
    def build(plan: Plan) -> Stages:
        solver = make(
            plan.made_update(),
            survey_samples=SURVEY_SAMPLES,
            damping=plan.damping,
            batch=plan.batch,
        )
        return (Stage(plan.solver, solver, plan.passing().steps(plan.problem.factors)),)

    return build


def _snmp(plan: Plan) -> Stages:
    steps = plan.passing().steps(plan.problem.factors)
    return snmp(
        plan.made_update(),
        steps=(steps, steps),
        batch=plan.batch,
        survey_samples=SURVEY_SAMPLES,
        damping=plan.damping,
    )


def _reinforced(plan: Plan) -> Stages:
    return (reinforced_stage(plan.shape()),)


def _sampled(plan: Plan) -> Stages:
    shape = plan.shape()
    update = flip(SAMPLED_DRAWS) if shape.linear else shape.sampled_update(SAMPLED_DRAWS)
    return (replace(reinforced_stage(shape, update), name="sampled"),)


def _messages_settings(problem: Problem) -> dict[str, Any]:
    return {"polish": POLISH_ROUNDS if problem.cheap_flips else 0}


def _bp_settings(problem: Problem) -> dict[str, Any]:
    return {"update": "closed_form" if problem.linear else "exact"}


SOLVERS: dict[str, Entry] = {
    "chains": Entry(
        "Metropolis chains from random starts, calibrated on held-out rows", ("beta", "effort")
    ),
    "messages": Entry(
        "messages, then local search; hard examples get all stages",
        PASSING,
        _messages_settings,
        _messages,
    ),
    "select": Entry("streaming or ste, by accuracy on held-out rows", ("batch", "epochs")),
    "bp": Entry("belief propagation with exact messages", PASSING, _bp_settings, _bp),
    "sbp": Entry("stochastic belief propagation: sampled messages", PASSING, {}, _sbp),
    "s3p": Entry(
        "surveys, exact on the side of variables", PASSING, _survey_settings, _surveys(s3p)
    ),
    "s4p": Entry("surveys, sampled on both sides", PASSING, _survey_settings, _surveys(s4p)),
    "snmp": Entry("sbp, then s4p on unsolved problems", PASSING, _survey_settings, _snmp),
    "reinforced": Entry("belief propagation that commits", SEARCHING, HARD, _reinforced),
    "sampled": Entry("the same by sampled flips", SEARCHING, HARD, _sampled),
    "streaming": Entry(
        "messages that no batch outlives; any depth", STEPS, _streaming_settings, _streaming
    ),
    "ste": Entry("straight-through gradients", STEPS, MANY_EPOCHS, _gradient),
    "bop": Entry("binary optimiser", STEPS, MANY_EPOCHS, _gradient),
    "bayesbinn": Entry("Bayesian rule", STEPS, MANY_EPOCHS, _gradient),
    "annealing": Entry("simulated annealing", SEARCHING, {}, _search),
    "exhaustive": Entry("every configuration", PROVING, {}, _search),
    "cpsat": Entry("constraint solver with proofs", PROVING, {}, _search),
}
"""Each solver by name, with the options it takes: names of the classifier and the command line."""
