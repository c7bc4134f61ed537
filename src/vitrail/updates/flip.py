"""Messages from S configurations and their single flips; the default where flips are cheap."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor

from vitrail.factors import Factors
from vitrail.kernels.dispatch import find
from vitrail.random import Key, Stream, thresholds
from vitrail.updates.base import (
    Backend,
    Estimate,
    Messages,
    Update,
    checked_backend,
    checked_draws,
    configurations,
)


@dataclass(frozen=True)
class Flip(Update):
    """Sampled messages by single flips: each draw is scored with every bit flipped.

    p̃(v) = Σ_s f(w_s with w_i = v)/S. The same expectation as Algorithm 1 for S·(A+1) evaluations
    instead of 2·A·S, or S where the factors have O(1) flips.

    Args:
        samples: Draws of a configuration for each factor.
        backend: "auto" takes the fastest one available; all give the same messages.
        stream: The stream of its draws.

    Examples:
        >>> flip(samples=64).samples
        64
    """

    samples: int = 5
    _: KW_ONLY
    backend: Backend = "auto"
    stream: Stream = Stream.CONFIGURATION

    def __post_init__(self) -> None:
        checked_draws("samples", self.samples)
        checked_backend(self.backend)

    def bytes_per_factor(self, factors: Factors, cavity: Tensor) -> int:
        if self._kernel(factors, cavity.shape[0] * cavity.shape[1]) is not None:
            return cavity.shape[1] * factors.arity * 64
        draws = cavity.shape[1] * self.samples
        neighbours = 1 if factors.cheap_flips else factors.arity
        return draws * (40 * factors.arity + neighbours * factors.row_bytes)

    def messages(
        self,
        key: Key,
        factors: Factors,
        belief: Tensor,
        message: Tensor,
        rows: Tensor | None = None,
    ) -> Messages:
        num_factors = factors.num_factors if rows is None else len(rows)
        kernel = self._kernel(factors, num_factors)
        if kernel is None:
            return super().messages(key, factors, belief, message, rows)
        log_odds, starved = kernel.messages(
            key.of(self.stream), factors, belief, message, self.samples, self.limit, rows
        )
        return Messages(log_odds, starved, self._evaluations(factors, num_factors), self.samples)

    def estimate_chunk(self, key: Key, factors: Factors, cavity: Tensor) -> Estimate:
        tracks = cavity.shape[0] * cavity.shape[1]
        kernel, key = self._kernel(factors, tracks), key.of(self.stream)
        hits = self._hits if kernel is None else kernel.hits
        one, zero = hits(key, factors, thresholds(cavity), self.samples)
        return Estimate(
            factors.log_mean(one, self.samples),
            factors.log_mean(zero, self.samples),
            self._evaluations(factors, tracks),
            self.samples,
        )

    def _hits(
        self, key: Key, factors: Factors, threshold: Tensor, samples: int
    ) -> tuple[Tensor, Tensor]:
        """The definition: sums of scores with each weight set to 1 and to 0, (F, R, A) each."""
        num_factors, tracks, arity = threshold.shape
        states = configurations(key, factors, threshold, samples)
        one, zero = (
            score.view(num_factors, tracks, samples, arity) for score in factors.flips(states)
        )
        kind = torch.float64 if one.is_floating_point() else torch.int64
        return one.sum(2, dtype=kind), zero.sum(2, dtype=kind)

    def _kernel(self, factors: Factors, tracks: int) -> Any:
        """The compiled module for these factors, if any; tracks: of all of them."""
        lanes = tracks * self.samples * factors.arity
        return find("flip", self.backend, factors, lanes, self.samples)

    def _evaluations(self, factors: Factors, tracks: int) -> int:
        neighbours = 0 if factors.cheap_flips else factors.arity
        return tracks * self.samples * (1 + neighbours)


flip = Flip
