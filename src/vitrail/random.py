"""Randomness as a pure function of (seed, step, stream, factor, sample, slot).

Every draw is one lane of Philox4x32-10 (Salmon et al., SC 2011). There is no generator state, so
a run does not depend on threads, chunks or the order of factors, and resuming needs only (seed,
step).

    key     = (seed mod 2³², (seed div 2³²) | stream·2²⁴)
    counter = (slot div lanes, sample, factor, step)

One call yields eight 16-bit lanes (weights: `bit = lane < threshold`) or four 32-bit lanes.
This module is the reference; `kernels.cpu.philox` gives the same bits, compiled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from numbers import Integral

import torch
from torch import Tensor

MAX_SEED = 2**56  # the stream is the top byte of the 64-bit Philox key
THRESHOLD_ONE = 65536  # a 16-bit lane is always below it: probability exactly one

_MASK32 = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


class Stream(IntEnum):
    """The purpose of a draw; two uses of one (step, factor, sample, slot) differ in stream."""

    PRIOR = 0
    SCHEDULE = 1
    CONFIGURATION = 2
    SURVEY = 3
    FALLBACK = 4
    DECODE = 5
    BRANCH = 6
    SEARCH = 7
    CAVITY = 8
    CHAIN = 9


@dataclass(frozen=True)
class Key:
    """The part of a draw's address that a whole tensor shares."""

    seed: int
    step: int = 0
    stream: Stream = Stream.CONFIGURATION

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int | Integral) or not 0 <= self.seed < MAX_SEED:
            raise ValueError(
                f"seed must be an integer from 0 to 2**56 - 1, got {self.seed}; pass a smaller one"
            )
        if not 0 <= self.step <= _MASK32:
            raise ValueError(f"step must be an integer from 0 to 2**32 - 1, got {self.step}")

    def at(self, step: int) -> Key:
        return Key(self.seed, step, self.stream)

    def of(self, stream: Stream) -> Key:
        return Key(self.seed, self.step, stream)

    def words(self) -> tuple[int, int]:
        """The two 32-bit words of the Philox key."""
        return self.seed & _MASK32, (self.seed >> 32) | (int(self.stream) << 24)


