"""Nets of depth, and more rows than messages have room for: which trainer suits them.

Streaming and straight-through both keep one number a weight and both come to good nets; which is
better depends on net and rows. So both are trained on some rows and asked about others, and what
answers then is what is compared: networks drawn from streaming's posterior, or the one network
that straight-through found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from vitrail.data.draws import random_order
from vitrail.learning.choice import Choice, Choosing
from vitrail.learning.plan import Plan, plan
from vitrail.learning.posterior import drawn_from_marginals
from vitrail.learning.problem import AUTO, Problem
from vitrail.learning.training import messages_fit, problem_of
from vitrail.model import outputs_of
from vitrail.model.calibration import Evidence
from vitrail.model.voting import leads
from vitrail.nn import Program
from vitrail.nn.moments import moments

RIVALS = ("streaming", "ste")
SEEN, HELD = 20_000, 5_000  # rows that the choice trains on and asks about, at most


@dataclass(frozen=True)
class Trainer:
    """What the choice came to."""

    plan: Plan  # for all rows
    choice: Choice | None  # None where no row could be held out
    accuracy: Mapping[str, float]  # of each rival on the rows held out
    stopped: bool  # by Ctrl-C


def suits(problem: Problem) -> bool:
    """Whether the two come into question: no messages to keep, or no cheap way to make them."""
    program = problem.program
    return (program.shallow is None or not messages_fit(problem)) and _has_moments(program)


def chosen_trainer(
    choosing: Choosing, problem: Problem, settings: Mapping[str, Any], networks: int
) -> Trainer:
    """The rival that is right on more of the rows held out; streaming, if there are none."""
    program = problem.program
    plans = {name: plan(problem, _asked(settings, name, problem)) for name in RIVALS}
    parts = choosing.folds()[:1]
    if not parts:
        return Trainer(plans[RIVALS[0]], None, {}, False)
    seen, held = (
        part.where(torch.from_numpy(random_order(choosing.seed, len(part))[:most]).sort().values)
        for part, most in zip(parts[0], (SEEN, HELD), strict=True)
    )
    found: dict[str, Choice] = {}
    accuracy: dict[str, float] = {}
    small = problem_of(program, [seen])
    trials = choosing.trained(
        [seen], [plan(small, {**_asked(settings, name, small), "restarts": 1}) for name in RIVALS]
    )
    for name in RIVALS:
        try:
            trained = next(trials)
        except KeyboardInterrupt:
            if not found:
                raise
            break
        bits = trained.best[None]
        if name == "streaming":
            bits = drawn_from_marginals(program, trained, networks, choosing.seed)
        said = torch.cat([leads(part) for part in outputs_of(program, bits, held.inputs)])
        evidence = Evidence(said, held.labels, held.weight)
        hits = choosing.hits(evidence)
        accuracy[name] = round(float((hits * held.weight).sum() / held.weight.sum()), 6)
        found[name] = Choice(program, 0, hits, evidence, trained, True)
    best = max(accuracy, key=lambda name: accuracy[name])
    return Trainer(plans[best], found[best], accuracy, len(found) < len(RIVALS))


def _asked(settings: Mapping[str, Any], name: str, problem: Problem) -> dict[str, Any]:
    """The settings of a rival: both see the rows equally often, in equal batches."""
    streaming = plan(problem, {"solver": "streaming"})
    equal = {"batch": streaming.batch, "epochs": streaming.epochs, "beta": math.inf, "polish": 0}
    given = {key: value for key, value in settings.items() if value != AUTO}
    return {**equal, **given, "solver": name}


def _has_moments(program: Program) -> bool:
    try:
        half = torch.full((program.num_bits,), 0.5)
        moments(program, half, torch.zeros(1, *program.input_shape, dtype=torch.int8))
    except TypeError:
        return False
    return True
