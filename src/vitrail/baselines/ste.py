"""Straight-through gradient descent on latent real weights (Courbariaux, Hubara et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vitrail.baselines.gradient import (
    Loss,
    Moments,
    adam,
    at,
    batch_loss,
    check_graph,
    checked_choice,
    checked_rate,
    no_moments,
    settled,
    sgd,
)
from vitrail.graph import FactorGraph
from vitrail.nn.nodes import step as sign
from vitrail.random import Key, Stream, normal
from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.damping import Schedule
from vitrail.solvers.schedules import Batches, Order

Optimiser = Literal["adam", "sgd"]

START_SCALE = 0.1  # spread of the first latent weights: small, so that the data soon decide
CONFIDENCE = 4.0  # log-odds of a latent weight of 1: at the edge of its range P(w = 1) = 0.98
ADAM_BETAS = (0.9, 0.999)


@dataclass(frozen=True)
class STEState:
    """Latent weights, what the optimiser remembers, and the order of the epoch."""

    latent: Tensor  # (V,) float32 in [−1, 1]
    moments: Moments
    order: Order


@dataclass(frozen=True)
class StraightThrough(Solver[STEState]):
    """w = sign(latent) forward; the gradient of w is applied to the latent weight as it is.

        latent ← clip(latent − lr·direction(∂loss/∂w), −1, 1)

    One forward and one backward pass over the batch a step. The gradient is that of weights
    written ±1; bits enter as (w + 1)/2. A factor's beta and the graph's prior play no part.
    """

    optimiser: Optimiser
    lr: float | Schedule
    batches: Batches
    loss: Loss
    momentum: float

    def init(self, key: Key, graph: FactorGraph) -> STEState:
        check_graph(graph)
        noise = normal(key.at(0).of(Stream.PRIOR), graph.num_variables, graph.device)
        latent = (START_SCALE * noise).clamp(-1, 1).to(torch.float32)
        return STEState(latent, no_moments(latent), self.batches.start(graph))

    def step(
        self, key: Key, graph: FactorGraph, state: STEState, feedback: Feedback
    ) -> tuple[STEState, Info]:
        selected, order = self.batches.select(key, graph, state.order, feedback)
        with torch.enable_grad():
            latent = state.latent.detach().requires_grad_()
            loss, evaluations = batch_loss(graph, selected, (sign(latent, -1) + 1) / 2, self.loss)
            (gradient,) = torch.autograd.grad(loss, latent)
        if self.optimiser == "adam":
            direction, moments = adam(state.moments, gradient, ADAM_BETAS)
        else:
            direction, moments = sgd(state.moments, gradient, self.momentum)
        moved = (state.latent - at(self.lr, key.step) * direction).clamp(-1, 1)
        after = torch.where(feedback.active[graph.problem], moved, state.latent)
        residual = settled(graph, CONFIDENCE * state.latent, CONFIDENCE * after)
        info = Info(residual, evaluations, torch.zeros_like(residual, dtype=torch.bool))
        return STEState(after, moments, order), info

    def log_odds(self, graph: FactorGraph, state: STEState) -> Tensor:
        return CONFIDENCE * state.latent.double()

    def candidates(self, key: Key, graph: FactorGraph, state: STEState) -> Tensor:
        return (state.latent > 0)[None]

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return self.batches.epoch_steps(graph)


def straight_through(
    optimiser: Optimiser = "adam",
    *,
    lr: float | Schedule = 0.01,
    batch: int | None = 128,
    loss: Loss = "hinge",
    momentum: float = 0.0,
) -> StraightThrough:
    """Straight-through gradient descent for any net of `vitrail.nn`, run like any solver.

    Args:
        optimiser: "adam", or "sgd" with `momentum`; the paper has "sgd" with lr 0.1.
        lr: Step length, a number or a function of the step.
        batch: Examples a step in each problem; None takes all.
        loss: "hinge" or "logistic" (cross-entropy), of the margin in units of √inputs.
        momentum: Of "sgd".

    Returns:
        The solver, for `run`.

    Examples:
        >>> straight_through("sgd", lr=0.1).optimiser
        'sgd'
    """
    checked_choice("optimiser", optimiser, Optimiser)
    checked_choice("loss", loss, Loss)
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum must be at least 0 and below 1, got {momentum}")
    return StraightThrough(optimiser, checked_rate("lr", lr), Batches(batch), loss, momentum)
