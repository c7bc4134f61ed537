"""Straight-through gradient descent on latent real weights (Courbariaux, Hubara et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from vitrail.baselines.gradient import (
    START_SCALE,
    Gradient,
    GradientSolver,
    checked_rate,
    value_at,
)
from vitrail.checks import checked_choice
from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.annealed import geometric
from vitrail.solvers.damping import Schedule
from vitrail.solvers.run import Solution
from vitrail.solvers.schedules import Batches, Order
from vitrail.solvers.stages import Stage

Optimiser = Literal["adam", "sgd"]

CONFIDENCE = 4.0  # log-odds of a latent weight of 1: at the edge of its range P(w = 1) = 0.98
CERTAIN, POLISH_RATE = 20.0, 0.003  # log-odds for a latent weight of 1; initial learning rate
ADAM_BETAS = (0.9, 0.999)
ADAM_EPSILON = 1e-8


@dataclass(frozen=True)
class Moments:
    """Running means of the gradient and of its square."""

    first: Tensor  # (V,) float32
    second: Tensor  # (V,) float32
    count: Tensor  # () int64


@dataclass(frozen=True)
class STEState:
    """Latent weights, the optimiser's moments, and the order of the epoch."""

    latent: Tensor  # (V,) float32 in [−1, 1]
    moments: Moments
    order: Order


@dataclass(frozen=True)
class StraightThrough(GradientSolver[STEState]):
    """w = sign(latent) forward; the gradient of w is applied to the latent weight.

        latent ← clip(latent − lr·direction(∂loss/∂w), −1, 1)

    The beta of factors and the graph's prior are not used.
    """

    optimiser: Optimiser
    lr: float | Schedule

    def first_state(self, noise: Tensor, order: Order) -> STEState:
        latent = (START_SCALE * noise).clamp(-1, 1).to(torch.float32)
        zero = torch.zeros_like(latent)
        return STEState(latent, Moments(zero, zero, torch.zeros((), dtype=torch.int64)), order)

    def signs(self, key: Key, graph: FactorGraph, state: STEState) -> Tensor:
        return 2.0 * (state.latent > 0) - 1.0

    def updated(self, state: STEState, taken: Gradient) -> STEState:
        direction, moments = taken.value, state.moments
        if self.optimiser == "adam":
            direction, moments = _adam(moments, taken.value)
        moved = (state.latent - value_at(self.lr, taken.key.step) * direction).clamp(-1, 1)
        return STEState(torch.where(taken.active, moved, state.latent), moments, taken.order)

    def log_odds(self, graph: FactorGraph, state: STEState) -> Tensor:
        return CONFIDENCE * state.latent.double()

    def candidates(self, key: Key, graph: FactorGraph, state: STEState) -> Tensor:
        return (state.latent > 0)[None]


def _adam(moments: Moments, gradient: Tensor) -> tuple[Tensor, Moments]:
    """Direction m̂/(√v̂ + ε) with bias-corrected running means (Kingma and Ba, 2015)."""
    count = moments.count + 1
    first = torch.lerp(gradient, moments.first, ADAM_BETAS[0])
    second = torch.lerp(gradient * gradient, moments.second, ADAM_BETAS[1])
    corrections = [1 - beta ** int(count) for beta in ADAM_BETAS]
    direction = (first / corrections[0]) / ((second / corrections[1]).sqrt() + ADAM_EPSILON)
    return direction, Moments(first, second, count)


def straight_through(
    optimiser: Optimiser = "adam",
    *,
    lr: float | Schedule = 0.01,
    batch: int | None = 128,
) -> StraightThrough:
    """Straight-through gradient descent for any net of `vitrail.nn`, run like any solver.

    Args:
        optimiser: "adam" or "sgd"; the paper uses "sgd" with lr 0.1.
        lr: Step length, a number or a function of the step.
        batch: Examples per step in each problem; None takes all.

    Examples:
        >>> straight_through("sgd", lr=0.1).optimiser
        'sgd'
    """
    checked_choice("optimiser", optimiser, get_args(Optimiser))
    return StraightThrough(Batches(batch), optimiser, checked_rate("lr", lr))


def gradient_polish(steps: int, batch: int) -> Stage:
    """A stage that starts at earlier beliefs, with large latent weights for certain bits."""
    solver = straight_through(
        lr=geometric(POLISH_RATE, POLISH_RATE / 10, max(2, steps)), batch=batch
    )

    def start(key: Key, graph: FactorGraph, solution: Solution[Any]) -> STEState:
        latent = (torch.logit(solution.marginals) / CERTAIN).clamp(-1, 1).to(torch.float32)
        return replace(solver.init(key, graph), latent=latent)

    return Stage("polish", solver, steps, start, score_every=steps, marginals=False)
