"""A line through the bits of a row, fitted to what a whole model says, with small whole weights.

Logistic regression finds real weights first. They are then rounded to the odd numbers from
−(2^K − 1) to 2^K − 1, which are sums of K binary nets without hidden units whose votes are 1, 2, 4
and so on: the digits of the weights. Rounding one weight is made good by the others, as far as the
curvature of the loss says how.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vitrail.fitting.whole import Whole
from vitrail.model import Model
from vitrail.nn import mlp, program_of

PLANES = 5  # at most
RIDGE = 1e-3  # for each weight, beside a mean loss of the rows
NEWTON = 30  # steps
CLOSE = 1e-8  # of a step, where they end
LARGEST = (1.0, 0.99, 0.95, 0.9, 0.8, 0.6)  # quantiles of weights that become the largest number
STEPS = 20  # of rounding, for each weight
SMALLEST = 1e-12  # weight that becomes the largest number


class Planes:
    """Lines of growing precision."""

    name = "line"

    def __init__(self, whole: Whole) -> None:
        self.whole, self.nets = whole, whole.model.networks.shape[1]
        inputs, chance = whole.rows.double(), (whole.wanted[..., 0] + 1) / 2
        self.fits = [fitted(inputs, chance[:, net], whole.weight) for net in range(self.nets)]

    @staticmethod
    def of(whole: Whole) -> Planes | None:
        """Where nets have one output and rows are flat."""
        return Planes(whole) if whole.plain else None

    def sizes(self, most: int) -> list[int]:
        """Numbers of binary digits."""
        return list(range(1, 1 + min(PLANES, most // (self.whole.num_inputs * self.nets))))

    def made(self, size: int) -> Model:
        """The line with weights of so many digits, on one scale for all nets and with one curve."""
        inputs, votes = self.whole.num_inputs, 2 ** torch.arange(size)
        numbers = digits_of(self.fits, size)
        networks = (numbers[None] & votes[:, None, None]) > 0  # (K, N, I)
        program = program_of(mlp(inputs, (), 1), (inputs,))
        every = votes[:, None].expand(-1, self.nets).contiguous()
        # as tight as rows allow, for chances have few levels between the ends
        clip = int(self.whole.said(program, networks, 2 * inputs).abs().max())
        return self.whole.small(program, networks, every, clip, one_curve=True)


def fitted(inputs: Tensor, chance: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (I,) of logistic regression on chances (R,), and the curvature (I, I) of its loss."""
    ridge = RIDGE * torch.eye(inputs.shape[1], dtype=torch.float64)
    found = torch.zeros(inputs.shape[1], dtype=torch.float64)
    curve = ridge
    for _ in range(NEWTON):
        said = torch.sigmoid(inputs @ found)
        slope = inputs.T @ (weight * (said - chance)) + ridge @ found
        curve = (inputs * (weight * said * (1 - said))[:, None]).T @ inputs + ridge
        step = torch.linalg.solve(curve, slope)
        found = found - step
        if float(step.square().sum()) < CLOSE:
            break
    return found, curve


def digits_of(fits: Sequence[tuple[Tensor, Tensor]], planes: int) -> Tensor:
    """Whole numbers (N, I) from 0 to 2^K − 1: those of odd weights, halved from below.

    fits: weights (I,) and curvature (I, I) of each net. Of several scales, the one on which
    rounding raises the loss of all nets least.
    """
    top, sizes = 2**planes - 1, torch.cat([weights for weights, _ in fits]).abs()
    tried = []
    for share in LARGEST:
        scale = top / float(sizes.quantile(share).clamp(min=SMALLEST))
        found = [_rounded(weights * scale, curve, top) for weights, curve in fits]
        loss = sum(loss for _, loss in found) / scale**2
        tried.append((loss, torch.stack([number for number, _ in found])))
    return min(tried, key=lambda one: one[0])[1]


def _rounded(wanted: Tensor, curve: Tensor, top: int) -> tuple[Tensor, float]:
    """Whole numbers by steps of one at a time, and how much they raise the loss."""
    number = ((wanted + top) / 2).round().clamp(0, top)
    slope = curve @ (2 * number - top - wanted)
    for _ in range(STEPS * len(wanted)):
        change = torch.stack([4 * slope, -4 * slope]) + 4 * curve.diagonal()
        change[0][number == top] = torch.inf
        change[1][number == 0] = torch.inf
        place = int(change.argmin())
        if change.flatten()[place] >= 0:
            break
        step, at = (1, place) if place < len(wanted) else (-1, place - len(wanted))
        number[at] += step
        slope += 2 * step * curve[at]
    off = 2 * number - top - wanted
    return number.long(), float(off @ curve @ off)
