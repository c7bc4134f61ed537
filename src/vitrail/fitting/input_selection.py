"""Logistic regression on what a whole model says, and which of its inputs it can do without.

Inputs go one by one, the one first whose loss raises the mean loss least. How much that is, and
how the weights of others make good for it, the curvature says, as long as few have gone: after
every fifth of the inputs all weights are fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

RIDGE = 1e-3  # for each weight, beside a mean loss of the rows
NEWTON, AGAIN = 30, 4  # steps, and where weights are nearly right
CLOSE = 1e-8  # of a step, where they end
LEFT = 0.8  # of the inputs, when weights are fitted again
WORK = 6e9  # products that a step may take: of more, some rows are left out


@dataclass(frozen=True)
class Fit:
    """A line's weights (I,), and the curvature (I, I) of its loss there."""

    weights: Tensor
    curve: Tensor


def fitted(
    inputs: Tensor,
    chance: Tensor,
    weight: Tensor,
    start: Tensor | None = None,
    steps: int = NEWTON,
) -> Fit:
    """Logistic regression on chances (R,) of rows (R, I) that weigh (R,)."""
    ridge = RIDGE * torch.eye(inputs.shape[1], dtype=torch.float64)
    found = torch.zeros(inputs.shape[1], dtype=torch.float64) if start is None else start
    curve = ridge
    for _ in range(steps):
        said = torch.sigmoid(inputs @ found)
        slope = inputs.T @ (weight * (said - chance)) + ridge @ found
        curve = (inputs * (weight * said * (1 - said))[:, None]).T @ inputs + ridge
        step = torch.linalg.solve(curve, slope)
        found = found - step
        if float(step.square().sum()) < CLOSE:
            break
    return Fit(found, curve)


@dataclass(frozen=True)
class Said:
    """Rows (R, I) float64 that weigh (R,), and the chances (R, N) that nets gave them."""

    inputs: Tensor
    chance: Tensor
    weight: Tensor

    def fits(
        self, places: Sequence[int] | Tensor, start: Sequence[Tensor | None] | None = None
    ) -> list[Fit]:
        """Lines that read these inputs, one of each net."""
        inputs, nets = self.inputs[:, places], self.chance.shape[1]
        apart = -(-len(inputs) * inputs.shape[1] ** 2 * nets // int(WORK))
        rows = slice(None, None, max(1, apart))
        weight = self.weight[rows] / self.weight[rows].sum()
        steps = NEWTON if start is None else AGAIN
        return [
            fitted(inputs[rows], self.chance[rows, net], weight, begin, steps)
            for net, begin in enumerate(start or [None] * nets)
        ]


def least_missed(said: Said, places: Sequence[int], free: Sequence[int]) -> list[int]:
    """These inputs in the order in which lines of all nets go without them.

    free: inputs that cost nothing and stay.
    """
    kept, gone = [*places, *free], []
    fits = said.fits(kept)
    while len(kept) > len(free):
        count = len(kept) - len(free)
        first = _first_to_go(fits, count, max(1, int(count * (1 - LEFT))))
        gone += [kept[i] for i in first]
        left = [i for i in range(len(kept)) if i not in set(first)]
        kept = [kept[i] for i in left]
        if len(kept) > len(free):
            fits = said.fits(kept, [fit.weights[left] for fit in fits])
    return gone


def _first_to_go(fits: Sequence[Fit], count: int, going: int) -> list[int]:
    """The first `going` of the first `count` inputs.

    Without input i, at best, the loss of a net is higher by w_i² / (2·(H⁻¹)_ii), and w loses
    w_i / (H⁻¹)_ii times column i of H⁻¹.
    """
    weights = torch.stack([fit.weights for fit in fits])  # (N, I)
    inverse = torch.linalg.inv(torch.stack([fit.curve for fit in fits]))  # (N, I, I)
    gone: list[int] = []
    for _ in range(going):
        own = inverse.diagonal(dim1=1, dim2=2)[:, :count]
        cost = (weights[:, :count].square() / own).sum(0)
        cost[gone] = torch.inf
        i = int(cost.argmin())
        column, each = inverse[:, :, i].clone(), inverse[:, i, i].clone()
        weights = weights - (weights[:, i] / each)[:, None] * column
        inverse.baddbmm_(column[:, :, None], (column / each[:, None])[:, None, :], alpha=-1)
        inverse[:, i, i] = 1.0  # so that nothing is divided by 0
        gone.append(i)
    return gone
