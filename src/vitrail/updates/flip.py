"""Messages from S configurations and their single flips: the fast default where flips are cheap."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.factors import Factors
from vitrail.numerics import DEFAULT_MEMORY
from vitrail.random import Key, Stream, thresholds
from vitrail.updates.base import CavityUpdate, Estimate, checked_count
from vitrail.updates.draws import configurations


@dataclass(frozen=True, kw_only=True)
class Flip(CavityUpdate):
    """Draw S configurations once; score each with w_i = 1 and w_i = 0 for every i.

    p̃(v) = (Σ_s f(w_s with w_i = v) + c·f̄)/(S + c). The same expectation as Algorithm 1 for
    S·(A+1) evaluations instead of 2·A·S, or S where the factors have O(1) flips.
    """

    samples: int
    smoothing: float = 0.0
    stream: Stream = Stream.CONFIGURATION

    def bytes_per_factor(self, factors: Factors, cavity: Tensor) -> int:
        draws = cavity.shape[1] * self.samples
        neighbours = 1 if factors.cheap_flips else factors.arity
        return draws * (40 * factors.arity + neighbours * factors.row_bytes)

    def estimate_chunk(self, key: Key, factors: Factors, cavity: Tensor) -> Estimate:
        states = configurations(key.of(self.stream), factors, thresholds(cavity), self.samples)
        one, zero = factors.flips(states)
        shape = (factors.num_factors, cavity.shape[1], self.samples, factors.arity)
        hits_one, hits_zero = (_total(score.view(shape), dim=2) for score in (one, zero))
        count = float(self.samples)
        if self.smoothing:
            drawn = torch.where(states, one, zero)[..., 0].view(shape[:3])
            extra = self.smoothing * _total(drawn, dim=2) / count
            hits_one, hits_zero = hits_one + extra[..., None], hits_zero + extra[..., None]
            count += self.smoothing
        neighbours = 0 if factors.cheap_flips else factors.arity
        return Estimate(
            factors.log_mean(hits_one, count),
            factors.log_mean(hits_zero, count),
            states.shape[0] * states.shape[1] * (1 + neighbours),
            self.samples,
        )


def _total(score: Tensor, dim: int) -> Tensor:
    return score.sum(
        dim, dtype=torch.float64 if score.is_floating_point() else torch.int64
    ).double()


def flip(samples: int = 5, *, smoothing: float = 0.0, memory: int = DEFAULT_MEMORY) -> Flip:
    """Sampled messages by single flips.

    >>> flip(samples=64).samples
    64
    """
    return Flip(samples=checked_count("samples", samples), smoothing=smoothing, memory=memory)
