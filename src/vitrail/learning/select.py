"""Deep nets, and rows whose messages do not fit into memory: streaming or straight-through.

Both keep one number per weight; which is better depends on net and rows. So both are trained on
some rows, for half the epochs, and compared on held-out rows by what will predict: networks drawn
from streaming's posterior, or the one network that straight-through found. Where one network is to
predict, streaming's is compared as it is decoded ("streaming") and as gradients finish it
("polished"); so it is where streaming alone is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from vitrail.draws import random_order
from vitrail.learning.choice import Choice, correct_rows, train_each, trial_folds
from vitrail.learning.examples import nets_of
from vitrail.learning.messages import (
    PlanChoice,
    check_posterior,
    continued_plan,
    learn_by_stages,
    num_networks,
    programs_of,
    run,
)
from vitrail.learning.posterior import (
    FitOptions,
    Posterior,
    TrainingData,
    check_networks,
    drawn_from_marginals,
    raw_margins_of,
)
from vitrail.learning.table import Plan, Problem, make_plan, polished
from vitrail.learning.training import Trained, messages_fit, problem_of
from vitrail.model.calibration import Evidence
from vitrail.nn import Program
from vitrail.nn.moments import moments
from vitrail.solvers import Status

CANDIDATES = ("streaming", "ste")
POLISHED = "polished"  # the one network of streaming after gradients
TRAIN_ROWS, HELD_OUT_ROWS = 20_000, 5_000  # of the trial, at most
TRIAL = 0.5  # of the epochs; after a quarter, gradients are still ahead of messages that end better


def select(data: TrainingData, options: FitOptions, previous: Posterior | None) -> Posterior:
    """Train by the candidate that is right on more held-out rows; streaming, if there are none."""
    check_networks(options, "select", options.predictor)
    if previous is None or "solver" in options.changed:
        problem = _problem(data, options)
        # straight-through has no posterior of a deep net
        alone = options.predictor == "posterior" and problem.program.shallow is None
        chosen = _chosen(data, options, problem, CANDIDATES[:1] if alone else CANDIDATES)
    else:
        chosen = continued_plan(data, options, previous)
        check_posterior(options, chosen.plan)
    plan = chosen.plan
    return run(
        data,
        options,
        previous,
        chosen,
        solver="select",
        selected=plan.solver,
        batch_size=plan.batch,
        epochs=plan.epochs,
        stages=[stage.name for stage in plan.stages],
    )


def stream(data: TrainingData, options: FitOptions, previous: Posterior | None) -> Posterior:
    """Train by streaming; held-out rows say whether gradients finish the one network of a deep net.

    Gradients are right on more training rows, and on fewer new ones where a net has convolutions.
    """
    if previous is None and options.predictor == "best" and "polish" not in options.given:
        programs = programs_of(data, options)
        problem = problem_of(programs[0], data.nets)
        if len(programs) == 1 and _plan(problem, options, "streaming").polish:
            return run(data, options, None, _chosen(data, options, problem, CANDIDATES[:1]))
    return learn_by_stages(data, options, previous)


def _problem(data: TrainingData, options: FitOptions) -> Problem:
    """The one net that candidates train; raises where none of them can."""
    programs = programs_of(data, options)
    if len(programs) > 1 or len(data.nets) > 1 or not _has_moments(programs[0]):
        raise ValueError(
            "select trains one net, of two or more hidden layers or a module of binary layers; set "
            "hidden or module, and multiclass='argmax' or 'auto', or take solver='messages'"
        )
    return problem_of(programs[0], data.nets)


def needs_select(problem: Problem) -> bool:
    """Whether these candidates apply: messages do not fit into memory, or flips are expensive."""
    program = problem.program
    return (program.shallow is None or not messages_fit(problem)) and _has_moments(program)


def _chosen(
    data: TrainingData, options: FitOptions, problem: Problem, candidates: Sequence[str]
) -> PlanChoice:
    program, fixed = problem.program, data.preprocessing
    plans = {name: _plan(problem, options, name) for name in candidates}
    folds = trial_folds(data, options.seed)[:1]
    if not folds or (len(candidates) == 1 and not plans[candidates[0]].polish):
        return PlanChoice(plans[candidates[0]], notes={"held_out_accuracy": {}})
    seen, held = (
        part.where(torch.from_numpy(random_order(options.seed, len(part))[:most]).sort().values)
        for part, most in zip(folds[0], (TRAIN_ROWS, HELD_OUT_ROWS), strict=True)
    )
    found: dict[str, Choice] = {}
    accuracy: dict[str, float] = {}
    stopped = False
    nets = nets_of(seen, fixed.num_classes, fixed.scheme)
    small = problem_of(program, nets)
    trials = train_each(nets, [_plan(small, options, name, TRIAL) for name in candidates], options)
    for name in candidates:
        try:
            trained = next(trials)
        except KeyboardInterrupt:
            if not found:
                raise
            stopped = True
            break
        for kind, bits in _answering(trained, options, plans[name]).items():
            margins = raw_margins_of(program, bits, held.inputs)
            evidence = Evidence(margins, held.labels, held.weight)
            hits = correct_rows(evidence, data)
            accuracy[kind] = round(float((hits * held.weight).sum() / held.weight.sum()), 6)
            found[kind] = Choice(program, 0, hits, evidence, trained, kind != "streaming")
        if Status.INTERRUPTED in trained.status:
            stopped = True
            break
    best = max(accuracy, key=lambda name: accuracy[name])
    notes = {"held_out_accuracy": accuracy}
    plan = plans["streaming" if best == POLISHED else best]
    if best == "streaming" and plan.polish:
        plan = plan.changed(polish=0)
    return PlanChoice(plan, found[best], stopped, notes)


def _answering(trained: Trained, options: FitOptions, plan: Plan) -> dict[str, Tensor]:
    """The networks (K, N, A) bool that would predict after the trial of a plan, by name."""
    if plan.polish:
        return {POLISHED: trained.best[None], plan.solver: trained.unpolished[None]}
    bits = trained.best[None]
    if plan.solver == "streaming" and options.predictor != "best":
        log_odds = trained.of_best(trained.log_odds)
        bits = drawn_from_marginals(log_odds, num_networks(options), options.seed)
    return {plan.solver: bits}


def _plan(problem: Problem, options: FitOptions, name: str, share: float = 1.0) -> Plan:
    """The plan of a candidate: both have equal epochs and batches."""
    usual = make_plan(problem, {"solver": "streaming"})
    equal: dict[str, Any] = {"batch": usual.batch, "epochs": usual.epochs, "beta": math.inf}
    settings = {**equal, **options.given, "polish": 0, "solver": name}
    settings["epochs"] = max(1, round(share * settings["epochs"]))
    plan = make_plan(problem, settings)
    return polished(plan) if options.predictor == "best" else plan


def _has_moments(program: Program) -> bool:
    try:
        half = torch.full((program.num_bits,), 0.5)
        moments(program, half, torch.zeros(1, *program.input_shape, dtype=torch.int8))
    except TypeError:
        return False
    return True
