"""Rows that nobody has seen, made of rows that were: two are crossed, column by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from vitrail.data.draws import Purpose, random_words

CROSSED = 0.3  # probability of a column to come from another row


def crossed(rows: Tensor, columns: Sequence[slice], count: int, seed: int) -> Tensor:
    """`count` rows, each of one of `rows` with some columns of another, (count, I)."""
    words = random_words(seed, Purpose.ROWS, count * (2 + len(columns))).reshape(count, -1)
    first, second = (torch.from_numpy((words[:, k] % len(rows)).astype(np.int64)) for k in (0, 1))
    taken = torch.from_numpy(words[:, 2:] < np.uint64(CROSSED * 2**64))
    made, other = rows[first].clone(), rows[second]
    for number, column in enumerate(columns):
        made[:, column] = torch.where(taken[:, number, None], other[:, column], made[:, column])
    return made
