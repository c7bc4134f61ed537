"""Learners that run stages: message passing, streaming, gradients and searches, by their names.

A plan's stages run on all nets at once. Then the best network answers, or networks that short
chains draw from there. What is left open (hidden units, local search) is chosen on held-out rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from vitrail.decode import samples
from vitrail.learning.choice import Choice, best_of_folds, choose
from vitrail.learning.examples import graph_of
from vitrail.learning.posterior import (
    LEAST_NETWORKS,
    FitOptions,
    Posterior,
    Predictor,
    TrainingData,
    check_networks,
    drawn_from_marginals,
    leave_one_out,
)
from vitrail.learning.preprocessing import multilayer
from vitrail.learning.table import AUTO, Plan, Problem, make_plan, parameter_of, polished
from vitrail.learning.training import Trained, problem_of, train
from vitrail.model.calibration import Evidence
from vitrail.nn import Program, program_of
from vitrail.random import MAX_SEED, Key
from vitrail.solvers import Status
from vitrail.solvers.sampling import posterior_samples
from vitrail.solvers.streaming import Streaming

HIDDEN_SIZES = ((), (3,), (7,))  # odd, so that a vote of the units has no tie
START_LOG_ODDS = 4.0  # a chain near a network begins with two percent of its bits flipped
MAX_LEAVE_ONE_OUT_BETA = 5.0  # where a row is left out by reweighting networks
SWEEPS = 20  # of short chains
MAX_CHAIN_EVALUATIONS = 10**10  # flips × examples, some minutes; beyond, marginals are drawn from
GRADIENTS = ("ste", "bop", "bayesbinn")
WIDEST_LINEAR = 2**14  # inputs; beyond, local search takes no linear net


@dataclass(frozen=True)
class StageState:
    """State from which a run of stages continues."""

    plan: Plan
    trained: Trained


@dataclass(frozen=True)
class PlanChoice:
    """The plan to run, and the results of choosing it."""

    plan: Plan
    choice: Choice | None = None  # with its answers on held-out rows
    stopped: bool = False  # by Ctrl-C
    notes: Mapping[str, Any] | None = None  # for the record


def learn_by_stages(
    data: TrainingData, options: FitOptions, previous: Posterior | None
) -> Posterior:
    """Run the stages of a solver's name, of a solver, or those given.

    With added rows streaming continues from its beliefs; others start from scratch on all rows.
    """
    if previous is None:
        chosen = _choose_plan(data, options)
    else:
        chosen = continued_plan(data, options, previous)
        _check_predictor(options, chosen.plan)
    return run(data, options, previous, chosen)


def continued_plan(data: TrainingData, options: FitOptions, previous: Posterior) -> PlanChoice:
    """The previous plan with the options given; another solver has its own settings."""
    kept: dict[str, Any] = {"solver": options.solver}
    if isinstance(previous.state, StageState):
        ran = previous.state.plan.settings
        if "solver" in options.changed:
            kept["restarts"] = ran["restarts"]
        else:
            kept = {name: ran[name] for name in ran if parameter_of(name) not in options.changed}
    return PlanChoice(make_plan(problem_of(previous.program, data.nets), {**kept, **options.given}))


def run(
    data: TrainingData,
    options: FitOptions,
    previous: Posterior | None,
    chosen: PlanChoice,
    **settings: Any,
) -> Posterior:
    """Train by a plan, and draw networks; settings: what the record says of options instead."""
    plan, calls = chosen.plan, 0 if previous is None else previous.calls
    streams = any(isinstance(stage.solver, Streaming) for stage in plan.stages)
    before = None if data.added is not None and not streams else previous
    calls = 0 if before is None else calls
    trained, stopped = _trained(data, options, before, chosen, calls)
    predictor = predictor_of(options, plan)
    networks, cut = trained.best[None], False
    if predictor == "posterior":
        networks, cut = _draw_networks(data, options, plan, trained)
    evidence = None if chosen.choice is None else chosen.choice.evidence
    if evidence is None or evidence.raw_margins.shape[1] != len(networks):
        evidence = _training_evidence(data, plan, networks)
    solution = trained.solution
    undone = _undone(solution)
    if undone:
        warnings.warn(_divergence_warning(undone), ConvergenceWarning, stacklevel=2)
    return Posterior(
        program=plan.problem.program,
        networks=networks,
        votes=torch.ones(networks.shape[:2], dtype=torch.int64),
        best=trained.best,
        marginals=trained.marginals,
        accuracy=trained.accuracy.amax(0),
        evidence=evidence,
        settings={
            **(settings or plan.record),
            **({} if options.module else {"hidden": list(plan.problem.program.hidden or ())}),
            "predictor": predictor,
            "networks": len(networks),
            "seed": options.seed,
        },
        history=solution.history,
        steps=solution.steps,
        evaluations=solution.evaluations,
        status=trained.status,
        found_by=trained.found_by,
        state=StageState(plan, trained),
        calls=calls + 1,
        interrupted=stopped or cut or Status.INTERRUPTED in trained.status,
        notes={**(chosen.notes or {}), **({"undone": undone} if undone else {})},
    )


def _undone(solution: Any) -> int:
    """How often the beliefs of a net diverged and were undone, of the net with the most."""
    history = getattr(solution, "history", {})
    return int(history["undone"].nan_to_num().max()) if "undone" in history else 0


def _divergence_warning(undone: int) -> str:
    times = "once" if undone == 1 else f"{undone} times"
    return (
        f"training diverged {times}; it continued from the last good beliefs at 1/{2**undone} of "
        "the rate; try more epochs, or solver='ste'"
    )


def num_networks(options: FitOptions) -> int:
    """The number of networks to draw."""
    return LEAST_NETWORKS if isinstance(options.networks, str) else options.networks


def predictor_of(options: FitOptions, plan: Plan) -> Predictor:
    """The predictor: "auto" is the posterior where it is defined and can be sampled.

    A solver set by name predicts with the network that it finds; hard rows have no temperature;
    chains of nets whose flips are not compiled would take longer than the training.
    """
    if options.predictor != AUTO:
        return options.predictor
    if plan.solver == "streaming":
        return "posterior"
    drawable = plan.problem.cheap_flips and math.isfinite(plan.beta)
    return "posterior" if drawable and plan.solver == "messages" else "best"


def check_posterior(options: FitOptions, plan: Plan) -> None:
    """Raise for predictor="posterior" where this plan has no posterior."""
    deep = plan.problem.program.shallow is None
    if predictor_of(options, plan) == "posterior" and deep and plan.solver in GRADIENTS:
        raise ValueError(
            f"{plan.solver!r} has no posterior of a net with more than one hidden layer; use "
            "predictor='best', or solver='streaming'"
        )


def _check_predictor(options: FitOptions, plan: Plan) -> None:
    check_networks(options, plan.solver, predictor_of(options, plan))
    check_posterior(options, plan)


def _choose_plan(data: TrainingData, options: FitOptions) -> PlanChoice:
    """The plan of the options given; what they leave open is chosen on held-out rows."""

    def plan_of(problem: Problem) -> Plan:
        plan = make_plan(problem, {**options.given, "solver": options.solver})
        one = predictor_of(options, plan) == "best" and "polish" not in options.given
        return polished(plan) if one else plan

    programs = programs_of(data, options)
    plans = [plan_of(problem_of(program, data.nets)) for program in programs]
    for plan in plans:
        _check_predictor(options, plan)
    open_search = "polish" not in options.given and any(
        plan.polish and plan.problem.cheap_flips for plan in plans
    )
    given = options.module is not None or (
        len(programs) == 1 and (predictor_of(options, plans[0]) == "posterior" or not open_search)
    )
    if given:
        return PlanChoice(plans[0])
    choice, stopped = choose(data, options, programs, plan_of)
    if choice is None:
        return PlanChoice(plans[-1], stopped=stopped)
    plan = plans[programs.index(choice.program)]
    if plan.polish != choice.polish:
        plan = plan.changed(polish=choice.polish)
    return PlanChoice(plan, choice, stopped)


def programs_of(data: TrainingData, options: FitOptions) -> list[Program]:
    """The candidate nets, from simple to large."""
    fixed = data.preprocessing
    if options.module is not None:
        program = program_of(options.module, fixed.shape)
        if program.num_outputs != fixed.num_outputs:
            raise ValueError(
                f"the module has {program.num_outputs} outputs, expected {fixed.num_outputs} for "
                "these classes; change its last layer or the setting of multiclass"
            )
        return [program]
    sizes = HIDDEN_SIZES if isinstance(options.hidden, str) else (tuple(options.hidden),)
    if isinstance(options.hidden, str) and fixed.num_inputs > WIDEST_LINEAR:
        sizes = sizes[1:]
    return [multilayer(fixed.shape, hidden, fixed.num_outputs) for hidden in sizes]


def _trained(
    data: TrainingData,
    options: FitOptions,
    previous: Posterior | None,
    chosen: PlanChoice,
    calls: int,
) -> tuple[Trained, bool]:
    """The result of training on all rows; after Ctrl-C that of the choice, if it is better."""
    plan, choice, stopped = chosen.plan, chosen.choice, chosen.stopped
    found: Trained | None = None
    if not stopped:
        try:
            found = train(
                data.nets,
                plan,
                seed=(options.seed + calls) % MAX_SEED,
                device=options.device,
                earlier=None if previous is None else _as_trained(previous).faded(data.kept),
                progress=options.progress,
                checkpoint=options.checkpoint,
            )
            stopped = Status.INTERRUPTED in found.status
        except KeyboardInterrupt:
            if choice is None:
                raise
            stopped = True
    if stopped and choice is not None:
        instead = best_of_folds(choice, data.nets, plan.restarts)
        if found is None or instead.accuracy.nanmean() > found.accuracy.nanmean():
            found = instead
    assert found is not None
    return found, stopped


def _as_trained(previous: Posterior) -> Trained:
    """The state to continue from: that of the stages, else the marginals of the networks."""
    if isinstance(previous.state, StageState):
        return previous.state.trained
    log_odds = torch.logit(previous.marginals.double())[None]
    best, found = previous.best[None], (previous.found_by,)
    return Trained(None, best, best, previous.accuracy[None], log_odds, found)


def _draw_networks(
    data: TrainingData, options: FitOptions, plan: Plan, trained: Trained
) -> tuple[Tensor, bool]:
    """Networks of the posterior, (K, N, A) bool, by short chains; whether cut short.

    Every other chain begins at a draw from the marginals, the others near the best network:
    marginals cover more of the posterior, the best network lies where most of its mass is. A net
    without examples is drawn from its marginals alone, and so are all where chains would take
    minutes. After Ctrl-C what was drawn remains, or the best network.
    """
    best, count, program = trained.best, num_networks(options), plan.problem.program
    log_odds = trained.of_best(trained.log_odds)
    evaluations = count * SWEEPS * program.num_bits * plan.problem.examples
    many = not plan.problem.linear and evaluations > MAX_CHAIN_EVALUATIONS
    if program.shallow is None or many:  # where a flip evaluates the whole net, chains are slow too
        return drawn_from_marginals(log_odds, count, options.seed), False
    done = torch.zeros(count, dtype=torch.bool)
    networks = samples(Key(options.seed), log_odds.flatten(), count).reshape(count, *best.shape)
    try:
        present = [number for number, one in enumerate(data.nets) if len(one)]
        graph = graph_of(program, [data.nets[number] for number in present], plan.beta)
        near_best = torch.where(best, START_LOG_ODDS, -START_LOG_ODDS).double()
        for first, start in enumerate((log_odds, near_best)):
            half = slice(first, None, 2)
            num = len(range(count)[half])
            if num:
                key = Key((options.seed + first) % MAX_SEED)
                prior = start[present].flatten()
                drawn = posterior_samples(key, graph, prior, num, beta=plan.beta, sweeps=SWEEPS)
                networks[half, present] = drawn.reshape(num, len(present), -1)
                done[half] = True
    except KeyboardInterrupt:
        return (networks[done] if bool(done.any()) else best[None]), True
    return networks, False


def _training_evidence(data: TrainingData, plan: Plan, networks: Tensor) -> Evidence:
    """Scores of training rows; several networks are weighted as they would be without the row."""
    program = plan.problem.program
    if len(networks) == 1:
        return leave_one_out(data, program, networks)
    beta = min(plan.beta, MAX_LEAVE_ONE_OUT_BETA)

    def counts(wrong: Tensor, weight: Tensor) -> Tensor:
        counts = torch.exp(beta * weight[:, None, None] * wrong)
        # the largest weights are clipped, so that few networks do not decide alone
        return torch.minimum(counts, len(networks) ** 0.5 * counts.mean(1, keepdim=True))

    return leave_one_out(data, program, networks, counts)
