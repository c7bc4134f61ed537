"""Stratified folds of rows: the one way in which the package holds rows out.

Examples are merged rows. A fold is made of rows, so an example that stands for 500 of them is
divided among the folds: a row that repeats is seen in training as it will be seen later, and a
row with both labels is judged by networks that saw both.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vitrail.data.draws import random_order
from vitrail.fitting.examples import Examples


def stratified_folds(examples: Examples, folds: int, seed: int) -> Tensor:
    """The share of each example's rows in each fold, (folds, F) float64; columns add up to one.

    The rows of each class, in random order of their examples, are dealt to the folds in turn. An
    example of m rows has max(1, round(m)) of them. Where the examples are all combinations of what
    their columns hold, no new row is unlike those seen: examples of fewer rows than folds are then
    divided evenly, so that none is held out whole.
    """
    order = torch.from_numpy(random_order(seed, len(examples)))
    by_class = order[examples.labels[order].sort(stable=True).indices]
    rows = examples.rows.round().clamp(min=1).to(torch.int64)
    end = rows[by_class].cumsum(0)
    start = end - rows[by_class]
    fold = torch.arange(folds)[:, None]
    dealt = (end - fold + folds - 1) // folds - (start - fold + folds - 1) // folds
    share = torch.empty(folds, len(examples), dtype=torch.float64)
    share[:, by_class] = dealt.double() / rows[by_class]
    if examples.complete:
        share[:, rows < folds] = 1 / folds
    return share
