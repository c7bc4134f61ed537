"""From rows to a model: what is left open is settled, nets are trained, a committee is made.

`learn` gives everything that was found in one object, or raises and has changed nothing. Ctrl-C
keeps the best found so far wherever it comes; before anything is found it goes on up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from vitrail import __version__
from vitrail.data.checks import checked_count
from vitrail.fitting.choice import HIDDEN_SIZES, Choice, Choosing, choose, stand_in
from vitrail.fitting.examples import Examples, nets_of
from vitrail.fitting.front import Front, device_for
from vitrail.fitting.plan import Plan, plan
from vitrail.fitting.posterior import Predictor, Question, committee
from vitrail.fitting.problem import AUTO, Problem
from vitrail.fitting.training import Trained, problem_of, train
from vitrail.model import Model
from vitrail.model.voting import ONE
from vitrail.nn import Program, mlp, program_of
from vitrail.nn.nodes import MAX_SIZE
from vitrail.random import MAX_SEED
from vitrail.solvers import Status


@dataclass(frozen=True)
class Wanted:
    """What the user asked for; "auto" leaves it to the rules."""

    hidden: Any  # units of each layer, or "auto"
    module: nn.Module | None
    settings: Mapping[str, Any]  # fields of `fitting.problem.Settings`
    predictor: Predictor
    networks: int
    seed: int
    device: str
    progress: bool


@dataclass(frozen=True)
class Learned:
    """All that training has found, and what later training goes on from."""

    front: Front
    plan: Plan
    trained: Trained
    model: Model
    memory: Examples  # a few of every class so far
    calls: int
    interrupted: bool

    @property
    def status(self) -> tuple[Status, ...]:
        return (Status.INTERRUPTED,) if self.interrupted else self.trained.status


def learn(
    front: Front,
    table: Any,
    y: np.ndarray,
    weight: np.ndarray,
    wanted: Wanted,
    earlier: Learned | None = None,
) -> Learned:
    """Train on rows; with `earlier`, its net goes on from its marginals."""
    begun = time.perf_counter()
    examples = front.examples(table, y, weight)
    memory = None if earlier is None else earlier.memory
    nets = nets_of(examples, front.num_classes, front.pairs, memory)
    choice, stopped = None, False
    if earlier is not None:
        program = earlier.plan.problem.program
        made = plan(problem_of(program, nets), wanted.settings)
    else:
        made, choice, stopped = _settled(front, examples, nets, wanted)
    calls = 0 if earlier is None else earlier.calls
    trained, stopped = _trained(nets, made, wanted, earlier, choice, stopped, calls)
    program = made.problem.program
    question = Question(
        program, examples, nets, front.num_classes, front.pairs, made.beta, wanted.seed
    )
    evidence = None if choice is None else choice.evidence
    answering = committee(question, trained, wanted.predictor, wanted.networks, evidence)
    stopped = stopped or answering.interrupted or Status.INTERRUPTED in trained.status
    known = trained.accuracy.amax(0).nan_to_num(0.0)
    record = {
        "vitrail": __version__,
        "torch": torch.__version__,
        "rows": len(y),
        "settings": {**made.settings, "predictor": wanted.predictor, "seed": wanted.seed},
        "steps": trained.solution.steps,
        "evaluations": trained.solution.evaluations,
        "seconds": round(time.perf_counter() - begun, 3),
        "train_accuracy": round(float(known.mean()), 6),
        "status": sorted({str(status) for status in trained.status}),
        "found_by": sorted(set(trained.found_by)),
    }
    model = Model(
        encoder=front.encoder,
        labels=front.coder,
        coding=front.coding,
        bias=front.bias,
        program=program,
        pairs=front.pairs,
        best=trained.best,
        marginals=(trained.marginals.double() * ONE).round().to(torch.int64),
        networks=answering.networks,
        votes=answering.votes,
        clip=answering.clip,
        calibration=answering.calibration,
        thresholds=answering.thresholds,
        record=record,
    )
    seen = examples if memory is None else examples.and_also(memory)
    kept = seen.remembered((wanted.seed + calls) % MAX_SEED)
    return Learned(front, made, trained, model, kept, calls + 1, stopped)


def _trained(
    nets: Sequence[Examples],
    made: Plan,
    wanted: Wanted,
    earlier: Learned | None,
    choice: Choice | None,
    stopped: bool,
    calls: int,
) -> tuple[Trained, bool]:
    """What training on all rows finds; after Ctrl-C, if that is better, what the choice found."""
    found: Trained | None = None
    if not stopped:
        try:
            found = train(
                nets,
                made,
                seed=(wanted.seed + calls) % MAX_SEED,
                device=_device(wanted, made.problem),
                earlier=None if earlier is None else earlier.trained,
                progress=wanted.progress,
            )
            stopped = Status.INTERRUPTED in found.status
        except KeyboardInterrupt:
            if choice is None:
                raise
            stopped = True
    if stopped and choice is not None:
        instead = stand_in(choice, nets, made.restarts)
        if found is None or instead.accuracy.nanmean() > found.accuracy.nanmean():
            found = instead
    assert found is not None
    return found, stopped


def _settled(
    front: Front, examples: Examples, nets: Sequence[Examples], wanted: Wanted
) -> tuple[Plan, Choice | None, bool]:
    """The plan: as asked for, or what does best on rows held out; and whether Ctrl-C came."""

    def plan_of(problem: Problem) -> Plan:
        return plan(problem, wanted.settings)

    programs = _programs(front, wanted)
    plans = [plan_of(problem_of(program, nets)) for program in programs]
    open_search = wanted.settings.get("polish") == AUTO and any(made.polish for made in plans)
    given = wanted.module is not None or (
        len(programs) == 1 and (wanted.predictor == "posterior" or not open_search)
    )
    if given:
        return plans[0], None, False
    device = _device(wanted, plans[-1].problem)
    choosing = Choosing(
        examples, front.num_classes, front.pairs, wanted.seed, device, wanted.progress
    )
    choice, stopped = choose(choosing, programs, plan_of)
    if choice is None:
        return plans[-1], None, stopped
    made = plans[programs.index(choice.program)]
    if made.polish != choice.polish:
        made = made.changed(polish=choice.polish)
    return made, choice, stopped


def _programs(front: Front, wanted: Wanted) -> list[Program]:
    """The nets that come into question, from simple to large."""
    shape = (front.num_inputs,)
    if wanted.module is not None:
        program = program_of(wanted.module, shape)
        if program.num_outputs != front.num_outputs:
            raise ValueError(
                f"the module has {program.num_outputs} outputs, expected {front.num_outputs} for "
                "these classes; change its last layer or the setting of multiclass"
            )
        return [program]
    sizes = HIDDEN_SIZES if isinstance(wanted.hidden, str) else (tuple(wanted.hidden),)
    for units in (units for hidden in sizes for units in hidden):
        most = max(1, MAX_SIZE // front.num_inputs)
        if checked_count("a hidden layer", units, 1) > most:
            raise ValueError(
                f"a hidden layer of {units} units on {front.num_inputs} inputs has too many "
                f"weights; take at most {most} units"
            )
    return [program_of(mlp(*shape, hidden, front.num_outputs), shape) for hidden in sizes]


def _device(wanted: Wanted, problem: Problem) -> str:
    return device_for(wanted.device, problem.examples, problem.program.num_bits)
