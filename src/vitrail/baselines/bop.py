"""Bop, the binary optimiser without latent weights (Helwegen et al. 2019, arXiv 1906.02107)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.baselines.gradient import Gradient, GradientSolver, checked_rate, value_at
from vitrail.checks import checked_number
from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.damping import Schedule
from vitrail.solvers.schedules import Batches, Order

CONFIDENCE = 4.0  # log-odds reported for a bit, because Bop has no measure of uncertainty


@dataclass(frozen=True)
class BopState:
    """The weights and the running mean of their gradient."""

    weights: Tensor  # (V,) bool
    gradient: Tensor  # (V,) float32
    order: Order


@dataclass(frozen=True)
class Bop(GradientSolver[BopState]):
    """A weight flips if the running mean of its gradient is large and has its sign.

    m ← (1 − adaptivity)·m + adaptivity·∂loss/∂w,   flip w where |m| > threshold, sign m = w
    """

    adaptivity: float | Schedule
    threshold: float

    def first_state(self, noise: Tensor, order: Order) -> BopState:
        return BopState(noise > 0, torch.zeros_like(noise, dtype=torch.float32), order)

    def signs(self, key: Key, graph: FactorGraph, state: BopState) -> Tensor:
        return 2.0 * state.weights - 1.0

    def updated(self, state: BopState, taken: Gradient) -> BopState:
        mean = torch.lerp(state.gradient, taken.value, value_at(self.adaptivity, taken.key.step))
        mean = torch.where(taken.active, mean, state.gradient)
        flips = (mean.abs() > self.threshold) & ((mean > 0) == state.weights) & taken.active
        return BopState(state.weights ^ flips, mean, taken.order)

    def convergence_log_odds(self, graph: FactorGraph, state: BopState) -> Tensor:
        """The running mean, because weights that do not change now may flip later."""
        return state.gradient / self.threshold

    def log_odds(self, graph: FactorGraph, state: BopState) -> Tensor:
        return CONFIDENCE * (2.0 * state.weights.double() - 1.0)


def bop(
    *,
    adaptivity: float | Schedule = 0.01,
    threshold: float = 0.001,
    batch: int | None = 128,
) -> Bop:
    """Bop for any net of `vitrail.nn`, run like any solver.

    Args:
        adaptivity: Weight of the new gradient in its running mean, a number or a function of the
            step.
        threshold: Smallest mean for a flip; 0 flips at every disagreement.
        batch: Examples per step in each problem; None takes all.

    Examples:
        >>> bop(threshold=1e-4).adaptivity
        0.01
    """
    checked_number("threshold", threshold)
    return Bop(Batches(batch), checked_rate("adaptivity", adaptivity), threshold)
