"""Linear models of a row's bits with small integer weights, fitted to a teacher's outputs.

Logistic regression finds real weights first. They are then rounded to the odd numbers from
−(2^K − 1) to 2^K − 1, which are sums of K binary nets without hidden units whose votes are 1, 2, 4
and so on: the digits of the weights. The other weights compensate for rounding one, by the
curvature of the loss. A linear model reads all bits of a row, or only those it needs most: a device
then makes few comparisons. Inputs are eliminated one by one, each time the one that raises the mean
loss least, by its curvature; weights are fitted again after every fifth of the inputs. Weights of
thresholds of a monotone column have the sign of its direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from vitrail.learning.teacher import Compressor, Inputs, Student, Teacher
from vitrail.model.explanation import max_margin
from vitrail.model.voting import LEVELS
from vitrail.nn import mlp, program_of
from vitrail.tables.encoders import TableEncoder

DIGITS = range(1, 6)
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # candidate input counts
LARGEST = (1.0, 0.99, 0.95, 0.9, 0.8, 0.6)  # quantiles of |weight| mapped to the largest number
STEPS = 20  # of rounding, per weight
WIDE = 4  # times the levels: with several nets, larger scores are clipped
SMALLEST = 1e-12  # |weight| mapped to the largest number, at least
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


@dataclass(frozen=True)
class LinearSize:
    """The bits that a linear model reads, None for all, and the number of digits of its weights."""

    bits: tuple[int, ...] | None
    digits: int


class QuantisedLinear(Compressor):
    """Linear models of growing precision and number of inputs."""

    name: ClassVar[str] = "linear model"

    def __init__(self, teacher: Teacher) -> None:
        """For teachers of plain nets."""
        self.teacher, self.nets = teacher, teacher.num_nets
        self.outputs = TeacherOutputs(
            teacher.rows.double(), (teacher.target[..., 0] + 1) / 2, teacher.weight
        )
        self._fits: dict[tuple[int, ...] | None, list[Fit]] = {}
        self.directions, encoder = torch.zeros(len(teacher.inputs.places)), teacher.model.encoder
        if isinstance(encoder, TableEncoder):
            for code, span in zip(encoder.columns, encoder.spans, strict=True):
                steps = [span.start + step for step in code.steps if code.direction]
                self.directions[steps] = code.direction
        self.monotone = bool(self.directions.any())

    def sizes(self, most: int) -> list[LinearSize]:
        """Models that read few bits, then those that read all."""
        every = len(self.order) if self.monotone else None  # without second bits of thresholds
        counts = [*(count for count in COUNTS if count < len(self.order)), every]
        sizes = [self.size(count, digits) for digits in DIGITS for count in counts]
        return sorted((size for size in sizes if self.cost(size) <= most), key=self.cost)

    def largest(self, most: int) -> list[LinearSize]:
        """The model with most inputs, for each precision."""
        found: list[LinearSize] = []
        for digits in DIGITS:
            size: LinearSize | None = LinearSize(None, digits)
            if self.monotone or self.cost(size) > most:
                counts = range(min(len(self.order), most // (digits * self.nets)), 0, -1)
                fewer = (self.size(count, digits) for count in counts)
                size = next((one for one in fewer if self.cost(one) <= most), None)
            found += [size] if size else []
        return found

    def size(self, count: int | None, digits: int) -> LinearSize:
        """The size that reads the `count` bits needed most, or all."""
        return LinearSize(None if count is None else tuple(sorted(self.order[-count:])), digits)

    def cost(self, size: LinearSize) -> int:
        """Bits of all nets and digits."""
        return len(self.inputs(size.bits).places) * size.digits * self.nets

    @cached_property
    def order(self) -> list[int]:
        """Bits of a row in the order of their elimination."""
        model = self.teacher.model
        free = [model.program.num_inputs - 1] if model.bias else []
        places = model.encoder.selectable
        return elimination_order(self.outputs, places, free, self.directions[places])

    def inputs(self, bits: tuple[int, ...] | None) -> Inputs:
        """The inputs of a model: these bits, those that must be read with them, and constants."""
        if bits is None:
            return self.teacher.one_sided
        model = self.teacher.model
        encoder, places = model.encoder.only(set(bits))
        constant = range(len(model.encoder.bit_names), model.program.num_inputs)
        return Inputs(encoder, torch.tensor([*places, *constant]))

    def fits(self, bits: tuple[int, ...] | None) -> list[Fit]:
        """Real-valued models of these bits, one per net."""
        if bits not in self._fits:
            self._fits[bits] = self.outputs.fits(self.inputs(bits).places)
        return self._fits[bits]

    def build(self, size: LinearSize) -> Student:
        """Weights of `size.digits` digits, on one scale and with one calibration for all nets."""
        inputs, fits, digits = self.inputs(size.bits), self.fits(size.bits), size.digits
        teacher, votes, count = self.teacher, 2 ** torch.arange(digits), len(inputs.places)
        numbers = digits_of(fits, digits, self.directions[inputs.places])
        networks = (numbers[None] & votes[:, None, None]) > 0  # (K, N, I)
        program = program_of(mlp(count, (), 1), (count,))
        every = votes[:, None].expand(-1, self.nets).contiguous()
        clip = max_margin(networks, inputs.encoder, teacher.model.coding == "bipolar")
        if self.nets > 1 and clip * int(votes.sum()) > WIDE * LEVELS:
            # as tight as the rows allow: scores within one level are equal
            clip = int(teacher.margins(program, networks, 2 * count, inputs.places).abs().max())
        return teacher.student(program, networks, every, clip, inputs, one_curve=True)


def digits_of(fits: Sequence[Fit], digits: int, directions: Tensor | None = None) -> Tensor:
    """Integers n (N, I) from 0 to 2^K − 1, of weights 2·n − (2^K − 1).

    Of several scales, the one on which rounding raises the loss of all nets least. directions (I,):
    the sign that the weights of an input must have, 0 for any.
    """
    top, sizes = 2**digits - 1, torch.cat([fit.weights for fit in fits]).abs()
    directions = torch.zeros(len(fits[0].weights)) if directions is None else directions
    candidates = []
    for share in LARGEST:
        scale = top / float(sizes.quantile(share).clamp(min=SMALLEST))
        found = [_rounded(fit.weights * scale, fit.curve, top, directions) for fit in fits]
        loss = sum(loss for _, loss in found) / scale**2
        candidates.append((loss, torch.stack([number for number, _ in found])))
    return min(candidates, key=lambda one: one[0])[1]


def _rounded(exact: Tensor, curve: Tensor, top: int, directions: Tensor) -> tuple[Tensor, float]:
    """Integers by steps of one at a time, and how much they raise the loss."""
    low, high = (top + 1) // 2 * (directions > 0), top - (top + 1) // 2 * (directions < 0)
    number = ((exact + top) / 2).round().clamp(low, high)
    slope = curve @ (2 * number - top - exact)
    for _ in range(STEPS * len(exact)):
        change = torch.stack([4 * slope, -4 * slope]) + 4 * curve.diagonal()
        change[0][number == high] = torch.inf
        change[1][number == low] = torch.inf
        place = int(change.argmin())
        if change.flatten()[place] >= 0:
            break
        step, at = (1, place) if place < len(exact) else (-1, place - len(exact))
        number[at] += step
        slope += 2 * step * curve[at]
    off = 2 * number - top - exact
    return number.long(), float(off @ curve @ off)
