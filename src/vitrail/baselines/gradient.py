"""What the gradient rivals share: a differentiable loss of a batch of factors, and optimisers.

A factor asks for a margin on the right side of zero. Its loss is a function of that margin in
units of the last layer's spread,

    m = ±h / √n,   n the inputs of the last layer,

averaged over the batch of each problem and summed over problems, so that the step of one problem
does not depend on how many others share its graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from vitrail.factors import Classifiers, Factors, Network
from vitrail.graph import FactorGraph
from vitrail.solvers.damping import Schedule

Loss = Literal["logistic", "hinge"]

ADAM_EPSILON = 1e-8


def checked_choice(name: str, value: str, kind: object) -> str:
    """`value`, or an error that names what there is to choose from."""
    known = get_args(kind)
    if value not in known:
        raise ValueError(f"unknown {name} {value!r}; choose one of: {', '.join(known)}")
    return value


def checked_positive(name: str, value: float) -> float:
    """`value`, or an error when it is not a positive number."""
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be a positive number, got {value}")
    return float(value)


def check_graph(graph: FactorGraph) -> None:
    """Raise where a factor has no margin to follow a gradient of."""
    for block in graph.blocks:
        if not isinstance(block, Classifiers):
            raise TypeError(
                f"gradient baselines need factors that classify (perceptron or network), got "
                f"{type(block).__name__}; use belief propagation or annealing for these"
            )


def batch_loss(
    graph: FactorGraph,
    selected: Sequence[Tensor | None],
    bits: Tensor,
    loss: Loss,
) -> tuple[Tensor, int]:
    """Loss of the selected factors at `bits`, and how many factors were evaluated.

    bits (V,) or (S, V) float32 in [0, 1], usually {0, 1}, carrying a gradient; of S rows the
    mean is taken. selected is an index (F',) a block, None for a whole block.
    """
    rows = bits if bits.ndim == 2 else bits[None]
    evaluations = 0
    weights, losses = [], []
    for block, index in zip(graph.blocks, selected, strict=True):
        assert isinstance(block, Classifiers)
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
    """Margins (F, S, C) to one loss a factor, (F,), the mean over S."""
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


@dataclass(frozen=True)
class Moments:
    """What an optimiser remembers: running means of the gradient and of its square."""

    first: Tensor  # (V,) float32
    second: Tensor  # (V,) float32
    count: Tensor  # () int64


def no_moments(latent: Tensor) -> Moments:
    """Before the first gradient."""
    zero = torch.zeros_like(latent)
    return Moments(zero, zero, torch.zeros((), dtype=torch.int64))


def adam(moments: Moments, gradient: Tensor, betas: tuple[float, float]) -> tuple[Tensor, Moments]:
    """Direction m̂/(√v̂ + ε) with bias-corrected running means (Kingma and Ba, 2015)."""
    count = moments.count + 1
    first = torch.lerp(gradient, moments.first, betas[0])
    second = torch.lerp(gradient * gradient, moments.second, betas[1])
    corrections = [1 - beta ** int(count) for beta in betas]
    direction = (first / corrections[0]) / ((second / corrections[1]).sqrt() + ADAM_EPSILON)
    return direction, Moments(first, second, count)


def sgd(moments: Moments, gradient: Tensor, momentum: float) -> tuple[Tensor, Moments]:
    """Direction v = momentum·v + gradient."""
    first = momentum * moments.first + gradient
    return first, Moments(first, moments.second, moments.count + 1)


def settled(graph: FactorGraph, before: Tensor, after: Tensor) -> Tensor:
    """Largest change of P(w = 1) in each problem, (P,) float64, between log-odds (V,)."""
    change = (torch.sigmoid(after.double()) - torch.sigmoid(before.double())).abs()
    residual = torch.zeros(graph.num_problems, dtype=torch.float64, device=graph.device)
    return residual.scatter_reduce_(0, graph.problem, change, "amax")


def at(rate: float | Schedule, step: int) -> float:
    """The value at a step of what may be a number or a schedule."""
    return rate(step) if callable(rate) else rate


def checked_rate(name: str, rate: float | Schedule) -> float | Schedule:
    """A schedule as it is; a number only when positive."""
    return rate if callable(rate) else checked_positive(name, rate)
