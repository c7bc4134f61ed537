"""New rows made of given ones: pairs of rows crossed column by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from vitrail.draws import Purpose, random_words

CROSS_PROBABILITY = 0.3  # probability that a column comes from the other row


def crossed(rows: Tensor, columns: Sequence[slice], count: int, seed: int) -> Tensor:
    """`count` rows, each one of `rows` with some columns of another, (count, I)."""
    words = random_words(seed, Purpose.ROWS, count * (2 + len(columns))).reshape(count, -1)
    first, second = (torch.from_numpy((words[:, k] % len(rows)).astype(np.int64)) for k in (0, 1))
    taken = torch.from_numpy(words[:, 2:] < np.uint64(CROSS_PROBABILITY * 2**64))
    made, other = rows[first].clone(), rows[second]
    for number, column in enumerate(columns):
        made[:, column] = torch.where(taken[:, number, None], other[:, column], made[:, column])
    return made
