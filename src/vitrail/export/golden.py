"""Rows with known answers: exported code carries some, and says whether it still agrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import ColumnCode, TableEncoder

GOLDEN = 16  # rows with known answers in exported code
Rows = Mapping[str, Sequence[Any]]  # columns by name


def sample_rows(encoder: TableEncoder | BitColumns, count: int, seed: int = 0) -> Rows:
    """Rows that reach every part of an encoder: values at, near and far from thresholds, every
    category, words never seen, missing values. The same for the same seed."""
    rng = np.random.default_rng(seed)
    if isinstance(encoder, BitColumns):
        low, high = int(np.ceil(encoder.low)), int(np.floor(encoder.high))
        drawn = rng.integers(low, high + 1, (len(encoder.names), count))
        beside = np.floor(encoder.levels).astype(np.int64)
        near = np.unique(np.clip([low, high, *beside, *(beside + 1)], low, high))
        values = np.where(rng.random(drawn.shape) < 0.5, drawn, rng.choice(near, drawn.shape))
        return dict(zip(encoder.names, values.tolist(), strict=True))
    return {code.name: _cells(code, count, rng) for code in encoder.columns}


def _cells(code: ColumnCode, count: int, rng: np.random.Generator) -> list[Any]:
    numbers: list[Any] = []
    if code.numeric:
        centre = [*code.thresholds, *code.values, code.typical]
        spread = max(centre) - min(centre) + 1
        numbers = [*centre, *(x + d * spread / 16 for x in centre for d in (-1, 1))]
        numbers += [1e30, -1e30, float("inf"), float("-inf")] if not code.whole else []
        if code.whole:
            limits = [float(2**31 - 1), float(1 - 2**31)]
            numbers = [*map(np.floor, numbers), *(np.floor(x) + 1 for x in numbers), *limits]
            numbers = [int(max(limits[1], min(limits[0], x))) for x in numbers]
        else:
            numbers = [float(np.float32(max(-3e38, min(3e38, x)))) for x in numbers]
    words: list[Any] = list(code.categories)
    if not code.numeric or code.other:
        words.append("never seen")
    kinds = [kind for kind in (numbers, words, [None]) if kind]
    share = np.array([6.0, 4.0, 1.0])[[bool(numbers), bool(words), True]]
    which = rng.choice(len(kinds), count, p=share / share.sum())
    return [kinds[k][rng.integers(len(kinds[k]))] for k in which]
