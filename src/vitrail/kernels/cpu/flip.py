"""`flip` on the CPU: messages from beliefs, or hits from thresholds, one row per factor.

Results are allocated by numpy, which uses huge pages. Freed blocks of more than 32 MiB go back to
the system, and mapping torch's small pages again would take as long as the draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import uint32
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cpu import one_hidden, perceptron
from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import draw_address
from vitrail.kernels.cpu.rows import buffers, cavities, find_thresholds, write
from vitrail.kernels.cpu.threads import over_rows
from vitrail.random import Key, threshold_edges
from vitrail.scopes import Dense

MAX_SAMPLES = 2**15 - 1  # hits are counted in 16-bit lanes
MAX_FAN_IN = 2**14  # and so are sums

_NET = "int8[:, ::1], int64[::1], int64[::1], int64, {net}, int64"
_ADDRESS = "int64, uint32[::1], uint32[::1], uint32, uint32, uint32"


def _of_both(signature: str) -> Any:
    """Compile a kernel for perceptrons, whose `net` is None, and for nets with a hidden layer."""

    def decorate(function: Any) -> tuple[Any, ...]:
        kinds = ("none", "UniTuple(int64, 5)")
        return tuple(compiled(signature.replace("{net}", kind))(function) for kind in kinds)

    return decorate


@_of_both(
    f"void(int64, int64, int32[:, :, ::1], {_NET}, {_ADDRESS}, int32[:, :, ::1], int32[:, :, ::1])"
)
def _hits(
    begin, end, threshold, inputs, labels, ids, low, net, samples,
    together, blocks, numbers, number, k0, k1, one, zero,
):  # fmt: skip
    """one and zero (F, R, A): of `samples` draws per track, those that meet the label with the
    weight set to one and to zero. threshold (F, R, A), inputs (F, I), ids (F,)."""
    tracks, arity = threshold.shape[1], threshold.shape[2]
    tile = together, blocks, numbers
    if net is None:
        row = buffers(arity, arity, 0, blocks.shape[0])
    else:
        row = buffers(arity, net[0], net[1], blocks.shape[0])
    one_more, zero_more = row[3], row[4]
    for f in range(begin, end):
        address = uint32(ids[f]), number, k0, k1
        if net is None:
            constant = perceptron.signed_inputs(inputs[f], labels[f], low, row[2])
        else:
            row[2][: net[0]] = inputs[f]
        for r in range(tracks):
            if net is None:
                shared, _ = perceptron.flips(
                    threshold[f, r], row[:6], constant, np.int32(1 - low), samples, r * samples,
                    tile, address,
                )  # fmt: skip
            else:
                shared, _ = one_hidden.flips(
                    threshold[f, r], row, labels[f], net, samples, r * samples, tile, address
                )
            for a in range(arity):
                one[f, r, a] = shared + one_more[a]
                zero[f, r, a] = shared + zero_more[a]


@_of_both(
    "void(int64, int64, int64[::1], float64[::1], int64[::1], float32[:, ::1], float64[::1],"
    f" float64, {_NET}, float64[:, ::1], {_ADDRESS}, float64[:, ::1], boolean[:, ::1])"
)
def _messages(
    begin, end, rows, belief, start, message, edges, limit, inputs, labels, ids, low, net, samples,
    logs, together, blocks, numbers, number, k0, k1, log_odds, starved,
):  # fmt: skip
    """log_odds and starved (f, A) of the factors at rows (f,): cavities, thresholds, draws, logs.

    Factor f sees belief[start[f]:start[f] + A]; logs (F or 1, S+1) of the mean for each hit count.
    """
    arity = message.shape[1]
    tile = together, blocks, numbers
    if net is None:
        row = buffers(arity, arity, 0, blocks.shape[0])
    else:
        row = buffers(arity, net[0], net[1], blocks.shape[0])
    one_more, zero_more = row[3], row[4]
    cavity, threshold = np.empty(arity, np.float64), np.empty(arity, np.int32)
    for i in range(begin, end):
        f = rows[i]
        cavities(belief[start[f] : start[f] + arity], message[f], limit, cavity)
        find_thresholds(cavity, edges, threshold)
        address = uint32(ids[f]), number, k0, k1
        if net is None:
            constant = perceptron.signed_inputs(inputs[f], labels[f], low, row[2])
            shared, sensitive = perceptron.flips(
                threshold, row[:6], constant, np.int32(1 - low), samples, 0, tile, address
            )
        else:
            row[2][: net[0]] = inputs[f]
            shared, sensitive = one_hidden.flips(
                threshold, row, labels[f], net, samples, 0, tile, address
            )
        table = logs[f if logs.shape[0] > 1 else 0]
        write(table, shared, one_more, zero_more, sensitive, limit, log_odds[i], starved[i])


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons, and nets with one hidden layer and one output."""
    return samples <= MAX_SAMPLES and _shape(factors) is not None


