"""Messages of all factors from one pool of configurations, by importance weights."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor

from vitrail.factors import Factors
from vitrail.kernels.dispatch import find
from vitrail.random import THRESHOLD_ONE, Key, Stream, bernoulli, thresholds
from vitrail.updates.base import (
    Backend,
    Estimate,
    Update,
    checked_backend,
    checked_draws,
    concatenated,
)


@dataclass(frozen=True)
class Pooled(Update):
    """Sampled messages from one pool of configurations that all factors share; for many factors.

    The pool is drawn from the beliefs. Configuration w counts for factor I with weight
    Π_j cavity_Ij(w_j)/belief_j(w_j), that is exp(−Σ_j message_Ij·w_j), self-normalised within
    w_i = v. Cost S forward passes for all factors and three matrix products. `effective_samples`
    tells when the pool is too far from the cavities. Sums are real-valued: results agree across
    chunks to rounding, not to the bit.

    Args:
        samples: Configurations in the pool.
        smoothing: Weight of the mean score, in draws, that is added to each side; keeps messages
            finite.
        backend: "auto" scores the pool by compiled kernels on a GPU, for one problem of this
            package's layers; "triton" requires them, "torch" does without.

    Examples:
        >>> pooled(samples=1024).samples
        1024
    """

    samples: int = 512
    _: KW_ONLY
    smoothing: float = 1.0
    backend: Backend = "auto"

    def __post_init__(self) -> None:
        checked_draws("samples", self.samples)
        checked_backend(self.backend)

    def from_beliefs(self, key: Key, factors: Factors, belief: Tensor, message: Tensor) -> Estimate:
        key = key.of(Stream.CONFIGURATION)
        zero = torch.zeros((), dtype=torch.int64, device=belief.device)
        numbers = torch.arange(self.samples, device=belief.device)
        pool = bernoulli(key, zero, numbers, _without_certainty(thresholds(belief)))  # (S, V)
        cavity = self.cavity(factors, belief, message)
        of_beliefs = factors.scope.gather(_log_odds(thresholds(belief)))
        shift = _log_odds(thresholds(cavity[:, 0])) - of_beliefs
        rows_in_pool = 1 if factors.scope.shared else factors.num_factors
        kernel = self._kernel(factors)
        scratch = self.samples * factors.row_bytes
        if kernel is not None:
            scratch = kernel.scratch_bytes(factors, self.samples)
        per_factor = 40 * self.samples + scratch
        per_factor += 9 * self.samples * factors.arity * rows_in_pool // max(1, factors.num_factors)
        pieces = factors.chunks(per_factor, self.memory)
        parts = [self._estimate(kernel, part, pool, shift[rows]) for rows, part in pieces]
        return concatenated(parts, cavity)

    def _kernel(self, factors: Factors) -> Any:
        """The compiled module that scores a shared pool, if any."""
        lanes = factors.num_factors * self.samples * factors.arity
        return find("pool", self.backend, factors, lanes, self.samples)

    def _estimate(self, kernel: Any, factors: Factors, pool: Tensor, shift: Tensor) -> Estimate:
        states = factors.scope.gather(pool).transpose(0, 1)  # (F or 1, S, A)
        score = factors.score(states) if kernel is None else kernel.pool_scores(factors, states[0])
        score = score.to(torch.float64)  # (F, S)
        ones = states.to(torch.float64)
        log_weight = _by_row(shift, ones.transpose(1, 2))
        weight = torch.exp(log_weight - log_weight.amax(1, keepdim=True))
        mass_all, hits_all = weight.sum(1, keepdim=True), (weight * score).sum(1, keepdim=True)
        mass_one, hits_one = _by_row(weight, ones), _by_row(weight * score, ones)
        # smoothing in units of a draw of average weight
        extra = self.smoothing * mass_all / self.samples
        mean = hits_all / mass_all

        def log_mean(hits: Tensor, mass: Tensor) -> Tensor:
            mass = mass.clamp(min=0.0) + extra
            hits = hits.clamp(min=0.0) + extra * mean
            empty = mass <= 0
            return factors.log_mean(torch.where(empty, mean, hits), torch.where(empty, 1.0, mass))

        effective = mass_all.square() / weight.square().sum(1, keepdim=True)
        return Estimate(
            log_mean(hits_one, mass_one)[:, None],
            log_mean(hits_all - hits_one, mass_all - mass_one)[:, None],
            factors.num_factors * self.samples,
            effective_samples=float(effective.min()),
        )


def _by_row(rows: Tensor, matrices: Tensor) -> Tensor:
    """Row f (F, n) times matrix f of (F, n, m), or times the only matrix: (F, m)."""
    if matrices.shape[0] == 1:
        return rows @ matrices[0]
    return torch.bmm(rows[:, None], matrices)[:, 0]


def _without_certainty(threshold: Tensor) -> Tensor:
    """Thresholds without probabilities 0 and 1, so that a pool may have both values."""
    return threshold.clamp(1, THRESHOLD_ONE - 1)


def _log_odds(threshold: Tensor) -> Tensor:
    """Log-odds of the probability of a threshold, float64."""
    return torch.logit(_without_certainty(threshold).to(torch.float64) / THRESHOLD_ONE)


pooled = Pooled
