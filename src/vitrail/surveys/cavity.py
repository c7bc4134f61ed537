"""From draws to the cavities that a factor update takes: equal weights, finite log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vitrail.random import Stream
from vitrail.surveys.histogram import MASS_ONE, Grid, draw, histogram, relative_masses
from vitrail.surveys.variable import Address, Tracks, mean_log_odds

Feed = Literal["draws", "histogram"]


@dataclass(frozen=True)
class Cavities:
    """R cavities of each edge and how many draws stand behind them."""

    log_odds: Tensor  # (R, F, A) float64, ±inf allowed
    effective: Tensor  # (F, A) float64: (Σ weight)²/Σ weight², 0 where no draw has mass


def cavities(
    address: Address, tracks: Tracks, means: Tensor, prior: Tensor, grid: Grid, feed: Feed
) -> Cavities:
    """Draws of equal weight from tracks (R, F, A).

    feed "histogram": bin them and draw from the histogram, as the paper has it. "draws": draws
    without weights are taken as they are, weighted ones are drawn again by weight. Where no draw
    has mass (each product holds a zero) the mean of the surveys stands in.
    """
    survey_samples = tracks.log_odds.shape[0]
    if tracks.log_weight is None:
        mass = torch.full(tracks.log_odds.shape, MASS_ONE, device=tracks.log_odds.device)
        effective = torch.full_like(tracks.log_odds[0], survey_samples)
        if feed == "draws":
            return Cavities(tracks.log_odds, effective)
    else:
        mass = relative_masses(tracks.log_weight, dim=0)
        effective = effective_draws(mass)
    if feed == "histogram":
        drawn = drawn_values(address, histogram(grid, tracks.log_odds, mass), grid)
    else:
        again = draw(mass.movedim(0, -1).contiguous(), _lanes(address)).movedim(-1, 0)
        drawn = tracks.log_odds.gather(0, again)
    if tracks.log_weight is not None:
        drawn = torch.where(effective > 0, drawn, mean_log_odds(means, prior))
    return Cavities(drawn, effective)


def drawn_values(address: Address, counts: Tensor, grid: Grid) -> Tensor:
    """Log-odds (R, F, A) of bins drawn from integer histograms (F, A, B); ±inf at the ends."""
    bins = draw(counts, _lanes(address)).movedim(-1, 0)
    return torch.logit(grid.values(counts.device))[bins]


def effective_draws(mass: Tensor) -> Tensor:
    """(Σ m)²/Σ m² over the draws of masses (R, …) int64: (…) float64, 0 without mass."""
    share = mass.to(torch.float64)
    return share.sum(0).square() / share.square().sum(0).clamp(min=1.0)


def _lanes(address: Address) -> Tensor:
    return address.lanes(Stream.CAVITY).movedim(0, -1).contiguous()
