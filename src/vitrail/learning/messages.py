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
from vitrail.learning.choice import HIDDEN_SIZES, Choice, Choosing, choose, stand_in
from vitrail.learning.examples import graph_of
from vitrail.learning.nets import multilayer, of_module
from vitrail.learning.plan import Plan, plan
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
from vitrail.learning.preprocessing import device_for
from vitrail.learning.problem import AUTO, Problem
from vitrail.learning.table import parameter_of
from vitrail.learning.training import Trained, problem_of, train
from vitrail.model.calibration import Evidence
from vitrail.nn import Program
from vitrail.random import MAX_SEED, Key
from vitrail.solvers import Status
from vitrail.solvers.sampling import posterior_samples
from vitrail.solvers.streaming import Streaming

NEAR = 4.0  # log-odds: a chain near a network begins with two percent of its bits flipped
LEAVING_OUT = 5.0  # beta at most, where a row is left out by counting networks anew
SWEEPS = 20  # of short chains
MOST_LOOKS = 10**10  # of flips at examples, some minutes; beyond, marginals alone are drawn from
GRADIENTS = ("ste", "bop", "bayesbinn")
WIDEST_LINEAR = 2**14  # inputs; beyond, local search takes no linear net


@dataclass(frozen=True)
class Staged:
    """What a run of stages goes on from."""

    plan: Plan
    trained: Trained


@dataclass(frozen=True)
class Settled:
    """What is to run, and what was found while it was chosen."""

    plan: Plan
    choice: Choice | None = None  # what it said on held-out rows
    stopped: bool = False  # by Ctrl-C
    notes: Mapping[str, Any] | None = None  # for the record


def staged(data: TrainingData, options: FitOptions, previous: Posterior | None) -> Posterior:
    """Run the stages of a solver's name, of a solver, or those given.

    Where rows are added, streaming goes on from its beliefs; others learn anew from all rows.
    """
    if previous is None:
        settled = _settled(data, options)
    else:
        settled = going_on(data, options, previous)
        check_networks(options, settled.plan.solver, predictor_of(options, settled.plan))
        check_posterior(options, settled.plan)
    return run(data, options, previous, settled)


def going_on(data: TrainingData, options: FitOptions, previous: Posterior) -> Settled:
    """The plan that ran, but for what is given; another solver begins with its own settings."""
    kept: dict[str, Any] = {"solver": options.solver}
    if isinstance(previous.state, Staged):
        ran = previous.state.plan.given()
        if "solver" in options.changed:
            kept["restarts"] = ran["restarts"]
        else:
            kept = {name: ran[name] for name in ran if parameter_of(name) not in options.changed}
    return Settled(plan(problem_of(previous.program, data.nets), {**kept, **options.given}))


def run(
    data: TrainingData,
    options: FitOptions,
    previous: Posterior | None,
    settled: Settled,
    **settings: Any,
) -> Posterior:
    """Train by a plan, and draw networks; settings: what the record says of options instead."""
    made, calls = settled.plan, 0 if previous is None else previous.calls
    streams = any(isinstance(stage.solver, Streaming) for stage in made.stages)
    before = None if data.added is not None and not streams else previous
    calls = 0 if before is None else calls
    trained, stopped = _trained(data, options, before, settled, calls)
    predictor = predictor_of(options, made)
    networks, cut = trained.best[None], False
    if predictor == "posterior":
        networks, cut = _drawn(data, options, made, trained)
    evidence = None if settled.choice is None else settled.choice.evidence
    if evidence is None or evidence.leads.shape[1] != len(networks):
        evidence = _left_out(data, made, networks)
    solution = trained.solution
    undone = _undone(solution)
    if undone:
        warnings.warn(_told(undone), ConvergenceWarning, stacklevel=2)
    return Posterior(
        program=made.problem.program,
        networks=networks,
        votes=torch.ones(networks.shape[:2], dtype=torch.int64),
        best=trained.best,
        marginals=trained.marginals,
        accuracy=trained.accuracy.amax(0),
        evidence=evidence,
        settings={
            **(settings or made.settings),
            **({} if options.module else {"hidden": list(made.problem.program.hidden or ())}),
            "predictor": predictor,
            "networks": len(networks),
            "seed": options.seed,
        },
        history=solution.history,
        steps=solution.steps,
        evaluations=solution.evaluations,
        status=trained.status,
        found_by=trained.found_by,
        state=Staged(made, trained),
        calls=calls + 1,
        interrupted=stopped or cut or Status.INTERRUPTED in trained.status,
        notes={**(settled.notes or {}), **({"undone": undone} if undone else {})},
    )


