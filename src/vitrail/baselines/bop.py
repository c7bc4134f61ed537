"""Bop, the binary optimiser without latent weights (Helwegen et al. 2019, arXiv 1906.02107)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.baselines.gradient import (
    Loss,
    at,
    batch_loss,
    check_graph,
    checked_choice,
    checked_rate,
    settled,
)
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, normal
from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.damping import Schedule
from vitrail.solvers.schedules import Batches, Order

CONFIDENCE = 4.0  # log-odds reported for a bit: Bop keeps no measure of doubt of its own


@dataclass(frozen=True)
class BopState:
    """The weights themselves and the running mean of their gradient."""

    weights: Tensor  # (V,) bool
    gradient: Tensor  # (V,) float32
    order: Order


@dataclass(frozen=True)
class Bop(Solver[BopState]):
    """A weight flips when its gradient has asked for it long enough.

        m ← (1 − adaptivity)·m + adaptivity·∂loss/∂w,   flip w where |m| > threshold, sign m = w

    w is written ±1. One forward and one backward pass over the batch a step.
    """

    adaptivity: float | Schedule
    threshold: float
    batches: Batches
    loss: Loss

    def init(self, key: Key, graph: FactorGraph) -> BopState:
        check_graph(graph)
        noise = normal(key.at(0).of(Stream.PRIOR), graph.num_variables, graph.device)
        still = torch.zeros(graph.num_variables, device=graph.device)
        return BopState(noise > 0, still, self.batches.start(graph))

    def step(
        self, key: Key, graph: FactorGraph, state: BopState, feedback: Feedback
    ) -> tuple[BopState, Info]:
        selected, order = self.batches.select(key, graph, state.order, feedback)
        with torch.enable_grad():
            signs = (2.0 * state.weights - 1.0).requires_grad_()
            loss, evaluations = batch_loss(graph, selected, (signs + 1) / 2, self.loss)
            (new,) = torch.autograd.grad(loss, signs)
        mean = torch.lerp(state.gradient, new, at(self.adaptivity, key.step))
        asked = (mean.abs() > self.threshold) & ((mean > 0) == state.weights)
        active = feedback.active[graph.problem]
        after = BopState(
            state.weights ^ (asked & active), torch.where(active, mean, state.gradient), order
        )
        # a still configuration may flip later, so what counts as movement is the running mean
        moved = settled(graph, state.gradient / self.threshold, after.gradient / self.threshold)
        info = Info(moved, evaluations, torch.zeros_like(moved, dtype=torch.bool))
        return after, info

    def log_odds(self, graph: FactorGraph, state: BopState) -> Tensor:
        return CONFIDENCE * (2.0 * state.weights.double() - 1.0)

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return self.batches.epoch_steps(graph)


def bop(
    *,
    adaptivity: float | Schedule = 0.01,
    threshold: float = 0.001,
    batch: int | None = 128,
    loss: Loss = "hinge",
) -> Bop:
    """Bop for any net of `vitrail.nn`, run like any solver.

    Args:
        adaptivity: Weight of the new gradient in its running mean, a number or a function of the
            step.
        threshold: How large the mean must be for a flip; 0 flips at every disagreement.
        batch: Examples a step in each problem; None takes all.
        loss: "hinge" or "logistic" (cross-entropy), of the margin in units of √inputs.

    Returns:
        The solver, for `run`.

    Examples:
        >>> bop(threshold=1e-4).adaptivity
        0.01
    """
    checked_choice("loss", loss, Loss)
    if threshold < 0:
        raise ValueError(f"threshold must be at least 0, got {threshold}")
    return Bop(checked_rate("adaptivity", adaptivity), threshold, Batches(batch), loss)
