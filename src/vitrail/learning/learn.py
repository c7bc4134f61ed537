"""From rows to a model: what is left open is settled, nets are trained, a committee is made.

`learn` gives everything that was found in one object, or raises and has changed nothing. Ctrl-C
keeps the best found so far wherever it comes; before anything is found it goes on up.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn

from vitrail import __version__, interrupts
from vitrail.data.checks import checked_count
from vitrail.learning.chains import (
    LEAST_NETWORKS,
    Drawn,
    answering,
    draw,
    effort,
    how_many,
    learned,
    neighbours,
    reweighted,
    unmixed,
)
from vitrail.learning.choice import HIDDEN_SIZES, Choice, Choosing, choose, stand_in
from vitrail.learning.examples import Examples, nets_of
from vitrail.learning.held_out import USUAL
from vitrail.learning.plan import Plan, plan
from vitrail.learning.posterior import Committee, Predictor, Question, committee
from vitrail.learning.preprocessing import Front, device_for
from vitrail.learning.problem import AUTO, Problem
from vitrail.learning.select import chosen_trainer, suits
from vitrail.learning.training import Trained, problem_of, train
from vitrail.model import Model
from vitrail.model.calibration import Calibration
from vitrail.model.voting import ONE
from vitrail.nn import Flatten, Program, mlp, program_of
from vitrail.nn.nodes import MAX_SIZE
from vitrail.random import MAX_SEED
from vitrail.solvers import Status, Streaming

ACCURACY_ROWS = 20_000  # examples at most on which a model's training accuracy is measured
REMEMBERED = 20_000  # examples at most that stand for all rows so far when more of them come
RECALIBRATED = 2  # times as many rows as at the last calibration bring the next
UNRELATED = (
    "held-out rows show no relation between the columns and the labels, so probabilities stay near "
    "the shares of the classes; check the columns, or add rows"
)
WIDEST_LINEAR = 2**14  # inputs; beyond, local search takes no linear net


@dataclass(frozen=True)
class Wanted:
    """What the user asked for; "auto" leaves it to the rules."""

    hidden: Any  # units of each layer, or "auto"
    module: nn.Module | None
    settings: Mapping[str, Any]  # fields of `fitting.problem.Settings`
    predictor: Predictor | Literal["auto"]
    chained: bool  # whether networks are drawn by the recipe, without message passing
    networks: int | str  # or "auto"
    seed: int
    device: str
    progress: bool
    class_weight: Any = None  # None, "balanced" or a mapping of labels to weights
    checkpoint: str | Path | None = None  # where message passing is saved, to go on from


@dataclass(frozen=True)
class Learned:
    """All that training has found, and what later training goes on from."""

    front: Front
    plan: Plan
    trained: Trained
    model: Model
    rows: int  # so far
    memory: Examples  # they stand for all rows so far
    drawn: Drawn | None  # by the recipe
    calibration: Calibration
    calibrated: int  # rows that the calibration was made from
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
    *,
    more: bool = False,
) -> Learned:
    """Train on rows; with `earlier`, its net starts from what it was.

    more: the rows come on top of those that `earlier` has seen. The net learns from all of them,
    so that a batch of few rows, or of one class, does not undo what others have taught.
    """
    begun = time.perf_counter()
    batch, rows = front.examples(table, y, weight), len(y)
    examples = batch
    if more and earlier is not None:
        examples, rows = earlier.memory.merged(batch), earlier.rows + rows
    of_class = front.class_weights(examples, wanted.class_weight)
    examples = examples.weighted(of_class).with_columns(front.columns)
    added = batch.weighted(of_class) if more else None
    with interrupts.defer_stop():  # a stop is taken between steps, where what was found can be kept
        return _learned(front, examples, rows, wanted, earlier, added, begun)


def _learned(
    front: Front,
    examples: Examples,
    rows: int,
    wanted: Wanted,
    earlier: Learned | None,
    added: Examples | None,
    begun: float,
) -> Learned:
    nets = nets_of(examples, front.num_classes, front.scheme)
    calls = 0 if earlier is None else earlier.calls
    way = _by_chains if wanted.chained else _by_messages
    found = way(front, examples, nets, wanted, earlier, added, calls)
    made, trained, voting = found.plan, found.trained, found.committee
    calibration = voting.calibration
    known = trained.accuracy.amax(0).nan_to_num(0.0)
    record = {
        "vitrail": __version__,
        "torch": torch.__version__,
        "rows": rows,
        "settings": {**found.settings, "seed": wanted.seed},
        **found.notes,
        "steps": trained.solution.steps,
        "evaluations": trained.solution.evaluations,
        "seconds": round(time.perf_counter() - begun, 3),
        "best_accuracy": round(float(known.mean()), 6),
        "status": sorted({str(status) for status in trained.status}),
        "found_by": sorted(set(trained.found_by)),
    }
    model = Model(
        encoder=front.encoder,
        labels=front.coder,
        coding=front.coding,
        bias=front.bias,
        program=made.problem.program,
        scheme=front.scheme,
        best=trained.best,
        marginals=(trained.marginals.double() * ONE).round().to(torch.int64),
        networks=voting.networks,
        votes=voting.votes,
        clip=calibration.clip,
        calibration=calibration.table,
        thresholds=voting.thresholds,
        record=record,
    )
    record["train_accuracy"] = round(_accuracy(model, examples), 6)
    if calibration.source != "held-out rows":
        record["calibrated_by"] = calibration.source
    if calibration.source == "base rate":
        warnings.warn(UNRELATED, UserWarning, stacklevel=2)
    memory = examples.capped(REMEMBERED, (wanted.seed + calls) % MAX_SEED)
    stopped = found.stopped or voting.interrupted or Status.INTERRUPTED in trained.status
    stopped = interrupts.consume_stop() or stopped
    kept = earlier is not None and calibration is earlier.calibration
    calibrated = earlier.calibrated if kept and earlier else rows
    return Learned(
        front,
        made,
        trained,
        model,
        rows,
        memory,
        found.drawn,
        calibration,
        calibrated,
        calls + 1,
        stopped,
    )


def _accuracy(model: Model, examples: Examples) -> float:
    """The weighted share of training examples that the model answers rightly."""
    some = examples.where(torch.arange(0, len(examples), -(-len(examples) // ACCURACY_ROWS)))
    hits = model.answers_of(some.inputs).numbers == some.labels
    return float((hits * some.weight).sum() / some.weight.sum())


@dataclass(frozen=True)
class _Found:
    """What either way of training comes to."""

    plan: Plan
    trained: Trained
    committee: Committee
    settings: Mapping[str, Any]
    stopped: bool
    notes: Mapping[str, Any] = field(default_factory=dict)
    drawn: Drawn | None = None


def _by_chains(
    front: Front,
    examples: Examples,
    nets: Sequence[Examples],
    wanted: Wanted,
    earlier: Learned | None,
    added: Examples | None,
    calls: int,
) -> _Found:
    """The recipe: chains from random starts, or from where earlier ones ended.

    Rows that are added weight the networks anew; where too few of these would count, chains go on.
    The calibration stays. Once rows have doubled, all begins anew.
    """
    if wanted.checkpoint is not None:
        warnings.warn(
            "checkpoints are of message passing, and chains take none: the checkpoint is not "
            "written; leave it out, or name a solver",
            UserWarning,
            stacklevel=2,
        )
    hidden = wanted.hidden if earlier is None else earlier.plan.problem.program.hidden
    program, burn_in = effort(front.num_inputs, nets, _checked(hidden, front.num_inputs))
    asked = wanted.settings.get("beta", AUTO)
    auto = isinstance(asked, str)
    made = plan(problem_of(program, nets), {"beta": max(USUAL) if auto else asked})
    beta = None if auto else float(made.beta)
    question = _question(front, examples, nets, wanted, made)
    count = how_many(wanted.networks, program, nets)
    partner = neighbours(front.columns)
    before = None if earlier is None else earlier.drawn
    starts = None if before is None else before.networks[-1]
    if earlier is None or before is None or added is None:
        drawn, found = learned(question, partner, burn_in, count, beta, starts)
        voting = answering(question, drawn, count, found, front.encoder.spans)
    elif examples.num_rows >= RECALIBRATED * earlier.calibrated:
        drawn, found = learned(question, partner, burn_in, count, beta)
        voting = answering(question, drawn, count, found, front.encoder.spans)
    else:
        betas, found = before.betas if beta is None else (beta,), None
        drawn = reweighted(question, added, before)
        if drawn is None:
            drawn = draw(question, partner, burn_in, count, betas, starts, calls)
        voting = answering(question, drawn, count, None, calibration=earlier.calibration)
        voting = replace(voting, thresholds=earlier.model.thresholds)
    told = unmixed(drawn.mixing)
    if told is not None:
        warnings.warn(told, ConvergenceWarning, stacklevel=2)
    settings = {
        "predictor": "posterior",
        "solver": "chains",
        "hidden": list(program.hidden or ()),
        "beta": sorted(set(drawn.betas)),
        "burn_in": burn_in,
        "networks": len(voting.networks),
    }
    notes: dict[str, Any] = {"mixing": dict(drawn.mixing)}
    if found is not None:
        notes["held_out_log_loss"] = round(found.log_loss, 6)
    return _Found(made, drawn.trained, voting, settings, drawn.interrupted, notes, drawn)


def _by_messages(
    front: Front,
    examples: Examples,
    nets: Sequence[Examples],
    wanted: Wanted,
    earlier: Learned | None,
    added: Examples | None,
    calls: int,
) -> _Found:
    """Message passing and local search, then the best network or short chains from it.

    Where rows are added, streaming goes on from its beliefs; others learn anew from all rows.
    """
    choice, stopped, notes = None, False, {}
    if earlier is not None:
        program = earlier.plan.problem.program
        made = plan(problem_of(program, nets), wanted.settings)
    else:
        made, choice, stopped, notes = _settled(front, examples, nets, wanted)
    if added is not None and not any(isinstance(stage.solver, Streaming) for stage in made.stages):
        earlier, calls = None, 0
    trained, stopped = _trained(nets, made, wanted, earlier, choice, stopped, calls)
    question = _question(front, examples, nets, wanted, made)
    evidence = None if choice is None else choice.evidence
    predictor = _predictor(wanted, made)
    voting = committee(question, trained, predictor, _count(wanted), evidence)
    settings = {**made.settings, "predictor": predictor}
    return _Found(made, trained, voting, settings, stopped, notes)


def _question(
    front: Front, examples: Examples, nets: Sequence[Examples], wanted: Wanted, made: Plan
) -> Question:
    program = made.problem.program
    return Question(
        program, examples, nets, front.num_classes, front.scheme, made.beta, wanted.seed
    )


def _count(wanted: Wanted) -> int:
    """How many networks of a posterior that messages have found."""
    return LEAST_NETWORKS if isinstance(wanted.networks, str) else wanted.networks


def _predictor(wanted: Wanted, made: Plan) -> Predictor:
    """What answers: "auto" is the posterior where it means something and can be drawn from.

    Who names a solver asks for the network that it finds; hard rows have no temperature; chains
    of nets whose flips are not compiled would take longer than the training.
    """
    if made.solver == "ste" and made.problem.program.shallow is None:
        return "best"  # of a deep net it knows no posterior
    if wanted.predictor != AUTO:
        return wanted.predictor
    if made.solver == "streaming":
        return "posterior"
    named = made.solver != AUTO
    drawable = made.problem.cheap_flips and math.isfinite(made.beta)
    return "posterior" if drawable and not named else "best"


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
                checkpoint=wanted.checkpoint,
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
) -> tuple[Plan, Choice | None, bool, Mapping[str, Any]]:
    """The plan: as asked for, or what does best on rows held out; whether Ctrl-C came; notes."""

    def plan_of(problem: Problem) -> Plan:
        return plan(problem, wanted.settings)

    programs = _programs(front, wanted)
    problem = problem_of(programs[-1], nets)
    one_net = len(nets) == 1 and len(programs) == 1
    if one_net and wanted.settings.get("solver", AUTO) == AUTO and suits(problem):
        choosing = _choosing(front, examples, wanted, problem)
        found = chosen_trainer(choosing, problem, wanted.settings, _count(wanted))
        return found.plan, found.choice, found.stopped, {"held_out_accuracy": found.accuracy}
    plans = [plan_of(problem_of(program, nets)) for program in programs]
    open_search = wanted.settings.get("polish") == AUTO and any(made.polish for made in plans)
    given = wanted.module is not None or (
        len(programs) == 1 and (_predictor(wanted, plans[0]) == "posterior" or not open_search)
    )
    if given:
        return plans[0], None, False, {}
    choosing = _choosing(front, examples, wanted, problem)
    choice, stopped = choose(choosing, programs, plan_of)
    if choice is None:
        return plans[-1], None, stopped, {}
    made = plans[programs.index(choice.program)]
    if made.polish != choice.polish:
        made = made.changed(polish=choice.polish)
    return made, choice, stopped, {}


def _choosing(front: Front, examples: Examples, wanted: Wanted, problem: Problem) -> Choosing:
    device = _device(wanted, problem)
    return Choosing(examples, front.num_classes, front.scheme, wanted.seed, device, wanted.progress)


def _programs(front: Front, wanted: Wanted) -> list[Program]:
    """The nets that come into question, from simple to large."""
    shape = front.shape
    if wanted.module is not None:
        program = program_of(wanted.module, shape)
        if program.num_outputs != front.num_outputs:
            raise ValueError(
                f"the module has {program.num_outputs} outputs, expected {front.num_outputs} for "
                "these classes; change its last layer or the setting of multiclass"
            )
        return [program]
    sizes = HIDDEN_SIZES if isinstance(wanted.hidden, str) else (tuple(wanted.hidden),)
    if isinstance(wanted.hidden, str) and front.num_inputs > WIDEST_LINEAR:
        sizes = sizes[1:]
    for hidden in sizes:
        _checked(hidden, front.num_inputs)
    return [_perceptron(shape, hidden, front.num_outputs) for hidden in sizes]


def _perceptron(shape: tuple[int, ...], hidden: Any, outputs: int) -> Program:
    module = mlp(math.prod(shape), hidden, outputs)
    return program_of(module if len(shape) == 1 else nn.Sequential(Flatten(), *module), shape)


def _checked(hidden: Any, num_inputs: int) -> Any:
    """Units of hidden layers that make a net of a size that can be held; "auto" as it is."""
    most = max(1, MAX_SIZE // num_inputs)
    for units in () if isinstance(hidden, str) else hidden:
        if checked_count("a hidden layer", units, 1) > most:
            raise ValueError(
                f"a hidden layer of {units} units on {num_inputs} inputs has too many "
                f"weights; take at most {most} units"
            )
    return hidden


def _device(wanted: Wanted, problem: Problem) -> str:
    return device_for(wanted.device, problem.examples, problem.program.num_bits)
