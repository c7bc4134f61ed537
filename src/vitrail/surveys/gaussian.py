"""Variable→factor surveys for variables of many factors: the sum of log-odds is Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vitrail.random import Key, Stream, normal_quantiles
from vitrail.surveys.histogram import MASS_ONE, Grid, on_survey_lattice
from vitrail.surveys.variable import Address, Tracks, VariableUpdate, choose_product

WEIGHT_BITS = 24  # of weights in moments; sums of their products with log-odds fit int64
ODDS_ONE = 2**16  # log-odds in moments are multiples of its inverse


@dataclass(frozen=True)
class MomentUnits:
    """Integers from which moments are computed, so that sums are the same in any order."""

    tilt: Tensor  # (2, B) int64
    finite: Tensor  # (2, B) int64: 0 where the bin is certain in the product
    log_odds: Tensor  # (B,) int64, in units of 1/ODDS_ONE
    shift: int  # lower bits of weights that are dropped


def moment_units(grid: Grid, device: torch.device) -> MomentUnits:
    """The units of a grid."""
    tables = grid.tables(device)
    return MomentUnits(
        tables.tilt,
        (tables.zero.flip(0) == 0).to(torch.int64),
        torch.round(tables.log_odds * ODDS_ONE).to(torch.int64),
        max(0, grid.tilt_unit.bit_length() + MASS_ONE.bit_length() - 1 - WEIGHT_BITS),
    )


@dataclass(frozen=True)
class Gaussian(VariableUpdate):
    """Gaussian sums; for variables of hundreds of factors and more.

    In each product the sum of the tilted log-odds has mean Σ mean_J and variance Σ var_J.

    A contribution is four sums per variable instead of R draws: mean and variance under S_J·p and
    under S_J·(1−p). With hard ends two more per product: a survey's share of certainty q_J enters
    by log(1 − q_J), and the sum is certain with probability 1 − Π(1 − q_J).

    Examples:
        >>> from vitrail.solvers import s4p
        >>> from vitrail.updates import flip
        >>> solver = s4p(flip(), variable=gaussian())
    """

    sums_only: ClassVar[bool] = True
    numbers: ClassVar[int] = 2

    def contribution(
        self, key: Key, step: Tensor, ids: Tensor, mass: Tensor, grid: Grid, survey_samples: int
    ) -> Tensor:
        units = moment_units(grid, mass.device)
        sums = []
        for value in (0, 1):
            weight = (mass * units.tilt[value]) >> units.shift
            finite = weight * units.finite[value]
            odds = finite * units.log_odds
            sums += [weight.sum(-1), finite.sum(-1), odds.sum(-1), (odds * units.log_odds).sum(-1)]
        return self.from_sums(torch.stack(sums), grid)

    def from_sums(self, sums: Tensor, grid: Grid) -> Tensor:
        """The contribution (C, 1, F, A) from integer sums (8, F, A), four per product:

        of weights, of uncertain weights, of these times the log-odds, and times its square.
        """
        parts = sums.view(2, 4, *sums.shape[1:]).to(torch.float64)
        weight, total, first, second = parts.unbind(1)
        some = total.clamp(min=1)
        mean, square = first / some / ODDS_ONE, second / some / ODDS_ONE**2
        rows = [mean, (square - mean.square()).clamp(min=0)]
        if grid.hard_ends:
            empty = total == 0
            share = torch.log(some / weight.clamp(min=1))
            rows += [torch.where(empty, 0.0, share), empty.to(torch.float64)]
        return on_survey_lattice(torch.stack(rows, dim=1)).flatten(0, 1)[:, None]

    def tracks(
        self, address: Address, totals: Tensor, means: Tensor, prior: Tensor, grid: Grid
    ) -> Tracks:
        branch = choose_product(address, means, prior)
        one, zero = totals.chunk(2)
        mean, variance = torch.where(branch, one[0], zero[0]), torch.where(branch, one[1], zero[1])
        # one lane gives the normal draw, another whether the sum is certain
        noise = normal_quantiles(prior.device)[address.lanes(Stream.CAVITY) >> 16]
        log_odds = prior + mean + noise * variance.clamp(min=0).sqrt()
        if not grid.hard_ends:
            return Tracks(log_odds)
        finite = torch.where(branch, one[2], zero[2]).exp()
        finite = torch.where(torch.where(branch, one[3], zero[3]) > 0, 0.0, finite)
        certain = torch.where(branch, torch.inf, -torch.inf).to(log_odds.dtype)
        uniform = (address.lanes(Stream.SURVEY).to(torch.float64) + 0.5) / 2**32
        return Tracks(torch.where(uniform < finite, log_odds, certain))


gaussian = Gaussian
