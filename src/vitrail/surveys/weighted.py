"""Variable→factor surveys by weighted draws: Algorithm 3 of the paper."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.random import Key
from vitrail.surveys.histogram import Grid, draw
from vitrail.surveys.variable import Address, Tracks, VariableUpdate, survey_lanes


@dataclass(frozen=True)
class Weighted(VariableUpdate):
    """Algorithm 3 of the paper: weighted draws, for variables of few factors.

    Draw every p_J, A1 = Σ log p_J, A0 = Σ log(1−p_J); mass exp(logaddexp(A1, A0)).

    The factors of a variable share the draws, without their own one. The effective sample size
    falls with the degree: at hundreds of factors a single draw has all the mass.

    Examples:
        >>> from vitrail.solvers import s4p
        >>> from vitrail.updates import flip
        >>> solver = s4p(flip(), variable=weighted())
    """

    def contribution(
        self, key: Key, step: Tensor, ids: Tensor, mass: Tensor, grid: Grid, survey_samples: int
    ) -> Tensor:
        lanes = survey_lanes(key, step, ids, mass.shape[1], survey_samples)
        bins = draw(mass, lanes).permute(2, 0, 1)
        tables = grid.tables(mass.device)
        rows = [tables.log[0], tables.log[1]]
        if grid.hard_ends:
            rows += [tables.zero[0], tables.zero[1]]
        return torch.stack([row[bins] for row in rows])

    def tracks(
        self, address: Address, totals: Tensor, means: Tensor, prior: Tensor, grid: Grid
    ) -> Tracks:
        one, zero = prior + totals[0], totals[1]
        if grid.hard_ends:
            one = torch.where(totals[2] > 0, -torch.inf, one)
            zero = torch.where(totals[3] > 0, -torch.inf, zero)
        log_weight = torch.logaddexp(one, zero)
        log_odds = torch.where(torch.isneginf(log_weight), 0.0, one - zero)
        return Tracks(log_odds, log_weight)


weighted = Weighted
