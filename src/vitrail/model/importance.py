"""Importance of columns, read off the networks and their votes: no rows, no labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from vitrail.draws import Purpose, random_words
from vitrail.numerics import DEFAULT_MEMORY, chunks
from vitrail.tables.bits import BitColumns

if TYPE_CHECKING:
    from vitrail.model.model import Model

MOST_ROWS, LEAST_ROWS = 256, 16  # random rows on which every column is redrawn
WORK = 1e10  # weights read in all: under a second in packed words, a few seconds elsewhere
FEWER = 32  # networks that are evaluated where all of them would take longer


def column_bits(model: Model) -> list[tuple[str, slice]]:
    """The columns that have bits, and the places of their bits."""
    encoder = model.encoder
    bits = isinstance(encoder, BitColumns)
    names = encoder.names if bits else [code.name for code in encoder.columns]
    return list(zip(names, encoder.spans, strict=True))


def importances(model: Model) -> np.ndarray:
    """The share of the votes' variance that each column of training accounts for, (columns,).

    Rows x are drawn with every column uniform over the values that its encoder tells apart. With
    score f(x), the weighted mean of clipped margins, and x' equal to x but for a new draw of the
    column, the importance is the total effect E (f(x) − f(x'))² / 2 (Jansen, Comput. Phys. Commun.
    117, 1999, eq. 11), summed over nets and divided by the sum over columns. Interactions count
    for every column in them. Networks that disagree about a column cancel in f, so noise scores
    near zero. All are zero where no column moves a vote.
    """
    constant = set(model.encoder.constant if isinstance(model.encoder, BitColumns) else ())
    columns, states = column_bits(model), [bits for _, bits in model.encoder.states()]
    work = len(columns) * model.networks.numel()
    if work * LEAST_ROWS > WORK:
        every = max(1, len(model.networks) // FEWER)
        model = replace(model, networks=model.networks[::every], votes=model.votes[::every])
        work = len(columns) * model.networks.numel()
    rows = int(np.clip(WORK // work, LEAST_ROWS, MOST_ROWS))
    words = random_words(0, Purpose.INPUTS, 2 * rows * len(columns)).reshape(-1, 2, rows)
    old, new = np.zeros((2, rows, len(model.encoder.bit_names)), np.int8)
    for (_, span), bits, (first, second) in zip(columns, states, words, strict=True):
        old[:, span], new[:, span] = bits[first % len(bits)], bits[second % len(bits)]
    base, found = _scores(model, old), dict.fromkeys(model.encoder.all_names, 0.0)
    for part in chunks(len(columns), old.size, DEFAULT_MEMORY):
        changed = np.repeat(old[None], part.stop - part.start, 0)
        for one, (_, span) in zip(changed, columns[part], strict=True):
            one[:, span] = new[:, span]
        moved = _scores(model, changed.reshape(-1, old.shape[1])).reshape(-1, *base.shape) - base
        for (name, _), effect in zip(columns[part], moved.square().mean(1).sum(1), strict=True):
            found[name] = 0.0 if name in constant else float(effect)
    total = sum(found.values())
    return np.array(list(found.values())) / (total or 1.0)


def _scores(model: Model, bits: np.ndarray) -> Tensor:
    """Scores of bits as shares of the largest, (rows, N·O) float64 in [−1, 1]."""
    scores = torch.cat([score for score, _ in model.tallies(model.inputs_of(bits))])
    most = model.clip * model.votes.sum(0)[:, None]
    return (scores.double() / most).flatten(1)
