"""Straight-through gradient descent on latent real weights (Courbariaux, Hubara et al. 2016).

The loss is the hinge loss of the margin in units of the last layer's standard deviation,

    m = ±h / √n,   n the inputs of the last layer,

averaged over the batch of each problem and summed over problems, so that the step of a problem does
not depend on the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from vitrail.checks import checked_choice, checked_positive
from vitrail.factors import Factors, Network
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, normal
from vitrail.solvers.annealed import geometric
from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.damping import Schedule
from vitrail.solvers.moment_messages import batch_tensors, first_batch, max_per_problem, replayable
from vitrail.solvers.replay import Replay, replay
from vitrail.solvers.run import Solution
from vitrail.solvers.schedules import Batches, Order
from vitrail.solvers.stages import Stage

Optimiser = Literal["adam", "sgd"]

START_SCALE = 0.1  # standard deviation of the initial latent weights
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
class StraightThrough(Solver[STEState]):
    """Straight-through gradient descent for any net of `vitrail.nn`, run like any solver.

    w = sign(latent) forward; the gradient of w is applied to the latent weight:

        latent ← clip(latent − lr·direction(∂loss/∂w), −1, 1)

    The beta of factors and the graph's prior are not used.

    Args:
        optimiser: "adam" or "sgd"; the paper uses "sgd" with lr 0.1.
        lr: Step length, a number or a function of the step.
        batch: Examples per step in each problem; None takes all.

    Examples:
        >>> straight_through("sgd", lr=0.1).optimiser
        'sgd'
    """

    optimiser: Optimiser = "adam"
    _: KW_ONLY
    lr: float | Schedule = 0.01
    batch: int | None = 128

    def __post_init__(self) -> None:
        checked_choice("optimiser", self.optimiser, get_args(Optimiser))
        if not callable(self.lr):
            checked_positive("lr", self.lr)
        Batches(self.batch)  # which checks it

    def init(self, key: Key, graph: FactorGraph) -> STEState:
        for block in graph.blocks:
            if not isinstance(block, Network):
                raise TypeError(
                    f"gradient baselines need factors that classify (perceptron or network), got "
                    f"{type(block).__name__}; use belief propagation or annealing for these"
                )
        noise = normal(key.at(0).of(Stream.PRIOR), graph.num_variables, graph.device)
        latent = (START_SCALE * noise).clamp(-1, 1).to(torch.float32)
        zero = torch.zeros_like(latent)
        moments = Moments(zero, zero, torch.zeros((), dtype=torch.int64))
        return STEState(latent, moments, Batches(self.batch).start(graph))

    def step(
        self, key: Key, graph: FactorGraph, state: STEState, feedback: Feedback
    ) -> tuple[STEState, Info]:
        selected, order = Batches(self.batch).select(key, graph, state.order, feedback)
        factors = [
            block if index is None else block.select(index)
            for block, index in zip(graph.blocks, selected, strict=True)
        ]
        signs = 2.0 * (state.latent > 0) - 1.0
        direction, moments = _batch_gradient(graph, factors, self.batch, signs), state.moments
        if self.optimiser == "adam":
            direction, moments = _adam(moments, direction)
        rate = self.lr(key.step) if callable(self.lr) else self.lr
        moved = (state.latent - rate * direction).clamp(-1, 1)
        moved = torch.where(feedback.active[graph.problem], moved, state.latent)
        after = STEState(moved, moments, order)
        change = (self.marginals(graph, after) - self.marginals(graph, state)).abs()
        evaluations = sum(part.num_factors for part in factors)
        none = torch.zeros_like(feedback.active)
        return after, Info(max_per_problem(graph, change), evaluations, none)

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return Batches(self.batch).epoch_steps(graph)

    def log_odds(self, graph: FactorGraph, state: STEState) -> Tensor:
        return CONFIDENCE * state.latent.double()

    def candidates(self, key: Key, graph: FactorGraph, state: STEState) -> Tensor:
        return (state.latent > 0)[None]


straight_through = StraightThrough


def _adam(moments: Moments, gradient: Tensor) -> tuple[Tensor, Moments]:
    """Direction m̂/(√v̂ + ε) with bias-corrected running means (Kingma and Ba, 2015)."""
    count = moments.count + 1
    first = torch.lerp(gradient, moments.first, ADAM_BETAS[0])
    second = torch.lerp(gradient * gradient, moments.second, ADAM_BETAS[1])
    corrections = [1 - beta ** int(count) for beta in ADAM_BETAS]
    direction = (first / corrections[0]) / ((second / corrections[1]).sqrt() + ADAM_EPSILON)
    return direction, Moments(first, second, count)


def _batch_gradient(
    graph: FactorGraph, factors: Sequence[Factors], size: int | None, signs: Tensor
) -> Tensor:
    """∂loss/∂signs of a batch, (V,); on a GPU, batches of `size` factors are CUDA graphs."""
    part = replayable(graph, factors, size)
    known = None if part is None else graph.once(_replay, size)
    if part is None or known is None:
        return _gradient(graph, factors, signs)
    return known(*batch_tensors(part), signs)[0].clone()


def _gradient(graph: FactorGraph, factors: Sequence[Factors], signs: Tensor) -> Tensor:
    with torch.enable_grad():
        signs = signs.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(batch_loss(graph, factors, (signs + 1) / 2), signs)
    return gradient


def _replay(graph: FactorGraph, size: int) -> Replay | None:
    """The gradient of a batch of `size` factors as one CUDA graph.

    Factors cache values derived from their inputs, which differ at every replay, so every
    computation uses a copy of the factors.
    """
    part, signs = first_batch(graph, size), torch.zeros(graph.num_variables, device=graph.device)
    places = (*batch_tensors(part), signs)
    return replay(lambda: (_gradient(graph, [replace(part)], signs),), places)


def batch_loss(graph: FactorGraph, factors: Sequence[Factors], bits: Tensor) -> Tensor:
    """The loss of factors at `bits`, (V,) float32 in [0, 1] that carry a gradient."""
    weights, losses = [], []
    for part in factors:
        assert isinstance(part, Network)
        states = part.scope.gather(bits[None]).transpose(0, 1)
        margins = part.outputs(states)[:, 0] / math.sqrt(part.program.fan_in)  # (F, C)
        if margins.shape[1] == 1:
            each = F.relu(1 - torch.where(part.labels == 1, 1.0, -1.0) * margins[:, 0])
        else:
            each = F.multi_margin_loss(margins, part.labels, reduction="none")
        problem = graph.factor_problem(part)
        share = part.weight.to(each.dtype)
        losses.append(each.new_zeros(graph.num_problems).index_add(0, problem, each * share))
        weights.append(share.new_zeros(graph.num_problems).index_add(0, problem, share))
    weight = torch.stack(weights).sum(0)
    # inactive problems have no factor in the batch
    return (torch.stack(losses).sum(0) / torch.where(weight > 0, weight, 1.0)).sum()


def gradient_polish(steps: int, batch: int) -> Stage:
    """A stage that starts at earlier beliefs, with large latent weights for certain bits."""
    solver = straight_through(
        lr=geometric(POLISH_RATE, POLISH_RATE / 10, max(2, steps)), batch=batch
    )

    def start(key: Key, graph: FactorGraph, solution: Solution[Any]) -> STEState:
        latent = (torch.logit(solution.marginals) / CERTAIN).clamp(-1, 1).to(torch.float32)
        return replace(solver.init(key, graph), latent=latent)

    return Stage("polish", solver, steps, start, score_every=steps, marginals=False)
