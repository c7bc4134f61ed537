"""`flip` on the CPU: tensors in and out of the compiled kernels.

Results are numpy's memory: it is asked for in huge pages. Beyond 32 MiB no allocator keeps what
was freed, and torch's small pages would cost as much as the draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cpu import one_hidden, perceptron
from vitrail.kernels.cpu.philox import draw_address
from vitrail.kernels.cpu.threads import over_rows
from vitrail.random import Key, threshold_edges
from vitrail.scopes import Dense

MAX_SAMPLES = 2**15 - 1  # hits are counted in 16-bit lanes
MAX_FAN_IN = 2**14  # and so are sums


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons, whichever way they are spelled, and one hidden layer with one output."""
    return samples <= MAX_SAMPLES and _kind(factors) is not None


def perceptron_low(factors: Factors) -> int | None:
    """What a zero bit stands for, where the factors are perceptrons."""
    kind = _kind(factors)
    return kind[1] if kind is not None and kind[0] is perceptron else None


def _kind(factors: Factors) -> tuple[Any, Any] | None:
    """The kernels for the factors, and the shape of the net."""
    net = factors.program.shallow if isinstance(factors, Network) else None
    if net is None or net.num_outputs > 1 or net.num_inputs > MAX_FAN_IN:
        return None
    if net.num_hidden == 0:
        return perceptron, net.low_output
    lows = (net.low_hidden, net.low_output, net.low_active)
    return one_hidden, (net.num_inputs, net.num_hidden, *lows)


def hits(
    key: Key, factors: Network, threshold: Tensor, samples: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Of S draws per track those that meet the label: with each weight set to 1, to 0, as drawn.

    threshold (F, R, A) int32 → two (F, R, A) int32 and one (F, R) int32.
    """
    kind = _kind(factors)
    assert kind is not None  # `serves` was asked
    kernels, shape = kind
    one, zero = np.empty(threshold.shape, np.int32), np.empty(threshold.shape, np.int32)
    drawn = np.empty(threshold.shape[:2], np.int32)
    arguments: tuple[Any, ...] = (
        threshold.contiguous().numpy(),
        *classifiers(factors),
        shape,
        samples,
        *draw_address(key, factors.arity, threshold.shape[1] * samples),
        one,
        zero,
        drawn,
    )
    over_rows(
        lambda begin, end: kernels.hits(begin, end, *arguments),
        factors.num_factors,
        threshold[0].numel() * samples if factors.num_factors else 0,
    )
    return torch.from_numpy(one), torch.from_numpy(zero), torch.from_numpy(drawn)


def messages(
    key: Key, factors: Network, belief: Tensor, message: Tensor, samples: int,
    limit: float, rows: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Log-odds (f, A) float64 and starved (f, A) bool from beliefs and the last messages (F, A)."""
    kind = _kind(factors)
    assert kind is not None  # `serves` was asked
    kernels, shape = kind
    places = factors.once(all_rows) if rows is None else rows.numpy()
    log_odds = np.empty((len(places), factors.arity))
    starved = np.empty(log_odds.shape, np.bool_)
    arguments: tuple[Any, ...] = (
        places,
        *_beliefs(factors, belief, places),
        message.contiguous().numpy(),
        threshold_edges(message.device).numpy(),
        limit,
        *classifiers(factors),
        shape,
        samples,
        factors.log_means(samples).numpy(),
        *draw_address(key, factors.arity, samples),
        log_odds,
        starved,
    )
    over_rows(
        lambda begin, end: kernels.messages(begin, end, *arguments),
        len(places),
        factors.arity * (samples + 4),  # thresholds and logs weigh about four draws
    )
    return torch.from_numpy(log_odds), torch.from_numpy(starved)


def classifiers(factors: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs (F, I) int8, labels and ids (F,) int64."""
    return (
        factors.rows.numpy(),
        factors.labels.numpy(),
        factors.ids.numpy(),
    )


def all_rows(factors: Factors) -> np.ndarray:
    """The number of every factor, (F,) int64."""
    return np.arange(factors.num_factors)


def _beliefs(factors: Factors, belief: Tensor, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Beliefs and where each factor's run of them begins, (F,); other rows are not read."""
    if isinstance(factors.scope, Dense):
        return belief.contiguous().numpy(), factors.scope.start.numpy()
    runs = factors.scope.select(torch.from_numpy(rows)).gather(belief)
    start = np.zeros(factors.num_factors, np.int64)
    start[rows] = np.arange(len(rows)) * factors.arity
    return runs.flatten().numpy(), start
