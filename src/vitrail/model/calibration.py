"""From scores to chances: the table of a model, fitted to rows that the networks have not seen.

A table is a logistic curve over the levels of `voting`, rounded to whole numbers: its slope, and
how far margins count (`clip`), are those under which the labels are likeliest. It is symmetric,
so the answer is the one that the votes give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from vitrail.model.voting import (
    LEVELS,
    ONE,
    Scheme,
    chances,
    class_chances,
    class_scores,
    members,
)

CLIPS = tuple(2**k - 1 for k in range(1, 11))
SLOPES = tuple(2.0 ** (k / 4) for k in range(-8, 29))
EDGE = 0.02  # share of votes that unanimity stays off certainty
NEWTON_STEPS = 50
HALVINGS = 30
PULL = 1e-3
LEAST = 1e-9  # chance that a loss looks at
STEEPER = 3.0  # at most, where a curve is made for more networks than it was fitted to
STEPS = ((2.0, 1.0), (1.25, 0.25), (1.06, 0.06))  # of slopes, times, and of shifts

Source = Literal["held-out rows", "base rate"]  # what a calibration curve comes from


@dataclass(frozen=True)
class Evidence:
    """What networks say on rows, and what is true.

    counts: how much each network counts on each row and net; None for all alike. Rows that the
    networks were trained on are judged fairly by counting those more that got them wrong.
    """

    leads: Tensor  # (rows, K, N, O) int64, of `voting.leads`
    labels: Tensor  # (rows,) int64, class numbers
    weight: Tensor  # (rows,) float64
    counts: Tensor | None = None  # (rows, K, N) float64

    def scores(self, clip: int) -> Tensor:
        """Scores as shares of the largest, (rows, N, O) float64 in [−1, 1]."""
        margin = members(self.leads, clip).to(torch.float64) / clip
        if self.counts is None:
            return margin.mean(1)
        share = self.counts / self.counts.sum(1, keepdim=True)
        return (margin * share[..., None]).sum(1)

    def chances(self, clip: int, table: Tensor, num_classes: int, scheme: Scheme) -> Tensor:
        """The chance of every class on each row, in parts of 65535, (rows, C) int64."""
        level = ((self.scores(clip) + 1) * (LEVELS // 2)).floor().to(torch.int64)
        score = class_scores(chances(level.clamp(0, LEVELS), table), num_classes, scheme)
        return class_chances(score)


def logistic_table(slope: float) -> Tensor:
    """The chances of σ(slope·x) at the middle of each level, x from −1 to 1: (LEVELS + 1,) int64.

    They stay off 0 and ONE: no score is proof.
    """
    half = LEVELS // 2
    x = (torch.arange(LEVELS + 1, dtype=torch.float64) + 0.5 - half) / half
    return torch.round(ONE * torch.sigmoid(slope * x)).to(torch.int64).clamp(1, ONE - 1)


def platt_table(
    evidence: Evidence, clip: int, num_classes: int, scheme: Scheme, count: int | None = None
) -> tuple[Tensor, Source]:
    """A table for each net, (N, LEVELS + 1) int64: σ(a·z + b), z the logit of the score's share.

    a and b maximise the likelihood of the labels; with several classes, of the probabilities that
    all nets together give. Labels are moved a little away from 0 and 1, as Platt does, so that
    a sample without errors is no proof. All nets share one curve: with few rows per class, separate
    curves follow the rows more than the nets.

    A curve that would fall is not used: every answer is then the base rate.

    count: how many networks will answer, where those of the evidence are fewer. A mean of few
    networks is noisy, which makes a curve flatter by 1/networks: half of them tell how much.
    """
    slope, shift, source = _likeliest(evidence, clip, num_classes, scheme)
    known = evidence.leads.shape[1]
    if count is not None and count > known > 1 and slope > 0:
        half = known // 2
        parts = (evidence.leads[:, :half], evidence.leads[:, half:])
        each = [
            _likeliest(replace(evidence, leads=part), clip, num_classes, scheme) for part in parts
        ]
        flat = sum(one[0] for one in each) / 2, sum(one[1] for one in each) / 2
        if flat[0] > 0:
            further = 1 - known / count
            width = 1 / slope + (1 / slope - 1 / flat[0]) * further
            place = shift / slope + (shift / slope - flat[1] / flat[0]) * further
            width = max(width, 1 / (STEEPER * slope))
            slope, shift = 1 / width, place / width
    nets = evidence.leads.shape[2]
    return _curve(slope, shift).expand(nets, -1).clone(), source


def _likeliest(
    evidence: Evidence, clip: int, num_classes: int, scheme: Scheme
) -> tuple[float, float, Source]:
    """Slope and shift of the one curve, and what they come from."""
    logits, wanted, weights = [], [], []
    scores = evidence.scores(clip)
    for score, labels, weight in _parts(evidence, scores, num_classes, scheme):
        ones = float(weight[labels == 1].sum())
        zeros = float(weight.sum()) - ones
        logits.append(_logit(score[:, 0]))
        wanted.append(torch.where(labels == 1, (ones + 1) / (ones + 2), 1 / (zeros + 2)).double())
        weights.append(weight)
    *found, source = _rising(torch.cat(logits), torch.cat(wanted), torch.cat(weights))
    if scheme != "one-vs-rest" or source != "held-out rows":
        return found[0], found[1], source
    off = 1 / (float(evidence.weight.sum()) + 2)
    z, labels, weight = _logit(scores[..., 0]), evidence.labels[:, None], evidence.weight

    def loss(slope: float, shift: float) -> float:
        chance = torch.sigmoid(slope * z + shift)
        log = (chance / chance.sum(1, keepdim=True)).clamp(min=LEAST).log()
        own = log.gather(1, labels)[:, 0]
        others = (log.sum(1) - own) / (num_classes - 1)
        return -float((weight * ((1 - off) * own + off * others)).sum())

    for rise, step in STEPS:  # from coarse to fine, about the best so far
        near = [
            (found[0] * rise**i, found[1] + step * j) for i in range(-3, 4) for j in range(-3, 4)
        ]
        found = min(near, key=lambda one: loss(*one))
    return found[0], found[1], source


def soft_table(score: Tensor, chance: Tensor, weight: Tensor) -> Tensor:
    """The table (LEVELS + 1,) under which scores give nearly these chances.

    score (rows, O) in [−1, 1], chance (rows, O) in parts of ONE, weight (rows,) adding up to one.
    """
    each = weight[:, None].expand(score.shape).reshape(-1) * len(score)
    slope, shift = _platt(_logit(score.reshape(-1)), chance.reshape(-1).double() / ONE, each)
    return _curve(max(0.0, slope), shift)


def rising(table: Tensor) -> Tensor:
    """The same table (LEVELS + 1,), but no two levels have one chance: neighbours move by a few."""
    place = torch.arange(LEVELS + 1)
    up = (table - place).cummax(0).values + place
    return torch.minimum(up, ONE - 1 - LEVELS + place)


def _curve(slope: float, shift: float) -> Tensor:
    """σ(slope·z + shift) at the middle of each level, off 0 and ONE: (LEVELS + 1,) int64."""
    half = LEVELS // 2
    x = (torch.arange(LEVELS + 1, dtype=torch.float64) + 0.5 - half) / half
    chance = torch.sigmoid(slope * _logit(x.clamp(max=1.0)) + shift)
    return torch.round(ONE * chance).to(torch.int64).clamp(1, ONE - 1)


def _logit(score: Tensor) -> Tensor:
    """The logit of a score in [−1, 1] as a share, kept off 0 and 1."""
    return torch.logit(0.5 + score * (0.5 - EDGE))


def _rising(z: Tensor, wanted: Tensor, weight: Tensor) -> tuple[float, float, Source]:
    """Slope ≥ 0 and shift, and where they come from."""
    slope, shift = _platt(z, wanted, weight)
    if slope > 0:
        return slope, shift, "held-out rows"
    return 0.0, float(torch.logit((weight * wanted).sum() / weight.sum())), "base rate"


def _platt(z: Tensor, wanted: Tensor, weight: Tensor) -> tuple[float, float]:
    """Slope and shift by Newton's method, probabilities wanted (rows,), with a weak ridge.

    A step that does not lower the loss is halved: without that, scores at both ends of the scale
    make full steps diverge.
    """
    columns = torch.stack([z, torch.ones_like(z)], 1)

    def loss(at: Tensor) -> Tensor:
        each = F.binary_cross_entropy_with_logits(columns @ at, wanted, reduction="none")
        return (weight * each).sum() + PULL / 2 * at.square().sum()

    found = torch.tensor([1.0, 0.0], dtype=torch.float64)
    now = loss(found)
    for _ in range(NEWTON_STEPS):
        chance = torch.sigmoid(columns @ found)
        slope = columns.T @ (weight * (chance - wanted)) + PULL * found
        curve = (columns * (weight * chance * (1 - chance))[:, None]).T @ columns
        step = torch.linalg.solve(curve + PULL * torch.eye(2, dtype=torch.float64), slope)
        for _ in range(HALVINGS):
            after = loss(found - step)
            if after <= now:
                break
            step = step / 2
        else:
            break
        found, now = found - step, after
    return float(found[0]), float(found[1])


def linear_table() -> Tensor:
    """Chances that are the share of the score, (LEVELS + 1,) int64."""
    x = (torch.arange(LEVELS + 1, dtype=torch.float64) + 0.5) / (LEVELS + 1)
    return torch.round(ONE * x).to(torch.int64)


def fitted(evidence: Evidence, num_classes: int, scheme: Scheme) -> tuple[int, float]:
    """The clip and the slope under which the labels are likeliest; of pairs, each on its rows."""
    best = (float("inf"), 1, 1.0)
    largest = int((2 * evidence.leads - 1).abs().max()) if evidence.leads.numel() else 1
    for clip in CLIPS:
        parts = list(_parts(evidence, evidence.scores(clip), num_classes, scheme))
        losses = np.sum([_losses(x, labels, weight) for x, labels, weight in parts], axis=0)
        least = int(losses.argmin())
        if losses[least] < best[0]:
            best = (float(losses[least]), clip, SLOPES[least])
        if clip >= largest:
            break
    return best[1], best[2]


def _parts(
    evidence: Evidence, scores: Tensor, num_classes: int, scheme: Scheme
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Of each net: scores (rows, O), labels and weights of the rows it is asked about."""
    labels = evidence.labels
    if scheme == "argmax":
        yield scores[:, 0], labels, evidence.weight
        return
    if scheme == "one-vs-rest":
        for net in range(num_classes):
            yield scores[:, net], (labels == net).to(torch.int64), evidence.weight
        return
    for net, (low, high) in enumerate(combinations(range(num_classes), 2)):
        mine = (labels == low) | (labels == high)
        yield scores[mine, net], (labels[mine] == high).to(torch.int64), evidence.weight[mine]


def _losses(scores: Tensor, labels: Tensor, weight: Tensor) -> np.ndarray:
    """−log of the chance of the labels under each of SLOPES, (S,) float64; scores (rows, O)."""
    logits = torch.tensor(SLOPES, dtype=torch.float64)[:, None, None] * scores
    if scores.shape[1] == 1:
        sign = 2.0 * labels.to(torch.float64) - 1
        each = F.softplus(-sign * logits[..., 0])
    else:
        chance = torch.sigmoid(logits)
        own = chance.gather(2, labels[None, :, None].expand(len(SLOPES), -1, 1))[..., 0]
        each = -(own / chance.sum(2)).clamp(min=LEAST).log()
    return (weight * each).sum(1).numpy()
