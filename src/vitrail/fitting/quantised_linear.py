"""A line through the bits of a row, fitted to what a whole model says, with small whole weights.

Logistic regression finds real weights first. They are then rounded to the odd numbers from
−(2^K − 1) to 2^K − 1, which are sums of K binary nets without hidden units whose votes are 1, 2, 4
and so on: the digits of the weights. Rounding one weight is made good by the others, as far as the
curvature of the loss says how. A line reads all bits of a row, or only those it needs most
(`input_selection`): a device then has little to compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from vitrail.fitting.input_selection import Fit, Said, least_missed
from vitrail.fitting.teacher import Small, View, Whole
from vitrail.model.voting import LEVELS
from vitrail.nn import mlp, program_of

DIGITS = range(1, 6)
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # of bits that few are
LARGEST = (1.0, 0.99, 0.95, 0.9, 0.8, 0.6)  # quantiles of weights that become the largest number
STEPS = 20  # of rounding, for each weight
WIDE = 4  # times the levels: a score that is larger is cut off, of several nets
SMALLEST = 1e-12  # weight that becomes the largest number


@dataclass(frozen=True)
class Size:
    """Which bits of a row a line reads, None being all, and how many digits its weights have."""

    bits: tuple[int, ...] | None
    digits: int


class Planes:
    """Lines of growing precision, which read more and more of a row."""

    name = "line"

    def __init__(self, whole: Whole) -> None:
        self.whole, self.nets = whole, whole.model.networks.shape[1]
        self.said = Said(whole.rows.double(), (whole.wanted[..., 0] + 1) / 2, whole.weight)
        self.full = whole.num_inputs == whole.model.program.num_inputs
        self._fits: dict[tuple[int, ...] | None, list[Fit]] = {}

    @staticmethod
    def of(whole: Whole) -> Planes | None:
        """Where nets have one output and rows are flat."""
        return Planes(whole) if whole.plain else None

    def sizes(self, most: int) -> list[Size]:
        """Lines that read few bits, then those that read all."""
        counts = [*(count for count in COUNTS if count < len(self.order)), None]
        sizes = [self.size(count, digits) for digits in DIGITS for count in counts]
        return sorted((size for size in sizes if self.cost(size) <= most), key=self.cost)

    def largest(self, most: int) -> list[Size]:
        """Of every precision the line that reads most."""
        found: list[Size] = []
        for digits in DIGITS:
            size: Size | None = Size(None, digits)
            if self.cost(size) > most:
                counts = range(min(len(self.order), most // (digits * self.nets)), 0, -1)
                fewer = (self.size(count, digits) for count in counts)
                size = next((one for one in fewer if self.cost(one) <= most), None)
            found += [size] if size else []
        return found

    def size(self, count: int | None, digits: int) -> Size:
        """Of the bits that are needed most so many, or all."""
        return Size(None if count is None else tuple(sorted(self.order[-count:])), digits)

    def cost(self, size: Size) -> int:
        """Bits of all nets and digits."""
        return len(self.view(size.bits).left) * size.digits * self.nets

    @cached_property
    def order(self) -> list[int]:
        """Bits of a row in the order in which lines go without them."""
        encoder, inputs = self.whole.model.encoder, self.whole.num_inputs
        if not self.full:
            return []  # all bits are a better choice to leave some out
        free = [inputs - 1] if self.whole.view.constant else []
        return least_missed(self.said, encoder.apart, free)

    def view(self, bits: tuple[int, ...] | None) -> View:
        """What a line reads: these bits and those that must be read with them."""
        if bits is None:
            return self.whole.view
        model = self.whole.model
        return View.of(model, *model.encoder.only(set(bits)))

    def fits(self, bits: tuple[int, ...] | None) -> list[Fit]:
        """Lines that read these bits."""
        if bits not in self._fits:
            every = torch.arange(self.whole.num_inputs)
            self._fits[bits] = self.said.fits(every if bits is None else self.view(bits).left)
        return self._fits[bits]

    def made(self, size: Size) -> Small:
        """The line with weights of so many digits, on one scale for all nets and with one curve."""
        view, fits, digits = self.view(size.bits), self.fits(size.bits), size.digits
        whole, votes = self.whole.through(view), 2 ** torch.arange(digits)
        inputs = len(view.left)
        numbers = digits_of(fits, digits)
        networks = (numbers[None] & votes[:, None, None]) > 0  # (K, N, I)
        program = program_of(mlp(inputs, (), 1), (inputs,))
        every = votes[:, None].expand(-1, self.nets).contiguous()
        clip = most_margin(networks, view, whole.model.coding == "bipolar")
        if self.nets > 1 and clip * int(votes.sum()) > WIDE * LEVELS:
            # as tight as rows allow, for scores of one level are as good as equal
            clip = int(whole.said(program, networks, 2 * inputs).abs().max())
        return whole.small(program, networks, every, clip, one_curve=True)


def most_margin(networks: Tensor, view: View, bipolar: bool) -> int:
    """The largest |2h − 1| of any of the networks (K, N, I) on any row."""
    weights, bits = 2 * networks.long() - 1, len(view.encoder.bit_names)
    low = high = weights[..., bits:].sum(-1)
    for place, states in view.encoder.states():
        values = torch.from_numpy(2 * states - 1 if bipolar else states)
        said = weights[..., place] @ values.T  # (K, N, states)
        low, high = low + said.amin(-1), high + said.amax(-1)
    return int(torch.maximum((2 * low - 1).abs(), (2 * high - 1).abs()).max())


def digits_of(fits: Sequence[Fit], planes: int) -> Tensor:
    """Whole numbers (N, I) from 0 to 2^K − 1: those of odd weights, halved from below.

    Of several scales, the one on which rounding raises the loss of all nets least.
    """
    top, sizes = 2**planes - 1, torch.cat([fit.weights for fit in fits]).abs()
    tried = []
    for share in LARGEST:
        scale = top / float(sizes.quantile(share).clamp(min=SMALLEST))
        found = [_rounded(fit.weights * scale, fit.curve, top) for fit in fits]
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
