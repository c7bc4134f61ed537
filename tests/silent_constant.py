"""The failure that no exception shows: every row gets one answer, though networks know better."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from vitrail.model import Model

SILENT_CONSTANT = "silent constant"  # the name of this fault in tests and counts
STANDARD_ERRORS = 5.0  # one such alarm in 3 million models whose networks know nothing


def is_silent_constant(model: Model, rows: Any, labels: Any) -> bool:
    """Whether all rows get one answer, the best network beats it, and the model does not say so.

    Rows must not be those of training, where networks fit noise too. Rows that the network alone
    gets right are compared with those that the answer alone gets right: of a network without
    knowledge their difference has a standard error of at most the root of their number. A model
    that answers with the base rate because held-out rows told it so has a note in its record.
    """
    truth = np.asarray(labels)
    answers = model.predict(rows)
    if (
        len(truth) == 0
        or len(set(answers.tolist())) > 1
        or model.record.get("calibrated_by") == "base rate"
    ):
        return False
    alone = best_network(model).predict(rows)
    gained = int(((alone == truth) & (answers != truth)).sum())
    lost = int(((alone != truth) & (answers == truth)).sum())
    return gained - lost > STANDARD_ERRORS * (gained + lost) ** 0.5


def best_network(model: Model) -> Model:
    """The model whose only network is the best one, answering as its outputs say."""
    return replace(
        model,
        networks=model.best[None],
        votes=torch.ones(1, len(model.best), dtype=torch.int64),
        calibration=(255 * torch.arange(257) + 128).expand(len(model.best), -1).clone(),
    )
