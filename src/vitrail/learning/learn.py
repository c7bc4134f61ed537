"""From rows to a model: rows become examples, a learner finds a posterior, held-out rows calibrate.

`learn` gives everything that was found in one object, or raises and has changed nothing. Ctrl-C
keeps the best found so far wherever it comes; before anything is found it goes on up.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from vitrail import __version__, interrupts
from vitrail.learning.examples import Examples, nets_of
from vitrail.learning.posterior import FitOptions, Posterior, TrainingData, calibrated
from vitrail.learning.preprocessing import Preprocessing, input_columns
from vitrail.learning.resolve import SCHEMES, resolved
from vitrail.model import Model
from vitrail.model.calibration import Calibration
from vitrail.model.voting import ONE
from vitrail.random import MAX_SEED
from vitrail.solvers import Status

ACCURACY_ROWS = 20_000  # examples at most on which a model's training accuracy is measured
REMEMBERED = 20_000  # examples at most that stand for all rows so far when more of them come
UNRELATED = (
    "held-out rows show no relation between the columns and the labels, so probabilities stay near "
    "the shares of the classes; check the columns, or add rows"
)


@dataclass(frozen=True)
class FitResult:
    """All that training has found, and what later training goes on from."""

    preprocessing: Preprocessing
    posterior: Posterior
    calibration: Calibration
    model: Model
    rows: int  # so far
    memory: Examples  # they stand for all rows so far
    status: tuple[Status, ...]  # how it ended, of each net


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
    """Train on rows; with `previous`, its net starts from what it was.

    added: the rows come on top of those that `previous` has seen. The net learns from all of them,
    so that a batch of few rows, or of one class, does not undo what others have taught.
    """
    start = time.perf_counter()
    labels = torch.from_numpy(preprocessing.coder.encode(y))
    batch = Examples.distinct(preprocessing.inputs(table), labels, torch.from_numpy(weight))
    examples, rows = batch, len(y)
    if added and previous is not None:
        examples, rows = previous.memory.merged(batch), previous.rows + rows
    if options.class_weight is not None:
        of_class = preprocessing.class_weights(examples, options.class_weight)
        examples, batch = examples.weighted(of_class), batch.weighted(of_class)
    examples = examples.with_columns(input_columns(preprocessing.encoder, preprocessing.bias))
    nets = nets_of(examples, preprocessing.num_classes, preprocessing.scheme)
    data = TrainingData(preprocessing, examples, nets, batch if added else None)
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
        memory = examples.subsampled(REMEMBERED, (options.seed + posterior.calls - 1) % MAX_SEED)
        stopped = interrupts.consume_stop() or posterior.interrupted
    status = (Status.INTERRUPTED,) if stopped else posterior.status
    return FitResult(preprocessing, posterior, calibration, model, rows, memory, status)


def model_of(
    fixed: Preprocessing,
    posterior: Posterior,
    calibration: Calibration,
    thresholds: tuple[int, ...],
) -> Model:
    """The posterior as it answers and is saved."""
    scheme = next(name for name, scheme in SCHEMES.items() if scheme == fixed.scheme)
    record = {
        "vitrail": __version__,
        "torch": torch.__version__,
        "settings": {
            **posterior.settings,
            "multiclass": scheme,
            "inputs": fixed.coding,
            "bias": fixed.bias,
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
