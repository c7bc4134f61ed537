"""Variable→factor surveys of variables of many factors: the log-odds sum is Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vitrail.random import Key, Stream, box_muller
from vitrail.surveys.histogram import Grid, on_survey_lattice
from vitrail.surveys.variable import Address, Tracks, VariableUpdate, branch_of


@dataclass(frozen=True)
class Gaussian(VariableUpdate):
    """In each product the sum of the tilted log-odds has mean Σ mean_J and variance Σ var_J.

    A contribution is four sums a variable instead of R draws: mean and variance under S_J·p and
    under S_J·(1−p). With hard ends two more a product: a survey's share of certainty q_J enters
    by log(1 − q_J), and the sum is certain with probability 1 − Π(1 − q_J).
    """

    sums_only: ClassVar[bool] = True

    def channels(self, grid: Grid) -> int:
        return 8 if grid.hard_ends else 4

    def contribution(
        self, key: Key, step: Tensor, ids: Tensor, mass: Tensor, grid: Grid, survey_samples: int
    ) -> Tensor:
        tables = grid.tables(mass.device)
        rows = []
        for value in (0, 1):
            weight = (mass * tables.tilt[value]).to(torch.float64)
            finite = weight * (1 - tables.zero[1 - value])
            total = finite.sum(-1)
            empty = total == 0
            mean = (finite @ tables.log_odds) / total.clamp(min=1)
            square = (finite @ tables.log_odds.square()) / total.clamp(min=1)
            rows += [mean, (square - mean.square()).clamp(min=0)]
            if grid.hard_ends:
                share = torch.log(total.clamp(min=1) / weight.sum(-1).clamp(min=1))
                rows += [torch.where(empty, 0.0, share), empty.to(torch.float64)]
        return on_survey_lattice(torch.stack(rows))[:, None]

    def tracks(
        self, address: Address, totals: Tensor, means: Tensor, prior: Tensor, grid: Grid
    ) -> Tracks:
        branch = branch_of(address, means, prior)
        one, zero = totals.chunk(2)
        mean, variance = torch.where(branch, one[0], zero[0]), torch.where(branch, one[1], zero[1])
        # two lanes make a normal draw, a third says whether the sum is certain
        noise = box_muller(address.lanes(Stream.CAVITY, per_slot=2))
        log_odds = prior + mean + noise * variance.clamp(min=0).sqrt()
        if not grid.hard_ends:
            return Tracks(log_odds)
        finite = torch.where(branch, one[2], zero[2]).exp()
        finite = torch.where(torch.where(branch, one[3], zero[3]) > 0, 0.0, finite)
        sure = torch.where(branch, torch.inf, -torch.inf).to(log_odds.dtype)
        uniform = (address.lanes(Stream.SURVEY).to(torch.float64) + 0.5) / 2**32
        return Tracks(torch.where(uniform < finite, log_odds, sure))


def gaussian() -> Gaussian:
    """Gaussian sums; for variables of hundreds of factors and more."""
    return Gaussian()