def philox(counter: tuple[Tensor, Tensor, Tensor, Tensor], key: tuple[int, int]) -> list[Tensor]:
    """Philox4x32-10 of four broadcastable int64 tensors: four int64 tensors in [0, 2³²)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        # int64 products wrap modulo 2⁶⁴, so shifting and masking still gives both exact halves
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            ((p1 >> 32) & _MASK32) ^ c1 ^ k0,
            p1 & _MASK32,
            ((p0 >> 32) & _MASK32) ^ c3 ^ k1,
            p0 & _MASK32,
        )
        k0, k1 = (k0 + _WEYL[0]) & _MASK32, (k1 + _WEYL[1]) & _MASK32
    return [c0, c1, c2, c3]


def lanes16(key: Key, factors: Tensor, samples: Tensor, num_slots: int) -> Tensor:
    """Eight 16-bit lanes per call.

    factors and samples are int64 of broadcastable shapes (...); the answer is int32
    (..., num_slots) in [0, 65536).
    """
    blocks = torch.arange((num_slots + 7) // 8, device=factors.device)
    step = torch.full((), key.step, dtype=torch.int64, device=factors.device)
    words = philox((blocks, samples[..., None], factors[..., None], step), key.words())
    lanes = [half for word in words for half in (word & 0xFFFF, word >> 16)]
    return torch.stack(lanes, dim=-1).to(torch.int32).flatten(-2)[..., :num_slots]


def lanes32(
    key: Key, factors: Tensor, samples: Tensor, num_slots: int, step: Tensor | None = None
) -> Tensor:
    """Four 32-bit lanes per call: int64 (..., num_slots) in [0, 2³²).

    `step`, int64 and broadcastable with factors, replaces that of the key, for earlier draws.
    """
    blocks = torch.arange((num_slots + 3) // 4, device=factors.device)
    if step is None:
        step = torch.full((), key.step, dtype=torch.int64, device=factors.device)
    counter = (blocks, samples[..., None], factors[..., None], step[..., None])
    words = philox(counter, key.words())
    return torch.stack(words, dim=-1).flatten(-2)[..., :num_slots]


@cache
def threshold_edges(device: torch.device) -> Tensor:
    """The log-odds at which the threshold becomes k: logit((k − ½)/65536), (65538,) float64.

    The ends are ∓inf. Rounded to multiples of 2⁻⁴⁰, so that the last bit of logarithms, which
    differs between machines, has no effect.
    """
    inner = torch.logit((torch.arange(1, THRESHOLD_ONE + 1).double() - 0.5) / THRESHOLD_ONE)
    inner = torch.round(inner * 2.0**40) / 2.0**40
    ends = torch.tensor([math.inf], dtype=torch.float64)
    return torch.cat([-ends, inner, ends]).to(device)


def thresholds(log_odds: Tensor) -> Tensor:
    """P(1) = 1/(1+exp(−x)) on the 16-bit lattice: int32 in 0…65536, the shape of `log_odds`.

    The threshold is the number of edges at or below x. The sigmoid approximates it to within one,
    and comparisons with edges correct it, so that it is the same on every device.
    """
    x, edges = log_odds.to(torch.float64), threshold_edges(log_odds.device)
    guess = torch.round(torch.sigmoid(x) * THRESHOLD_ONE).to(torch.int64)
    guess = guess.clamp(0, THRESHOLD_ONE)  # NaN is not an index
    exact = guess + (x >= edges[guess + 1]).to(torch.int64) - (x < edges[guess]).to(torch.int64)
    return exact.clamp(max=THRESHOLD_ONE).to(torch.int32)  # +inf passes the last edge too


def bernoulli(key: Key, factors: Tensor, samples: Tensor, threshold: Tensor) -> Tensor:
    """Bits with P(1) = threshold / 65536.

    threshold is int32 (..., A) whose leading shape broadcasts with factors and samples.
    """
    return lanes16(key, factors, samples, threshold.shape[-1]) < threshold


def normal(
    key: Key, num: int, device: torch.device | str = "cpu", rows: Tensor | None = None
) -> Tensor:
    """Standard normal draws, (num,) float64, by Box-Muller from pairs of 32-bit lanes.

    rows (R,) int64: numbers of several rows of draws, (R, num).
    """
    zero = torch.zeros((), dtype=torch.int64, device=device)
    lanes = lanes32(key, zero if rows is None else rows, zero, 2 * num)
    uniform = (lanes.to(torch.float64) + 0.5) / 2**32
    radius = torch.sqrt(-2.0 * torch.log(uniform[..., 0::2]))
    return radius * torch.cos(2.0 * math.pi * uniform[..., 1::2])


@cache
def normal_quantiles(device: torch.device) -> Tensor:
    """Standard normal quantiles at (k + ½)/65536, (65536,) float64: a draw by its 16-bit lane.

    Rounded to multiples of 2⁻³⁰, so that they are the same on every machine. The largest are ±4.3,
    and the variance is 2e-5 below one.
    """
    share = (torch.arange(THRESHOLD_ONE).double() + 0.5) / THRESHOLD_ONE
    return (torch.round(torch.special.ndtri(share) * 2.0**30) / 2.0**30).to(device)


def permutation_keys(key: Key, ids: Tensor, epoch: Tensor) -> Tensor:
    """One sortable int64 per id, (F,) in [0, 2⁶²): sorting by it shuffles. `epoch` is (F,)."""
    zero = torch.zeros((), dtype=torch.int64, device=ids.device)
    words = philox((zero, epoch, ids, zero), key.of(Stream.SCHEDULE).words())
    return ((words[0] >> 1) << 31) | (words[1] >> 1)