def _undone(solution: Any) -> int:
    """How often the beliefs of a net diverged and were undone, of the net with the most."""
    history = getattr(solution, "history", {})
    return int(history["undone"].nan_to_num().max()) if "undone" in history else 0


def _told(undone: int) -> str:
    times = "once" if undone == 1 else f"{undone} times"
    return (
        f"training diverged {times}; it went on from the last good beliefs at 1/{2**undone} of the "
        "rate, so that more epochs may help, or solver='ste'"
    )


def count_of(options: FitOptions) -> int:
    """How many networks are drawn."""
    return LEAST_NETWORKS if isinstance(options.networks, str) else options.networks


def predictor_of(options: FitOptions, made: Plan) -> Predictor:
    """What answers: "auto" is the posterior where it means something and can be drawn from.

    Who names a solver asks for the network that it finds; hard rows have no temperature; chains
    of nets whose flips are not compiled would take longer than the training.
    """
    if options.predictor != AUTO:
        return options.predictor
    if made.solver == "streaming":
        return "posterior"
    drawable = made.problem.cheap_flips and math.isfinite(made.beta)
    return "posterior" if drawable and made.solver == "messages" else "best"


def check_posterior(options: FitOptions, made: Plan) -> None:
    """Raise where a posterior is asked for of which this plan knows nothing."""
    deep = made.problem.program.shallow is None
    if predictor_of(options, made) == "posterior" and deep and made.solver in GRADIENTS:
        raise ValueError(
            f"{made.solver!r} knows no posterior of a net with more than one hidden layer; take "
            "predictor='best', or solver='streaming'"
        )


def _settled(data: TrainingData, options: FitOptions) -> Settled:
    """The plan: as asked for, or what does best on held-out rows."""

    def plan_of(problem: Problem) -> Plan:
        return plan(problem, {**options.given, "solver": options.solver})

    programs = programs_of(data, options)
    plans = [plan_of(problem_of(program, data.nets)) for program in programs]
    for made in plans:
        check_networks(options, made.solver, predictor_of(options, made))
        check_posterior(options, made)
    open_search = "polish" not in options.given and any(made.polish for made in plans)
    given = options.module is not None or (
        len(programs) == 1 and (predictor_of(options, plans[0]) == "posterior" or not open_search)
    )
    if given:
        return Settled(plans[0])
    choice, stopped = choose(choosing_of(data, options, plans[-1].problem), programs, plan_of)
    if choice is None:
        return Settled(plans[-1], stopped=stopped)
    made = plans[programs.index(choice.program)]
    if made.polish != choice.polish:
        made = made.changed(polish=choice.polish)
    return Settled(made, choice, stopped)


def choosing_of(data: TrainingData, options: FitOptions, problem: Problem) -> Choosing:
    """What is the same for all candidates of a choice on held-out rows."""
    device = device_for(options.device, problem.examples, problem.program.num_bits)
    return Choosing(
        data.examples, data.num_classes, data.scheme, options.seed, device, options.progress
    )


def programs_of(data: TrainingData, options: FitOptions) -> list[Program]:
    """The nets that come into question, from simple to large."""
    fixed = data.preprocessing
    if options.module is not None:
        return [of_module(options.module, fixed.shape, fixed.num_outputs)]
    sizes = HIDDEN_SIZES if isinstance(options.hidden, str) else (tuple(options.hidden),)
    if isinstance(options.hidden, str) and fixed.num_inputs > WIDEST_LINEAR:
        sizes = sizes[1:]
    return [multilayer(fixed.shape, hidden, fixed.num_outputs) for hidden in sizes]


