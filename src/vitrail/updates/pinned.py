"""Algorithm 1 of the paper as printed: fresh draws for each variable and each of its values."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.factors import Factors
from vitrail.numerics import chunks
from vitrail.random import Key, Stream, bernoulli, thresholds
from vitrail.updates.base import Estimate, Update, checked_draws


@dataclass(frozen=True)
class Pinned(Update):
    """Sampled messages by the paper's Algorithm 1: separate draws for every bit and value.

    For every (i, v): S draws from the cavities, w_i set to v, the mean of f. Cost 2·A·S
    evaluations of A draws each: the faithful and slow reference.

    Args:
        samples: Draws for each variable and value.

    Examples:
        >>> pinned().samples
        5
    """

    samples: int = 5

    def __post_init__(self) -> None:
        checked_draws("samples", self.samples)

    def bytes_per_factor(self, factors: Factors, cavity: Tensor) -> int:
        # variables are divided too, so one factor needs at least one variable
        return cavity.shape[1] * self.samples * 2 * (40 * factors.arity + factors.row_bytes)

    def estimate_chunk(self, key: Key, factors: Factors, cavity: Tensor) -> Estimate:
        key, threshold = key.of(Stream.CONFIGURATION), thresholds(cavity)
        num_factors, tracks, arity = cavity.shape
        hits = torch.empty(num_factors, tracks, arity, 2, dtype=torch.float64, device=cavity.device)
        per_variable = num_factors * self.bytes_per_factor(factors, cavity)
        draws = torch.arange(tracks * self.samples, device=cavity.device).view(-1, 1, 1)
        ids = factors.ids.view(-1, 1, 1, 1)
        values = torch.arange(2, device=cavity.device)
        repeated = threshold.repeat_interleave(self.samples, dim=1)[:, :, None, None, :]
        for part in chunks(arity, per_variable, self.memory):
            pins = torch.arange(part.start, part.stop, device=cavity.device)
            number = (draws * arity + pins[:, None]) * 2 + values
            states = bernoulli(key, ids, number, repeated)  # (F, R·S, pins, 2, A)
            pin = torch.arange(arity, device=cavity.device) == pins[:, None, None]
            states = torch.where(pin, (values == 1)[:, None], states)
            score = factors.score(states.flatten(1, 3))
            score = score.view(num_factors, tracks, self.samples, len(pins), 2)
            hits[:, :, part] = score.to(torch.float64).sum(2)
        return Estimate(
            factors.log_mean(hits[..., 1], self.samples),
            factors.log_mean(hits[..., 0], self.samples),
            num_factors * tracks * self.samples * 2 * arity,
            self.samples,
        )


pinned = Pinned
