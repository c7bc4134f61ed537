"""Messages from S configurations, divided by the drawn value of each variable."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from vitrail.factors import Factors
from vitrail.kernels.dispatch import find
from vitrail.random import Key, Stream, thresholds
from vitrail.updates.base import (
    Backend,
    Estimate,
    Update,
    checked_backend,
    checked_draws,
    configurations,
)
from vitrail.updates.flip import Flip

FALLBACK = Flip(samples=5, stream=Stream.FALLBACK)  # for messages of too few draws


@dataclass(frozen=True)
class Counting(Update):
    """Sampled messages by counting: each draw serves both values of every variable.

    p̃(v) = (Σ_{s: w_i=v} f(w_s) + c·f̄)/(n_v + c), n_v the draws with w_i = v, c the smoothing.
    Cost S evaluations per factor for any network. Where a cavity is near 0 or 1, n_v is small. The
    choice by `least_hits` depends on the integer n_v alone, so every backend makes the same one.

    Args:
        samples: Draws of a configuration for each factor.
        smoothing: Weight of the mean score, in draws, that is added to each side; keeps messages
            finite.
        least_hits: Messages of fewer draws are replaced by those of `flip(5)`, from separate
            draws; 0 replaces none.
        backend: "auto" takes the fastest one available; all give the same messages.

    Examples:
        >>> counting(samples=128, least_hits=2).least_hits
        2
    """

    samples: int = 64
    _: KW_ONLY
    smoothing: float = 1.0
    least_hits: int = 0
    backend: Backend = "auto"

    def __post_init__(self) -> None:
        checked_draws("samples", self.samples)
        checked_draws("least_hits", self.least_hits, 0)
        checked_backend(self.backend)

    def bytes_per_factor(self, factors: Factors, cavity: Tensor) -> int:
        if self._kernel(factors, cavity.shape[1]) is not None:
            return cavity.shape[1] * factors.arity * 96
        return cavity.shape[1] * self.samples * (48 * factors.arity + factors.row_bytes)

    def estimate_chunk(self, key: Key, factors: Factors, cavity: Tensor) -> Estimate:
        kernel = self._kernel(factors, cavity.shape[1])
        key_draws, threshold = key.of(Stream.CONFIGURATION), thresholds(cavity)
        counts = self._counts if kernel is None else kernel.counts
        found = counts(key_draws, factors, threshold, self.samples)
        count_one, hits_one, hits_all = (part.double() for part in found)
        hits_all = hits_all[..., None]
        fewest = torch.minimum(count_one, self.samples - count_one)
        estimate = Estimate(
            self._log_mean(factors, hits_one, count_one, hits_all),
            self._log_mean(factors, hits_all - hits_one, self.samples - count_one, hits_all),
            factors.num_factors * cavity.shape[1] * self.samples,
            int(fewest.min()),
        )
        if self.least_hits and bool((fewest < self.least_hits).any()):
            return self._with_fallback(key, factors, cavity, estimate, fewest < self.least_hits)
        return estimate

    def _counts(
        self, key: Key, factors: Factors, threshold: Tensor, samples: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The definition: draws with w_i = 1 and their scores, (F, R, A); all scores (F, R)."""
        states = configurations(key, factors, threshold, samples)
        score = factors.score(states)
        # float32 adds up integers exactly below 2²⁴; real-valued scores need float64
        kind = torch.float64 if score.is_floating_point() else torch.float32
        shape = (*threshold.shape[:2], samples)
        ones = states.view(*shape, factors.arity).to(kind)
        score = score.view(shape).to(kind)
        return ones.sum(2), torch.einsum("frs,frsa->fra", score, ones), score.sum(2)

    def _kernel(self, factors: Factors, tracks: int) -> Any:
        """The compiled module for these factors, if any."""
        lanes = factors.num_factors * tracks * self.samples * factors.arity
        return find("counting", self.backend, factors, lanes, self.samples)

    def _log_mean(self, factors: Factors, hits: Tensor, count: Tensor, hits_all: Tensor) -> Tensor:
        mean = hits_all / self.samples
        hits, count = hits + self.smoothing * mean, count + self.smoothing
        # without draws and smoothing, the mean over all draws is the only estimate
        return factors.log_mean(
            torch.where(count > 0, hits, mean), torch.where(count > 0, count, 1.0)
        )

    def _with_fallback(
        self, key: Key, factors: Factors, cavity: Tensor, estimate: Estimate, poor: Tensor
    ) -> Estimate:
        rows = poor.flatten(1).any(1).nonzero()[:, 0]
        again = FALLBACK.estimate(key, factors.select(rows), cavity[rows])
        log_one, log_zero = estimate.log_one.clone(), estimate.log_zero.clone()
        log_one[rows] = torch.where(poor[rows], again.log_one, log_one[rows])
        log_zero[rows] = torch.where(poor[rows], again.log_zero, log_zero[rows])
        evaluations = estimate.evaluations + again.evaluations
        return replace(estimate, log_one=log_one, log_zero=log_zero, evaluations=evaluations)


counting = Counting