def _trained(
    data: TrainingData,
    options: FitOptions,
    previous: Posterior | None,
    settled: Settled,
    calls: int,
) -> tuple[Trained, bool]:
    """What training on all rows finds; after Ctrl-C, if that is better, what the choice found."""
    made, choice, stopped = settled.plan, settled.choice, settled.stopped
    found: Trained | None = None
    if not stopped:
        try:
            problem = made.problem
            found = train(
                data.nets,
                made,
                seed=(options.seed + calls) % MAX_SEED,
                device=device_for(options.device, problem.examples, problem.program.num_bits),
                earlier=None if previous is None else _before(previous),
                progress=options.progress,
                checkpoint=options.checkpoint,
            )
            stopped = Status.INTERRUPTED in found.status
        except KeyboardInterrupt:
            if choice is None:
                raise
            stopped = True
    if stopped and choice is not None:
        instead = stand_in(choice, data.nets, made.restarts)
        if found is None or instead.accuracy.nanmean() > found.accuracy.nanmean():
            found = instead
    assert found is not None
    return found, stopped


def _before(previous: Posterior) -> Trained:
    """What the nets were: of stages as they ended, else by the marginals of the networks."""
    if isinstance(previous.state, Staged):
        return previous.state.trained
    log_odds = torch.logit(previous.marginals.double())[None]
    best, found = previous.best[None], (previous.found_by,)
    return Trained(None, best, best, previous.accuracy[None], log_odds, found)


def _drawn(
    data: TrainingData, options: FitOptions, made: Plan, trained: Trained
) -> tuple[Tensor, bool]:
    """Networks of the posterior, (K, N, A) bool, by short chains; whether cut short.

    Every other chain begins at a draw from the marginals, the others near the best network:
    marginals cover more of the posterior, the best network lies where most of its mass is. A net
    without examples is drawn from its marginals alone, and so are all where chains would take
    minutes. After Ctrl-C what was drawn remains, or the best network.
    """
    best, count, program = trained.best, count_of(options), made.problem.program
    log_odds = trained.log_odds[trained.chosen, torch.arange(len(best))]
    looks = count * SWEEPS * program.num_bits * made.problem.examples
    slow = program.shallow is None or (not made.problem.linear and looks > MOST_LOOKS)
    if slow:  # a step of a chain would cost a look at the whole net, or there are too many steps
        return drawn_from_marginals(log_odds, count, options.seed), False
    done = torch.zeros(count, dtype=torch.bool)
    networks = samples(Key(options.seed), log_odds.flatten(), count).reshape(count, *best.shape)
    try:
        present = [number for number, one in enumerate(data.nets) if len(one)]
        graph = graph_of(program, [data.nets[number] for number in present], made.beta)
        near_best = torch.where(best, NEAR, -NEAR).double()
        for first, start in enumerate((log_odds, near_best)):
            mine = slice(first, None, 2)
            num = len(range(count)[mine])
            if num:
                key = Key((options.seed + first) % MAX_SEED)
                prior = start[present].flatten()
                drawn = posterior_samples(key, graph, prior, num, beta=made.beta, sweeps=SWEEPS)
                networks[mine, present] = drawn.reshape(num, len(present), -1)
                done[mine] = True
    except KeyboardInterrupt:
        return (networks[done] if bool(done.any()) else best[None]), True
    return networks, False


def _left_out(data: TrainingData, made: Plan, networks: Tensor) -> Evidence:
    """What networks say on training rows; of many, each counts as it would without the row."""
    program = made.problem.program
    if len(networks) == 1:
        return leave_one_out(data, program, networks)
    beta = min(made.beta, LEAVING_OUT)

    def counts(wrong: Tensor, weight: Tensor) -> Tensor:
        counts = torch.exp(beta * weight[:, None, None] * wrong)
        # the heaviest are cut, as usual where few networks would count for all
        return torch.minimum(counts, len(networks) ** 0.5 * counts.mean(1, keepdim=True))

    return leave_one_out(data, program, networks, counts)
