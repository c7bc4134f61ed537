"""From rows to a model: rows become examples, a learner finds a posterior, held-out rows calibrate.

This is the one place that resolves "auto" from rows and net. A net with activations of a few bits
is learned by `ste` through its module. The learner of others, for solver="auto":

1. `chains`, where nets have one hidden layer (of a given width or of any), one output, inputs of
   0/1, and many networks answer together.
2. `select`, where a net has two or more hidden layers or convolutions, or where messages would not
   fit in memory: streaming or straight-through, by a trial on held-out rows.
3. `messages` otherwise: linear nets, inputs of ±1, one net with an output per class, other modules,
   and predictor="best". One network alone is better found by messages, which choose a small net:
   over 11 tables it was right on 0.84 of new rows, the best network of the chains on 0.80.

Going on with an earlier fit, its learner stays unless the solver is changed. Ctrl-C keeps the best
found so far wherever it comes; before anything is found it goes on up.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from vitrail import __version__, interrupts
from vitrail.learning.chains import chains
from vitrail.learning.examples import Examples, nets_of
from vitrail.learning.gradients import learn_by_gradients
from vitrail.learning.messages import learn_by_stages, programs_of
from vitrail.learning.posterior import FitOptions, Learner, Posterior, TrainingData, calibrated
from vitrail.learning.preprocessing import (
    BIAS,
    Preprocessing,
    default_coding,
    directions_of,
    image_inputs,
)
from vitrail.learning.select import needs_select, select, stream
from vitrail.learning.table import AUTO, SOLVERS, parameter_of
from vitrail.learning.training import problem_of
from vitrail.model import Model
from vitrail.model.calibration import Calibration
from vitrail.model.voting import ONE, Scheme
from vitrail.nn.nets import has_levels, reads_images
from vitrail.random import MAX_SEED
from vitrail.solvers import Status
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import fit_encoder
from vitrail.tables.frames import as_frame
from vitrail.tables.labels import LabelCoder

LEARNERS: dict[str, Learner] = {"chains": chains, "select": select, "streaming": stream}
"""Learners with a module of their own; `learn_by_stages` runs all others."""
REMEMBERING = ("chains", "streaming")  # whose earlier evidence can fade
BY_RULES = ", which solver='auto' takes for these rows and this net"
MAX_PAIR_CLASSES = 12  # beyond, a net per pair has more bits than it is worth
SCHEMES: dict[str, Scheme] = {"argmax": "argmax", "ovo": "pairs", "ovr": "one-vs-rest"}
ACCURACY_ROWS = 20_000  # examples at most on which a model's training accuracy is measured
TWO_SIDED_FROM = 400  # rows of two classes from which chains read both sides of thresholds
REMEMBERED = 20_000  # most examples that represent all rows so far
UNRELATED = (
    "held-out rows show no relation between the columns and the labels, so probabilities stay near "
    "the shares of the classes; check the columns, or add rows"
)


MEMORIES = (None, 4000.0, 500.0)  # rows, those of "auto"
LEAST = 1e-4  # probability below which the choice of a memory does not look


def weight_after(rows: int, memory: float | None) -> float:
    """Weight of earlier evidence after so many rows: exp(−rows/memory)."""
    return 1.0 if memory is None else math.exp(-rows / memory)


@dataclass(frozen=True)
class FitResult:
    """The result of training, from which later training continues."""

    preprocessing: Preprocessing
    posterior: Posterior
    calibration: Calibration
    model: Model
    rows: int  # so far
    remembered: Examples  # weighted to represent all rows so far
    status: tuple[Status, ...]  # of each net
    rivals: tuple[Rival, ...] = ()  # of memory "auto": every memory


@dataclass(frozen=True)
class Rival:
    """What training has found with one of several memories."""

    memory: float | None
    found: FitResult
    loss: float  # of predictions of rows before they were learned, which fades as evidence does


def prepare(
    table: Any,
    weight: np.ndarray,
    coder: LabelCoder,
    options: FitOptions,
    image_shape: tuple[int, ...] | None,
) -> Preprocessing:
    """The coding of inputs, and the classes that each net distinguishes.

    weight: of each row, (rows,). image_shape: of an image (channels, height, width), where rows
    came as such; a table may know it too.
    """
    bias = None if options.bias == AUTO else int(options.bias)
    drawn = getattr(table, "image_shape", None)
    if drawn is not None and options.module is not None:
        image_shape = (1, *drawn) if reads_images(options.module) else None
    image, directions = None, {}
    if options.monotonic_cst is not None:
        directions = directions_of(options.monotonic_cst, as_frame(table).columns, coder)
    if directions and (image_shape is not None or options.module is not None):
        raise ValueError(
            "monotonic_cst is for columns of tables and nets with at most one hidden layer; leave "
            "it or module out"
        )
    num_classes = len(coder.classes)
    by_chains = _by_chains(options, num_classes)
    if image_shape is None:
        many = int(np.count_nonzero(weight)) >= TWO_SIDED_FROM
        both = by_chains and num_classes == 2 and many
        encoder = fit_encoder(table, weight, directions, both)
    else:
        image = image_inputs(image_shape, options.module, bias)
        encoder = BitColumns.fit_images(table, image.cuts, whole=image.whole)
        bias = image.ones
    coding: Any = options.inputs
    if coding == AUTO:
        coding = "binary" if by_chains else default_coding(encoder)
    if bias is None:
        bias = BIAS[coding] if options.module is None else 0
    scheme: Scheme = "argmax"  # two classes need one net with one output
    if num_classes > 2 and options.multiclass != AUTO:
        scheme = SCHEMES[options.multiclass]
    elif num_classes > 2 and by_chains:
        scheme = "one-vs-rest"
    elif num_classes > 2 and options.module is None and num_classes <= MAX_PAIR_CLASSES:
        shallow = options.hidden == AUTO or len(options.hidden) <= 1
        scheme = "pairs" if shallow else "argmax"
    return Preprocessing(encoder, coder, coding, bias, scheme, image and image.shape, directions)


def learn(
    preprocessing: Preprocessing,
    table: Any,
    y: np.ndarray,
    weight: np.ndarray,
    options: FitOptions,
    previous: FitResult | None = None,
    *,
    added: bool = False,
) -> FitResult:
    """Train on rows; with `previous`, continue from it.

    added: the rows come on top of those that `previous` has seen. The net learns from all of them,
    so that a batch of few rows, or of one class, does not undo what others have taught.
    """
    start = time.perf_counter()
    if added and previous is not None and options.memory == AUTO:
        return _learn_by_each_memory(preprocessing, table, y, weight, options, previous)
    labels = torch.from_numpy(preprocessing.coder.encode(y))
    batch = Examples.distinct(preprocessing.inputs(table), labels, torch.from_numpy(weight))
    examples, rows, kept = batch, len(y), 1.0
    if added and previous is not None:
        assert not isinstance(options.memory, str)
        kept = weight_after(len(y), options.memory)
        examples, rows = previous.remembered.faded(kept).merged(batch), previous.rows + rows
    if options.class_weight is not None:
        of_class = preprocessing.class_weights(examples, options.class_weight)
        examples, batch = examples.weighted(of_class), batch.weighted(of_class)
    examples = examples.with_columns(preprocessing.encoder.spans)
    nets = nets_of(examples, preprocessing.num_classes, preprocessing.scheme)
    data = TrainingData(preprocessing, examples, nets, batch if added else None, kept)
    earlier = None if previous is None else previous.posterior
    learner, options = resolved(options, data, earlier)
    with interrupts.defer_stop():  # a stop is taken between steps, where what was found can be kept
        posterior = learner(data, options, earlier)
        if posterior.evidence is not None or previous is None:
            calibration, thresholds = calibrated(data, posterior)
        else:
            calibration, thresholds = previous.calibration, previous.model.thresholds
        model = model_of(preprocessing, posterior, calibration, thresholds)
        model.record.update(rows=rows, seconds=round(time.perf_counter() - start, 3))
        sample = examples.where(torch.arange(0, len(examples), -(-len(examples) // ACCURACY_ROWS)))
        hits = model.answers_of(sample.inputs).numbers == sample.labels
        accuracy = float((hits * sample.weight).sum() / sample.weight.sum())
        model.record["train_accuracy"] = round(accuracy, 6)
        seed = (options.seed + posterior.calls - 1) % MAX_SEED
        remembered = examples.subsampled(REMEMBERED, seed)
        stopped = interrupts.consume_stop() or posterior.interrupted
    status = (Status.INTERRUPTED,) if stopped else posterior.status
    return FitResult(preprocessing, posterior, calibration, model, rows, remembered, status)


def _learn_by_each_memory(
    preprocessing: Preprocessing,
    table: Any,
    y: np.ndarray,
    weight: np.ndarray,
    options: FitOptions,
    previous: FitResult,
) -> FitResult:
    """Go on with every memory, and answer by the one that has predicted rows best."""
    inputs = preprocessing.inputs(table)
    rows, labels = np.arange(len(y)), preprocessing.coder.encode(y)
    rivals = []
    for rival in previous.rivals or [Rival(memory, previous, 0.0) for memory in MEMORIES]:
        shares = rival.found.model.answers_of(inputs).probabilities.numpy()[rows, labels] / ONE
        loss = -float(weight @ np.log(shares.clip(min=LEAST)))
        loss += weight_after(len(y), MEMORIES[1]) * rival.loss
        own = replace(options, memory=rival.memory)
        found = learn(preprocessing, table, y, weight, own, rival.found, added=True)
        if Status.INTERRUPTED in found.status:
            return found  # later rows begin anew from it, with every memory
        rivals.append(Rival(rival.memory, found, loss))
    best = min(rivals, key=lambda rival: rival.loss)
    best.found.model.record["memory"] = best.memory
    return replace(best.found, rivals=tuple(rivals))


def resolved(
    options: FitOptions, data: TrainingData, previous: Posterior | None
) -> tuple[Learner, FitOptions]:
    """The learner of a fit, and its options by name; raises for one that it does not take."""
    solver, by_rules = options.solver, options.solver == AUTO
    few_bits = options.module is not None and has_levels(options.module)
    if few_bits and solver in (AUTO, "ste"):
        return learn_by_gradients, replace(options, solver="ste")
    if previous is not None and "solver" not in options.changed:
        solver = previous.settings["solver"]
    elif by_rules:
        solver = "chains"
        if not _by_chains(options, data.preprocessing.num_classes):
            programs = programs_of(data, options)
            one_net = len(data.nets) == 1 and len(programs) == 1
            deep = one_net and needs_select(problem_of(programs[0], data.nets))
            solver = "select" if deep else "messages"
    if solver != "chains" and isinstance(options.given.get("beta"), tuple):
        raise ValueError("several betas are for chains; give one beta, or use solver='chains'")
    name = solver if isinstance(solver, str) else ""
    if data.preprocessing.directions and name != "chains":
        other = repr(name) if name else "a solver object"
        raise ValueError(
            f"monotonic_cst is kept by chains alone, not by {other}{BY_RULES if by_rules else ''}; "
            "leave it out, or take solver='chains'"
        )
    if options.memory is not None and name not in REMEMBERING:
        raise ValueError(
            f"memory is for learners that continue from a posterior, {' and '.join(REMEMBERING)}, "
            f"not for {name or 'a solver object'}; leave it out, or use one of these"
        )
    for option in options.given if name in SOLVERS else ():
        if option not in SOLVERS[name].options:
            others = [other for other, entry in SOLVERS.items() if option in entry.options]
            raise ValueError(
                f"{parameter_of(option)} is no option of {name!r}{BY_RULES if by_rules else ''}; "
                f"leave it out, or use a solver that has it: {', '.join(others)}"
            )
    return LEARNERS.get(name, learn_by_stages), replace(options, solver=solver)


def _by_chains(options: FitOptions, num_classes: int) -> bool:
    """Whether chains learn from rows of this number of classes."""
    if options.solver != AUTO:
        return options.solver == "chains"
    return (
        options.module is None
        and (options.hidden == AUTO or len(options.hidden) == 1)
        and (num_classes == 2 or options.multiclass != "argmax")
        and options.inputs != "bipolar"
        and options.predictor != "best"
    )


def model_of(
    fixed: Preprocessing,
    posterior: Posterior,
    calibration: Calibration,
    thresholds: tuple[int, ...],
) -> Model:
    """The posterior as the model that predicts and is saved."""
    scheme = next(name for name, scheme in SCHEMES.items() if scheme == fixed.scheme)
    record = {
        "vitrail": __version__,
        "torch": torch.__version__,
        "settings": {
            **posterior.settings,
            "multiclass": scheme,
            "inputs": fixed.coding,
            "bias": fixed.bias,
            **({"monotonic_cst": dict(fixed.directions)} if fixed.directions else {}),
        },
        **posterior.notes,
        "steps": posterior.steps,
        "evaluations": posterior.evaluations,
        "best_accuracy": round(float(posterior.accuracy.nan_to_num(0.0).mean()), 6),
        "status": sorted({str(status) for status in posterior.status}),
        "found_by": sorted(set(posterior.found_by)),
    }
    if calibration.source != "held-out rows":
        record["calibrated_by"] = calibration.source
    if calibration.source == "base rate":
        warnings.warn(UNRELATED, UserWarning, stacklevel=2)
    return Model(
        encoder=fixed.encoder,
        labels=fixed.coder,
        coding=fixed.coding,
        bias=fixed.bias,
        program=posterior.program,
        scheme=fixed.scheme,
        best=posterior.best,
        marginals=(posterior.marginals.double() * ONE).round().to(torch.int64),
        networks=posterior.networks,
        votes=posterior.votes,
        clip=calibration.clip,
        calibration=calibration.table,
        thresholds=thresholds,
        record=record,
    )
