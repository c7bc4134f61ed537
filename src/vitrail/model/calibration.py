"""From scores to probabilities: a table fitted to rows that the networks have not seen.

A table is a logistic curve over the levels of `voting`, rounded to whole numbers. Its slope and
shift, and where it is left open how far margins count (`clip`), are those under which the labels
are likeliest (Platt scaling).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

from vitrail.model.voting import (
    LEAST,
    LEVELS,
    ONE,
    Scheme,
    class_probabilities,
    class_scores,
    clipped_margins,
    net_probabilities,
)

CLIPS: tuple[int, ...] = tuple(2**k - 1 for k in range(1, 11))
EDGE = 0.02  # distance of unanimous scores from 0 and 1
NEWTON_STEPS = 50
HALVINGS = 30
CONVERGED = 1e-12  # relative fall of the loss
RIDGE = 1e-3
SMALLEST = 1e-9  # lower limit of probabilities in a loss
LEAST_SLOPE = 0.05  # unanimous votes then move the log-odds by 0.2
STEEPER = 3.0  # most, where a curve is extrapolated to more networks
SEARCH = ((2.0, 1.0), (1.25, 0.25), (1.06, 0.06))  # steps of slopes (factors) and of shifts
LARGEST_SHIFT, BISECTIONS = 50.0, 60
HALF = LEVELS // 2
MIDDLES = (torch.arange(LEVELS + 1, dtype=torch.float64) + 0.5 - HALF) / HALF
"""The middle of each level, in scores from −1 to 1."""

SLOPES = tuple(2.0 ** (k / 4) for k in range(-12, 25))  # of curves without a shift
Source = Literal["held-out rows", "training rows", "base rate"]  # data of a curve
Part = tuple[Tensor, Tensor, Tensor]  # logits of scores, targets, weights: (rows,) float64 each


@dataclass(frozen=True)
class Evidence:
    """Raw margins of networks on rows, and the labels.

    counts: how much each network counts on each row and net; None for all alike. Rows that the
    networks were trained on are scored as if left out: those that misclassify a row count more.
    """

    raw_margins: Tensor  # (rows, K, N, O) int64, of `voting.raw_margins`
    labels: Tensor  # (rows,) int64, class numbers
    weight: Tensor  # (rows,) float64
    counts: Tensor | None = None  # (rows, K, N) float64
    held_out: bool = True  # whether the networks have not seen the rows

    def scores(self, clip: int) -> Tensor:
        """Scores as shares of the largest, (rows, N, O) float64 in [−1, 1]."""
        margin = clipped_margins(self.raw_margins, clip).to(torch.float64) / clip
        if self.counts is None:
            return margin.mean(1)
        share = self.counts / self.counts.sum(1, keepdim=True)
        return (margin * share[..., None]).sum(1)

    def probabilities(self, clip: int, table: Tensor, num_classes: int, scheme: Scheme) -> Tensor:
        """The probability of every class on each row, in parts of 65535, (rows, C) int64."""
        level = ((self.scores(clip) + 1) * HALF).floor().to(torch.int64)
        score = class_scores(net_probabilities(level.clamp(0, LEVELS), table), num_classes, scheme)
        return class_probabilities(score)


@dataclass(frozen=True)
class Calibration:
    """The table from scores to probabilities."""

    clip: int  # limit of margins
    table: Tensor  # (N, LEVELS + 1) int64, one row per net
    source: Source


def calibrate(
    evidence: Evidence,
    num_classes: int,
    scheme: Scheme,
    *,
    clip: int | None = None,
    networks: int | None = None,
) -> Calibration:
    """The curves σ(a·z + b), z the logit of the score's share, as tables of whole numbers.

    a and b maximise the likelihood of the labels; with several classes, of the probabilities that
    all nets together give. Labels are moved a little away from 0 and 1, as Platt does, so that
    a sample without errors is no proof. All nets share one curve: with few rows per class, separate
    curves follow the rows more than the nets.

    Where the curve would fall or be flat, the rows show no relation between scores and labels:
    every net's mean probability is then the share of its class, and scores move it very little.
    Rows that the networks have seen settle the slope alone, so that votes keep deciding.

    clip: how far margins count; None chooses among CLIPS by the same likelihood. networks: how many
    will answer, where those of the evidence are fewer. A mean of few networks is noisy, which makes
    a curve flatter by 1/networks; the curve of half of them gives the size of the effect.
    """
    if clip is None:
        margins = (2 * evidence.raw_margins - 1).abs()
        largest = int(margins.max()) if margins.numel() else 1
        limit = next((one for one in CLIPS if one >= largest), CLIPS[-1])
        clips = [one for one in CLIPS if one <= limit]
        fits = [_Fit(evidence, one, num_classes, scheme) for one in clips]
        losses = [fit.loss(fit.curve()) for fit in fits]
        clip = clips[losses.index(min(losses))]
    fit = _Fit(evidence, clip, num_classes, scheme)
    curve = fit.curve()
    known = evidence.raw_margins.shape[1]
    if networks is not None and networks > known > 1 and curve.source == "held-out rows":
        half = known // 2
        flat = []
        for part in (evidence.raw_margins[:, :half], evidence.raw_margins[:, half:]):
            seen = replace(evidence, raw_margins=part)
            flat.append(_Fit(seen, clip, num_classes, scheme).curve().slope)
        width = 1 / curve.slope
        width += (width - 2 / sum(flat)) * (1 - known / networks)
        curve = fit.curve(1 / max(width, 1 / (STEEPER * curve.slope)))
    z = _logit(MIDDLES.clamp(max=1.0))
    table = torch.stack([_table(curve.slope * z + shift) for shift in curve.shifts])
    return Calibration(clip, table, curve.source)


@dataclass(frozen=True)
class _Curve:
    slope: float
    shifts: tuple[float, ...]  # one per net
    source: Source


class _Fit:
    """Curves for the scores of some evidence, and their loss."""

    def __init__(self, evidence: Evidence, clip: int, num_classes: int, scheme: Scheme) -> None:
        """Logits, Platt's targets and weights, of each net on the rows that it separates.

        The targets are (n₊ + 1)/(n₊ + 2) for positive rows, 1/(n₋ + 2) for the others.
        """
        scores, labels = evidence.scores(clip), evidence.labels
        self._nets, self._held_out = scores.shape[1], evidence.held_out
        one_net_of_many = scheme == "argmax" and scores.shape[-1] > 1
        # with training rows each pair keeps its own maximum-likelihood curve
        self._pairs = scheme == "pairs" and num_classes > 2 and evidence.held_out
        self._joint = one_net_of_many or scheme == "one-vs-rest" or self._pairs
        self._z = _logit(scores[:, 0] if one_net_of_many else scores[..., 0])
        self._labels, self._weight = labels[:, None], evidence.weight
        every = torch.ones_like(labels, dtype=torch.bool)
        if scheme == "pairs":
            pairs = list(combinations(range(num_classes), 2))
            nets = [((labels == low) | (labels == high), high) for low, high in pairs]
            self._sides = torch.eye(num_classes, dtype=torch.float64)[torch.tensor(pairs).T]
        elif self._joint:
            nets = [(every, number) for number in range(num_classes)]
        else:
            nets = [(every, 1)]
        self._parts: list[Part] = []
        for net, (mine, high) in enumerate(nets):
            weight, positive = evidence.weight[mine], labels[mine] == high
            ones = float(weight[positive].sum())
            zeros = float(weight.sum()) - ones
            target = torch.where(positive, (ones + 1) / (ones + 2), 1 / (zeros + 2)).double()
            self._parts.append((self._z[mine, net], target, weight))
        z, target, weight = (torch.cat(column) for column in zip(*self._parts, strict=True))
        self._all = (z, target, weight)
        self._smoothing = 1 / (float(evidence.weight.sum()) + 2)

    def curve(self, slope: float | None = None) -> _Curve:
        """The maximum-likelihood curve; with `slope`, among curves of that slope."""
        if slope is None and not self._held_out:
            flat = (0.0,) * self._nets
            curves = [_Curve(one, flat, "training rows") for one in SLOPES]
            return min(curves, key=self.loss)
        if slope is None:
            slope, shift = _platt(*self._all)
            if slope < LEAST_SLOPE:
                parts = self._parts if len(self._parts) == self._nets else [self._all]
                shifts = tuple(_shift(LEAST_SLOPE, *part) for part in parts)
                return _Curve(LEAST_SLOPE, shifts, "base rate")
            rises = range(-3, 4)
        else:
            shift = _shift(slope, *self._all)
            rises = range(1)
        if self._joint:
            for factor, step in SEARCH:  # from coarse to fine, about the best so far
                near = [(slope * factor**i, shift + step * j) for i in rises for j in range(-3, 4)]
                slope, shift = min(near, key=lambda one: self._joint_loss(*one))
        return _Curve(slope, (shift,) * self._nets, "held-out rows")

    def loss(self, curve: _Curve) -> float:
        """−log-likelihood of the labels."""
        if self._joint and curve.source != "base rate":
            return self._joint_loss(curve.slope, curve.shifts[0])
        shifts = curve.shifts if len(self._parts) == self._nets else curve.shifts * len(self._parts)
        return sum(
            float(cross_entropy(curve.slope * z + shift, target, weight, reduction="sum"))
            for (z, target, weight), shift in zip(self._parts, shifts, strict=True)
        )

    def _joint_loss(self, slope: float, shift: float) -> float:
        probability = torch.sigmoid(slope * self._z + shift)
        if self._pairs:
            sides = torch.stack([1 - probability, probability]).clamp(min=LEAST / ONE)
            cost = torch.einsum("srn,snc->rc", 1 / sides, self._sides)
            probability = 1 / (cost + 2 - cost.shape[1])
        log = (probability / probability.sum(1, keepdim=True)).clamp(min=SMALLEST).log()
        own = log.gather(1, self._labels)[:, 0]
        others = (log.sum(1) - own) / max(1, log.shape[1] - 1)
        smoothed = (1 - self._smoothing) * own + self._smoothing * others
        return -float((self._weight * smoothed).sum())


def logistic_table(slope: float) -> Tensor:
    """Probabilities σ(slope·x) by the level of x, from −1 to 1: (LEVELS + 1,) int64."""
    return _table(slope * MIDDLES)


def soft_table(score: Tensor, probability: Tensor, weight: Tensor) -> Tensor:
    """The table (LEVELS + 1,) whose probabilities are closest to these.

    score (rows, O) in [−1, 1], probability (rows, O) in parts of ONE, weight (rows,) of sum one.
    """
    each = weight[:, None].expand(score.shape).reshape(-1) * len(score)
    slope, shift = _platt(_logit(score.reshape(-1)), probability.reshape(-1).double() / ONE, each)
    return _table(max(0.0, slope) * _logit(MIDDLES.clamp(max=1.0)) + shift)


def rising(table: Tensor) -> Tensor:
    """The same table (LEVELS + 1,), but strictly increasing: neighbours move by a few."""
    place = torch.arange(LEVELS + 1)
    up = (table - place).cummax(0).values + place
    return torch.minimum(up, ONE - 1 - LEVELS + place)


def _table(logits: Tensor) -> Tensor:
    """Probabilities in parts of ONE, int64, never 0 or ONE."""
    return torch.round(ONE * torch.sigmoid(logits)).to(torch.int64).clamp(1, ONE - 1)


def _logit(score: Tensor) -> Tensor:
    """The logit of a score in [−1, 1] as a share, kept off 0 and 1."""
    return torch.logit(0.5 + score * (0.5 - EDGE))


def _shift(slope: float, z: Tensor, target: Tensor, weight: Tensor) -> float:
    """The shift at which the mean probability is the mean target, by bisection."""
    low, high = -LARGEST_SHIFT, LARGEST_SHIFT
    wanted = (weight * target).sum()
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if (weight * torch.sigmoid(slope * z + middle)).sum() < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _platt(z: Tensor, target: Tensor, weight: Tensor) -> tuple[float, float]:
    """Slope and shift by Newton's method, with a weak ridge.

    A step that does not lower the loss is halved: without that, scores at both ends of the scale
    make full steps diverge.
    """
    columns = torch.stack([z, torch.ones_like(z)], 1)
    ridge = RIDGE * torch.eye(2, dtype=torch.float64)

    def loss(at: Tensor) -> Tensor:
        fit = cross_entropy(columns @ at, target, weight, reduction="sum")
        return fit + RIDGE / 2 * at.square().sum()

    found = torch.tensor([1.0, 0.0], dtype=torch.float64)
    now = loss(found)
    for _ in range(NEWTON_STEPS):
        probability = torch.sigmoid(columns @ found)
        gradient = columns.T @ (weight * (probability - target)) + RIDGE * found
        curvature = weight * probability * (1 - probability)
        hessian = (columns * curvature[:, None]).T @ columns + ridge
        step = torch.linalg.solve(hessian, gradient)
        for _ in range(HALVINGS):
            after = loss(found - step)
            if after <= now:
                break
            step = step / 2
        else:
            break
        found, now, gained = found - step, after, now - after
        if gained <= CONVERGED * now:
            break
    return float(found[0]), float(found[1])
