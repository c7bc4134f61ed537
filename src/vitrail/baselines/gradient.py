"""What the gradient baselines share: the step, and the loss of a batch of factors.

The loss is a function of the margin in units of the last layer's spread,

    m = ±h / √n,   n the inputs of the last layer,

averaged over the batch of each problem and summed over problems, so that the step of one problem
does not depend on how many others share its graph.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from vitrail.checks import checked_choice, checked_positive
from vitrail.factors import Factors, Network
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream, normal
from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.damping import Schedule
from vitrail.solvers.schedules import Batches, Order

Loss = Literal["logistic", "hinge"]
StateT = TypeVar("StateT", bound=Any)  # a dataclass that has the `order` of the epoch
START_SCALE = 0.1  # spread of the first real weights: small, so that the data soon decide


@dataclass(frozen=True)
class Gradient:
    """The gradient of a batch, and where it was taken."""

    key: Key
    graph: FactorGraph
    signs: Tensor  # (V,) or (S, V) float32, the weights
    value: Tensor  # the same shape, ∂loss/∂signs
    active: Tensor  # (V,) bool, the variables of problems that are still running
    order: Order  # of the epoch


@dataclass(frozen=True)
class GradientSolver(Solver[StateT]):
    """One forward and one backward pass over a batch per step, with respect to weights ±1."""

    batches: Batches
    loss: Loss

    def __post_init__(self) -> None:
        checked_choice("loss", self.loss, get_args(Loss))

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
        """Log-odds (V,) whose change as probabilities says whether the run has converged."""
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
        with torch.enable_grad():
            signs = self.signs(key, graph, state).requires_grad_()
            loss, evaluations = batch_loss(graph, selected, (signs + 1) / 2, self.loss)
            (gradient,) = torch.autograd.grad(loss, signs)
        active = feedback.active[graph.problem]
        taken = Gradient(key, graph, signs.detach(), gradient, active, order)
        after = self.updated(state, taken)
        before, now = (
            self.convergence_log_odds(graph, state),
            self.convergence_log_odds(graph, after),
        )
        change = (torch.sigmoid(now.double()) - torch.sigmoid(before.double())).abs()
        residual = torch.zeros(graph.num_problems, dtype=torch.float64, device=graph.device)
        residual.scatter_reduce_(0, graph.problem, change, "amax")
        return after, Info(residual, evaluations, torch.zeros_like(feedback.active))

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return self.batches.epoch_steps(graph)


def batch_loss(
    graph: FactorGraph,
    selected: Sequence[Tensor | None],
    bits: Tensor,
    loss: Loss,
) -> tuple[Tensor, int]:
    """Loss of the selected factors at `bits`, and how many factors were evaluated.

    bits (V,) or (S, V) float32 in [0, 1] carry a gradient; of S rows the mean is taken. selected
    is an index (F',) per block, None for a whole block.
    """
    rows = bits if bits.ndim == 2 else bits[None]
    evaluations = 0
    weights, losses = [], []
    for block, index in zip(graph.blocks, selected, strict=True):
        assert isinstance(block, Network)
        factors = block if index is None else block.select(index)
        states = factors.scope.gather(rows).transpose(0, 1)
        margins = factors.outputs(states) / math.sqrt(_fan_in(factors))
        each = _losses(margins, factors.labels, loss)
        problem = graph.factor_problem(factors)
        share = factors.weight.to(each.dtype)
        losses.append(each.new_zeros(graph.num_problems).index_add(0, problem, each * share))
        weights.append(share.new_zeros(graph.num_problems).index_add(0, problem, share))
        evaluations += states.shape[1] * factors.num_factors
    weight = torch.stack(weights).sum(0)
    # a problem that is done has no factor in the batch, and no loss
    mean = torch.stack(losses).sum(0) / torch.where(weight > 0, weight, 1.0)
    return mean.sum(), evaluations


def _losses(margins: Tensor, labels: Tensor, loss: Loss) -> Tensor:
    """Margins (F, S, C) to one loss per factor, (F,), the mean over S."""
    samples, classes = margins.shape[1:]
    if classes == 1:
        right = torch.where(labels == 1, 1.0, -1.0)[:, None] * margins[..., 0]
        each = F.softplus(-right) if loss == "logistic" else F.relu(1 - right)
        return each.mean(1)
    flat, wanted = margins.flatten(0, 1), labels.repeat_interleave(samples)
    function = F.cross_entropy if loss == "logistic" else F.multi_margin_loss
    return function(flat, wanted, reduction="none").view(-1, samples).mean(1)


def _fan_in(factors: Factors) -> int:
    return factors.program.fan_in if isinstance(factors, Network) else factors.arity


def value_at(rate: float | Schedule, step: int) -> float:
    """The value at a step of what may be a number or a schedule."""
    return rate(step) if callable(rate) else rate


def checked_rate(name: str, rate: float | Schedule) -> float | Schedule:
    """A schedule as it is; a number only when positive."""
    return rate if callable(rate) else checked_positive(name, rate)
