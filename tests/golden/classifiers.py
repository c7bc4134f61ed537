"""The classifier on rows of bits, with every constructor setting given."""

import math
from typing import Any

import numpy as np
from golden import problems
from golden.record import Record, Rows, fitted
from torch import nn

from vitrail import BinaryNetClassifier

LINEAR: dict[str, Any] = {
    "hidden": (),
    "solver": "auto",
    "predictor": "best",
    "multiclass": "argmax",
    "inputs": "bipolar",
    "bias": 1,
    "update": "flip",
    "beta": 5.0,
    "module": None,
    "samples": 5,
    "damping": 0.8,
    "batch_size": 8,
    "epochs": 3,
    "restarts": 1,
    "polish": 1,
    "networks": 1,
    "class_weight": None,
    "warm_start": False,
    "random_state": 3,
    "device": "cpu",
    "verbose": 0,
}

NO_MESSAGES = {"update": "auto", "samples": "auto", "damping": "auto"}


def _fit(num_classes: int, seed: int, settings: dict[str, Any], num_rows: int = 48) -> Record:
    """Rows of 11 bits with labels that a few of them decide, and some noise."""
    rows = problems.bits(seed, num_rows, 11)
    noise = problems.bits(seed + 1, num_rows, 3).prod(1)
    labels = (rows[:, :4].sum(1) + noise > 2).long()
    if num_classes == 3:
        labels = labels + rows[:, 5] * labels
    exact = settings["solver"] != "ste"  # sums of gradients differ between processors
    return fitted(BinaryNetClassifier(**settings), rows.numpy(), np.asarray(labels), exact)


ROWS: Rows = {
    "classifier linear": lambda: _fit(2, 811, LINEAR),
    "classifier linear 0/1 restarts": lambda: _fit(
        2, 821, {**LINEAR, "inputs": "binary", "bias": 3, "restarts": 2, "polish": 0}
    ),
    "classifier one hidden": lambda: _fit(2, 831, {**LINEAR, "hidden": (3,), "bias": 2}),
    "classifier two hidden counting": lambda: _fit(
        2,
        841,
        {**LINEAR, "hidden": (3, 3), "solver": "sbp", "update": "counting", "samples": 32},
    ),
    "classifier three classes ovo": lambda: _fit(
        3, 851, {**LINEAR, "multiclass": "ovo", "solver": "sbp", "polish": 1}
    ),
    "classifier three classes argmax": lambda: _fit(
        3, 861, {**LINEAR, "multiclass": "argmax", "class_weight": "balanced"}
    ),
    "classifier three classes one hidden ovo": lambda: _fit(
        3, 871, {**LINEAR, "hidden": (3,), "multiclass": "ovo"}
    ),
    "classifier bp convolution": lambda: _fit(
        2, 881, {**LINEAR, "solver": "bp", "update": "closed_form", "beta": 2.0, "polish": 0}
    ),
    "classifier hard portfolio": lambda: _fit(2, 891, {**LINEAR, "beta": math.inf}, num_rows=24),
    "classifier straight through": lambda: _fit(
        2, 901, {**LINEAR, "solver": "ste", "polish": 0, "hidden": (3,), **NO_MESSAGES}
    ),
    "classifier plain torch net": lambda: _fit(
        2,
        911,
        {
            **LINEAR,
            "hidden": "auto",
            "module": nn.Sequential(nn.Linear(12, 2), nn.ReLU(), nn.Linear(2, 1)),
            "solver": "sbp",
            "update": "counting",
            "samples": 32,
            "polish": 0,
        },
    ),
}
