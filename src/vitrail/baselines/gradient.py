"""The common part of gradient baselines: the step, and the loss of a batch of factors.

The loss is the hinge loss of the margin in units of the last layer's standard deviation,

    m = ±h / √n,   n the inputs of the last layer,

averaged over the batch of each problem and summed over problems, so that the step of a problem does
not depend on the others.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from vitrail.checks import checked_positive
from vitrail.factors import Factors, Network
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, normal
from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.damping import Schedule
from vitrail.solvers.moment_messages import batch_tensors, first_batch, max_per_problem, replayable
from vitrail.solvers.replay import Replay, replay
from vitrail.solvers.schedules import Batches, Order

StateT = TypeVar("StateT", bound=Any)  # a dataclass that has the `order` of the epoch
START_SCALE = 0.1  # standard deviation of the initial real weights


@dataclass(frozen=True)
class Gradient:
    """The gradient of a batch."""

    key: Key
    graph: FactorGraph
    signs: Tensor  # (V,) or (S, V) float32, the weights
    value: Tensor  # the same shape, ∂loss/∂signs
    active: Tensor  # (V,) bool, variables of active problems
    order: Order  # of the epoch


@dataclass(frozen=True)
class GradientSolver(Solver[StateT]):
    """One forward and one backward pass per step, over a batch, with respect to weights ±1."""

    batches: Batches

    @abstractmethod
    def first_state(self, noise: Tensor, order: Order) -> StateT:
        """The first state, from Gaussian noise (V,)."""

    @abstractmethod
    def signs(self, key: Key, graph: FactorGraph, state: StateT) -> Tensor:
        """The weights of the forward pass, (V,) or (S, V) float32 from −1 to 1."""

    @abstractmethod
    def updated(self, state: StateT, taken: Gradient) -> StateT:
        """The state after a gradient."""

    def convergence_log_odds(self, graph: FactorGraph, state: StateT) -> Tensor:
        """Log-odds (V,) by whose change as probabilities convergence is tested."""
        return self.log_odds(graph, state)

    def init(self, key: Key, graph: FactorGraph) -> StateT:
        for block in graph.blocks:
            if not isinstance(block, Network):
                raise TypeError(
                    f"gradient baselines need factors that classify (perceptron or network), got "
                    f"{type(block).__name__}; use belief propagation or annealing for these"
                )
        noise = normal(key.at(0).of(Stream.PRIOR), graph.num_variables, graph.device)
        return self.first_state(noise, self.batches.start(graph))

    def step(
        self, key: Key, graph: FactorGraph, state: StateT, feedback: Feedback
    ) -> tuple[StateT, Info]:
        selected, order = self.batches.select(key, graph, state.order, feedback)
        factors = [
            block if index is None else block.select(index)
            for block, index in zip(graph.blocks, selected, strict=True)
        ]
        signs = self.signs(key, graph, state)
        gradient = batch_gradient(graph, factors, self.batches.size, signs)
        evaluations = signs[..., 0].numel() * sum(part.num_factors for part in factors)
        active = feedback.active[graph.problem]
        taken = Gradient(key, graph, signs, gradient, active, order)
        after = self.updated(state, taken)
        before, now = (
            self.convergence_log_odds(graph, state),
            self.convergence_log_odds(graph, after),
        )
        change = (torch.sigmoid(now.double()) - torch.sigmoid(before.double())).abs()
        none = torch.zeros_like(feedback.active)
        return after, Info(max_per_problem(graph, change), evaluations, none)

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return self.batches.epoch_steps(graph)


def batch_gradient(
    graph: FactorGraph, factors: Sequence[Factors], size: int | None, signs: Tensor
) -> Tensor:
    """∂loss/∂signs of a batch, (V,) or (S, V); on a GPU, batches of `size` are CUDA graphs."""
    part = replayable(graph, factors, size)
    known = None
    if part is not None:
        known = graph.once(_replay, size, tuple(signs.shape))
    if part is None or known is None:
        return _gradient(graph, factors, signs)
    return known(*batch_tensors(part), signs)[0].clone()


def _gradient(graph: FactorGraph, factors: Sequence[Factors], signs: Tensor) -> Tensor:
    with torch.enable_grad():
        signs = signs.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(batch_loss(graph, factors, (signs + 1) / 2), signs)
    return gradient


def _replay(graph: FactorGraph, size: int, shape: tuple[int, ...]) -> Replay | None:
    """The gradient of a batch of `size` factors as one CUDA graph.

    Factors cache values derived from their inputs, which differ at every replay, so every
    computation uses a copy of the factors.
    """
    part, signs = first_batch(graph, size), torch.zeros(shape, device=graph.device)
    places = (*batch_tensors(part), signs)
    return replay(lambda: (_gradient(graph, [replace(part)], signs),), places)


def batch_loss(graph: FactorGraph, factors: Sequence[Factors], bits: Tensor) -> Tensor:
    """The loss of factors at `bits`, (V,) or (S, V) float32 in [0, 1] that carry a gradient.

    The loss of S rows is their mean.
    """
    rows = bits if bits.ndim == 2 else bits[None]
    weights, losses = [], []
    for part in factors:
        assert isinstance(part, Network)
        states = part.scope.gather(rows).transpose(0, 1)
        margins = part.outputs(states) / math.sqrt(part.program.fan_in)
        each = _losses(margins, part.labels)
        problem = graph.factor_problem(part)
        share = part.weight.to(each.dtype)
        losses.append(each.new_zeros(graph.num_problems).index_add(0, problem, each * share))
        weights.append(share.new_zeros(graph.num_problems).index_add(0, problem, share))
    weight = torch.stack(weights).sum(0)
    # inactive problems have no factor in the batch
    return (torch.stack(losses).sum(0) / torch.where(weight > 0, weight, 1.0)).sum()


def _losses(margins: Tensor, labels: Tensor) -> Tensor:
    """Margins (F, S, C) to one loss per factor, (F,), the mean over S."""
    samples, classes = margins.shape[1:]
    if classes == 1:
        right = torch.where(labels == 1, 1.0, -1.0)[:, None] * margins[..., 0]
        return F.relu(1 - right).mean(1)
    flat, targets = margins.flatten(0, 1), labels.repeat_interleave(samples)
    return F.multi_margin_loss(flat, targets, reduction="none").view(-1, samples).mean(1)


def value_at(rate: float | Schedule, step: int) -> float:
    """The value of a number or a schedule at a step."""
    return rate(step) if callable(rate) else rate


def checked_rate(name: str, rate: float | Schedule) -> float | Schedule:
    """`rate`; an error if it is a number that is not positive."""
    return rate if callable(rate) else checked_positive(name, rate)
