"""Logistic regression on a teacher's outputs, with backward elimination of its inputs.

Inputs are eliminated one by one, each time the one that raises the mean loss least. The curvature
of the loss gives that rise and the change of the other weights, as long as few inputs are gone:
all weights are fitted again after every fifth of the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

RIDGE = 1e-3  # penalty per weight, added to the mean loss of the rows
NEWTON, AGAIN = 30, 4  # Newton steps, and those of a refit
CLOSE = 1e-8  # squared length of a step that ends them
LEFT = 0.8  # share of the inputs left when weights are fitted again
WORK = 6e9  # products per step, at most: with more, some rows are left out


@dataclass(frozen=True)
class Fit:
    """The weights (I,) of a linear model, and the curvature (I, I) of its loss there."""

    weights: Tensor
    curve: Tensor


def fit_logistic(
    inputs: Tensor,
    probability: Tensor,
    weight: Tensor,
    start: Tensor | None = None,
    steps: int = NEWTON,
) -> Fit:
    """Logistic regression on probabilities (R,) of rows (R, I) of weight (R,)."""
    ridge = RIDGE * torch.eye(inputs.shape[1], dtype=torch.float64)
    found = torch.zeros(inputs.shape[1], dtype=torch.float64) if start is None else start
    curve = ridge
    for _ in range(steps):
        predicted = torch.sigmoid(inputs @ found)
        slope = inputs.T @ (weight * (predicted - probability)) + ridge @ found
        curve = (inputs * (weight * predicted * (1 - predicted))[:, None]).T @ inputs + ridge
        step = torch.linalg.solve(curve, slope)
        found = found - step
        if float(step.square().sum()) < CLOSE:
            break
    return Fit(found, curve)


@dataclass(frozen=True)
class TeacherOutputs:
    """Rows (R, I) float64 of weight (R,), and the probabilities (R, N) that nets give them."""

    inputs: Tensor
    probability: Tensor
    weight: Tensor

    def fits(
        self, places: Sequence[int] | Tensor, start: Sequence[Tensor | None] | None = None
    ) -> list[Fit]:
        """Linear models of these inputs, one per net."""
        inputs, nets = self.inputs[:, places], self.probability.shape[1]
        step = -(-len(inputs) * inputs.shape[1] ** 2 * nets // int(WORK))
        rows = slice(None, None, max(1, step))
        weight = self.weight[rows] / self.weight[rows].sum()
        steps = NEWTON if start is None else AGAIN
        return [
            fit_logistic(inputs[rows], self.probability[rows, net], weight, begin, steps)
            for net, begin in enumerate(start or [None] * nets)
        ]


def elimination_order(
    outputs: TeacherOutputs,
    places: Sequence[int],
    free: Sequence[int],
    directions: Tensor | None = None,
) -> list[int]:
    """These inputs in the order of their elimination from the linear models of all nets.

    free: inputs that cost nothing and are kept. directions: of the places, the sign that weights
    must have, 0 for any: those of the other sign go first.
    """
    kept, gone = [*places, *free], []
    directions = torch.zeros(len(places)) if directions is None else directions
    fits = outputs.fits(kept)
    while len(kept) > len(free):
        count = len(kept) - len(free)
        first = _next_eliminated(fits, count, max(1, int(count * (1 - LEFT))), directions)
        gone += [kept[i] for i in first]
        directions = directions[[i for i in range(count) if i not in set(first)]]
        left = [i for i in range(len(kept)) if i not in set(first)]
        kept = [kept[i] for i in left]
        if len(kept) > len(free):
            fits = outputs.fits(kept, [fit.weights[left] for fit in fits])
    return gone


def _next_eliminated(fits: Sequence[Fit], count: int, going: int, directions: Tensor) -> list[int]:
    """The next `going` inputs to eliminate, of the first `count`.

    Without input i, at best, the loss of a net is higher by w_i² / (2·(H⁻¹)_ii), and w loses
    w_i / (H⁻¹)_ii times column i of H⁻¹.
    """
    weights = torch.stack([fit.weights for fit in fits])  # (N, I)
    inverse = torch.linalg.inv(torch.stack([fit.curve for fit in fits]))  # (N, I, I)
    gone: list[int] = []
    for _ in range(going):
        own = inverse.diagonal(dim1=1, dim2=2)[:, :count]
        cost = (weights[:, :count].square() / own).sum(0)
        cost[(weights[:, :count] * directions < 0).any(0)] = -1.0
        cost[gone] = torch.inf
        i = int(cost.argmin())
        column, each = inverse[:, :, i].clone(), inverse[:, i, i].clone()
        weights = weights - (weights[:, i] / each)[:, None] * column
        inverse.baddbmm_(column[:, :, None], (column / each[:, None])[:, None, :], alpha=-1)
        inverse[:, i, i] = 1.0  # avoids division by 0
        gone.append(i)
    return gone
