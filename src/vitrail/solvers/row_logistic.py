"""Logistic regression by single rows: a Kalman filter whose evidence decays.

With noise floor f, P(1 | x) = f + (1 − 2f)·σ(w·x), w ~ N(weights, covariance). A row with label y
adds its Fisher information J, and evidence decays by growing the covariance:

    weights ← weights + P·x·slope/(1 + J·x·P·x),  P ← (P − P·x·(P·x)ᵀ·J/(1 + J·x·P·x))/kept

where no variance grows beyond that of the prior. The cost is M·F² per row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

LEAST_INFORMATION = 1e-3  # of a row; far from its boundary a logistic curve has none
SMALLEST = 1e-9  # variance of a label, where there is no floor
MODERATED = np.pi / 8  # σ(z/√(1 + MODERATED·v)) is about the mean of σ over N(z, v)


@dataclass(eq=False)
class RowLogistic:
    """M logistic regressions that learn from each row.

    Args:
        weights: (M, F) initial.
        kept: (M,) weight of earlier evidence after each row.
        spread: Standard deviation of weights before any row, and at most.
        floor: Probability of a label against its rule.
    """

    weights: np.ndarray
    kept: np.ndarray
    spread: float = 1.0
    floor: float = 0.0
    covariance: np.ndarray = field(init=False, repr=False)  # (M, F, F)
    _row: Any = field(init=False, repr=False, default=None)  # results of `agreement`

    def __post_init__(self) -> None:
        count, features = self.weights.shape
        self.covariance = np.tile(self.spread**2 * np.eye(features), (count, 1, 1))

    def agreement(self, x: np.ndarray) -> np.ndarray:
        """P(1) − P(0) of each regression for a row (F,), or a row of its own each (M, F): (M,)."""
        score = (self.weights * x).sum(-1)
        moved = (self.covariance @ x[..., None])[..., 0]
        variance = (moved * x).sum(-1)
        self._row = score, moved, variance
        moderated = score / np.sqrt(1 + MODERATED * variance)
        return (1 - 2 * self.floor) * np.tanh(moderated / 2)

    def learn(self, signs: np.ndarray) -> None:
        """Learn the last row of `agreement` with labels (M,) of ±1, or 0 for none.

        Evidence of regressions without a label does not decay.
        """
        score, moved, variance = self._row
        known = (signs != 0)[:, None]
        share = (1 + np.tanh(score / 2)) / 2
        probability = self.floor + (1 - 2 * self.floor) * share
        slope = (1 - 2 * self.floor) * share * (1 - share)
        noise = np.maximum(probability * (1 - probability), SMALLEST)
        information = np.maximum(slope * slope / noise, LEAST_INFORMATION)
        scale = 1 + information * variance
        gain = slope * ((signs > 0) - probability) / (noise * scale)
        self.weights = self.weights + known * moved * gain[:, None]
        narrowed = moved * (known * np.sqrt(information / scale)[:, None])
        covariance = self.covariance - narrowed[:, :, None] * narrowed[:, None, :]
        of_each = np.diagonal(covariance, axis1=1, axis2=2)
        wider = known & (of_each < self.kept[:, None] * self.spread**2)
        growth = np.where(wider, self.kept[:, None] ** -0.5, 1)
        self.covariance = covariance * (growth[:, :, None] * growth[:, None, :])
