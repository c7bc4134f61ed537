"""Scores of perceptrons at configurations, compiled: 8-bit inputs, 16-bit sums, one pass."""

from __future__ import annotations

import numpy as np
import torch
from numba import uint64
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.flip import MAX_FAN_IN, network_arrays
from vitrail.kernels.cpu.threads import over_rows
from vitrail.scopes import Dense


@compiled(
    "void(int64, int64, int8[:, ::1], int64[::1], int64[::1], int64, int16[:, ::1],"
    " boolean[:, ::1])"
)
def _score(begin, end, inputs, labels, start, low, masks, out):
    """out (F, C): whether factor f, whose bits begin at start[f], is satisfied.

    masks[c, v] is −1 where bit v of configuration c is one, else 0.
    """
    for f in range(begin, end):
        x = inputs[f]
        total = np.int16(0)
        if low != 0:
            for a in range(x.shape[0]):
                total = np.int16(total + x[a])
        for c in range(masks.shape[0]):
            ones = np.int16(0)
            at = uint64(start[f])  # unsigned: negative indices need no check
            for a in range(uint64(x.shape[0])):
                ones = np.int16(ones + (np.int16(x[a]) & masks[c, at + a]))
            positive = low * total + (1 - low) * np.int64(ones) > 0
            out[f, c] = positive == (labels[f] == 1)


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons whose variables are consecutive."""
    known = factors.perceptron_low is not None and factors.arity <= MAX_FAN_IN
    return known and isinstance(factors.scope, Dense)


def satisfied(factors: Network, states: Tensor) -> Tensor:
    """Whether each factor is satisfied at configurations (C, V) bool: (C, F) bool."""
    assert isinstance(factors.scope, Dense)
    if not factors.num_factors:
        return torch.empty(len(states), 0, dtype=torch.bool)
    first, last = factors.scope.start.min(), factors.scope.start.max()
    seen = states[:, first : last + factors.arity]
    masks = seen.to(torch.int16).neg().contiguous()
    inputs, labels, _ = network_arrays(factors)
    out = torch.empty(factors.num_factors, len(states), dtype=torch.bool)
    start, low = (factors.scope.start - first).numpy(), factors.perceptron_low
    arguments = inputs, labels, start, low, masks.numpy(), out.numpy()
    work = factors.arity * len(states) // 4
    over_rows(lambda begin, end: _score(begin, end, *arguments), factors.num_factors, work)
    return out.T
