"""From scores to chances: the table of a model, fitted to rows that the networks have not seen.

A table is a logistic curve over the levels of `voting`, rounded to whole numbers: its slope, and
how far margins count (`clip`), are those under which the labels are likeliest. It is symmetric,
so the answer is the one that the votes give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

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
LONGEST_STEP = 5.0
PULL = 1e-3
LEAST = 1e-9  # chance that a loss looks at


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


def platt_table(evidence: Evidence, clip: int, num_classes: int, scheme: Scheme) -> Tensor:
    """A table for each net, (N, LEVELS + 1) int64: σ(a·z + b), z the logit of the score's share.

    a and b are those under which the labels are likeliest; labels are held a little off 0 and 1,
    as of Platt, so that rows without a fault prove nothing. All nets have one curve: of few rows a
    class, curves of their own said more about the rows than about the nets.
    """
    logits, wanted, weights = [], [], []
    nets = 0
    for score, labels, weight in _parts(evidence, evidence.scores(clip), num_classes, scheme):
        ones = float(weight[labels == 1].sum())
        zeros = float(weight.sum()) - ones
        logits.append(_logit(score[:, 0]))
        wanted.append(torch.where(labels == 1, (ones + 1) / (ones + 2), 1 / (zeros + 2)).double())
        weights.append(weight)
        nets += 1
    curve = _curve(*_platt(torch.cat(logits), torch.cat(wanted), torch.cat(weights)))
    return curve.expand(nets, -1).clone()


def soft_table(score: Tensor, chance: Tensor, weight: Tensor) -> Tensor:
    """The table (LEVELS + 1,) under which scores give nearly these chances.

    score (rows, O) in [−1, 1], chance (rows, O) in parts of ONE, weight (rows,) adding up to one.
    """
    each = weight[:, None].expand(score.shape).reshape(-1) * len(score)
    return _curve(*_platt(_logit(score.reshape(-1)), chance.reshape(-1).double() / ONE, each))


def _curve(slope: float, shift: float) -> Tensor:
    """σ(slope·z + shift) at the middle of each level, off 0 and ONE: (LEVELS + 1,) int64."""
    half = LEVELS // 2
    x = (torch.arange(LEVELS + 1, dtype=torch.float64) + 0.5 - half) / half
    chance = torch.sigmoid(slope * _logit(x.clamp(max=1.0)) + shift)
    return torch.round(ONE * chance).to(torch.int64).clamp(1, ONE - 1)


def _logit(score: Tensor) -> Tensor:
    """The logit of a score in [−1, 1] as a share, kept off 0 and 1."""
    return torch.logit(0.5 + score * (0.5 - EDGE))


def _platt(z: Tensor, wanted: Tensor, weight: Tensor) -> tuple[float, float]:
    """Slope ≥ 0 and shift by Newton's steps to chances (rows,), with a weak pull to nothing."""
    columns = torch.stack([z, torch.ones_like(z)], 1)
    found = torch.tensor([1.0, 0.0], dtype=torch.float64)
    for _ in range(NEWTON_STEPS):
        chance = torch.sigmoid(columns @ found)
        slope = columns.T @ (weight * (chance - wanted)) + PULL * found
        curve = (columns * (weight * chance * (1 - chance))[:, None]).T @ columns
        step = torch.linalg.solve(curve + PULL * torch.eye(2, dtype=torch.float64), slope)
        found = found - step * min(1.0, LONGEST_STEP / max(float(step.abs().max()), 1e-12))
    return max(0.0, float(found[0])), float(found[1])


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
        for slope in SLOPES:
            loss = sum(_loss(slope * x, labels, weight) for x, labels, weight in parts)
            if loss < best[0]:
                best = (loss, clip, slope)
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


def _loss(logits: Tensor, labels: Tensor, weight: Tensor) -> float:
    if logits.shape[1] == 1:
        sign = 2.0 * labels.to(torch.float64) - 1
        each = F.softplus(-sign * logits[:, 0])
    else:
        chance = torch.sigmoid(logits)
        own = chance.gather(1, labels[:, None])[:, 0] / chance.sum(1)
        each = -own.clamp(min=LEAST).log()
    return float((weight * each).sum())