def _shape(factors: Factors) -> tuple[int, tuple[int, ...] | None] | None:
    """The value of a zero bit of the last layer, and the kernel's argument for a hidden layer."""
    net = factors.program.shallow if isinstance(factors, Network) else None
    if net is None or net.num_outputs > 1 or net.num_inputs > MAX_FAN_IN:
        return None
    lows = net.low_hidden, net.low_output, net.low_active
    hidden = (net.num_inputs, net.num_hidden, *lows) if net.num_hidden else None
    return net.low_output, hidden


def hits(key: Key, factors: Network, threshold: Tensor, samples: int) -> tuple[Tensor, Tensor]:
    """Hits of S draws per track with each weight set to 1, and to 0.

    threshold (F, R, A) int32 → two (F, R, A) int32.
    """
    shape = _shape(factors)
    assert shape is not None  # see `serves`
    kernel = _hits[shape[1] is not None]
    one, zero = np.empty(threshold.shape, np.int32), np.empty(threshold.shape, np.int32)
    arguments = (
        threshold.contiguous().numpy(),
        *network_arrays(factors),
        *shape,
        samples,
        *draw_address(key, factors.arity, threshold.shape[1] * samples),
        one,
        zero,
    )
    over_rows(
        lambda begin, end: kernel(begin, end, *arguments),
        factors.num_factors,
        threshold[0].numel() * samples if factors.num_factors else 0,
    )
    return torch.from_numpy(one), torch.from_numpy(zero)


def messages(
    key: Key, factors: Network, belief: Tensor, message: Tensor, samples: int,
    limit: float, rows: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Log-odds (f, A) float64 and starved (f, A) bool from beliefs and the last messages (F, A)."""
    shape = _shape(factors)
    assert shape is not None  # see `serves`
    kernel = _messages[shape[1] is not None]
    places = factors.once(all_rows) if rows is None else rows.numpy()
    log_odds = np.empty((len(places), factors.arity))
    starved = np.empty(log_odds.shape, np.bool_)
    arguments = (
        places,
        *_beliefs(factors, belief, places),
        message.contiguous().numpy(),
        threshold_edges(message.device).numpy(),
        limit,
        *network_arrays(factors),
        *shape,
        samples,
        factors.log_means(samples).numpy(),
        *draw_address(key, factors.arity, samples),
        log_odds,
        starved,
    )
    over_rows(
        lambda begin, end: kernel(begin, end, *arguments),
        len(places),
        factors.arity * (samples + 4),  # thresholds and logs take as long as about four draws
    )
    return torch.from_numpy(log_odds), torch.from_numpy(starved)


def network_arrays(factors: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs (F, I) int8, labels and ids (F,) int64."""
    return factors.rows.numpy(), factors.labels.numpy(), factors.ids.numpy()


def all_rows(factors: Factors) -> np.ndarray:
    """The number of every factor, (F,) int64."""
    return np.arange(factors.num_factors)


def _beliefs(factors: Factors, belief: Tensor, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Beliefs, and the offset of each factor's first one, (F,); other rows are not read."""
    if isinstance(factors.scope, Dense):
        return belief.contiguous().numpy(), factors.scope.start.numpy()
    runs = factors.scope.select(torch.from_numpy(rows)).gather(belief)
    start = np.zeros(factors.num_factors, np.int64)
    start[rows] = np.arange(len(rows)) * factors.arity
    return runs.flatten().numpy(), start
