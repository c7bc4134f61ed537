"""Variable→factor surveys by exact draws without weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.random import Key
from vitrail.surveys.histogram import Grid, draw
from vitrail.surveys.variable import Address, Tracks, VariableUpdate, choose_product, survey_lanes


@dataclass(frozen=True)
class Tilted(VariableUpdate):
    """Exact draws without weights; for any degree.

    Choose a product with probability Z1/(Z1+Z0), then draw each p_J from S_J·p (or S_J·(1−p)).

    The same measure as `weighted`, with equal weights. One lane serves both products of an edge,
    because only one of the two draws is used. The factors of a variable share the draws, without
    their own one; the product is chosen separately for each factor.

    Examples:
        >>> from vitrail.solvers import s4p
        >>> from vitrail.updates import flip
        >>> solver = s4p(flip(), variable=tilted())
    """

    def contribution(
        self, key: Key, step: Tensor, ids: Tensor, mass: Tensor, grid: Grid, survey_samples: int
    ) -> Tensor:
        lanes = survey_lanes(key, step, ids, mass.shape[1], survey_samples)
        tables = grid.tables(mass.device)
        rows = []
        for value in (0, 1):
            bins = draw(mass * tables.tilt[value], lanes).permute(2, 0, 1)
            rows.append(tables.log_odds[bins])
            if grid.hard_ends:
                # in the product over p, p = 1 is certain: there 1 − p is zero
                rows.append(tables.zero[1 - value][bins])
        return torch.stack(rows)

    def tracks(
        self, address: Address, totals: Tensor, means: Tensor, prior: Tensor, grid: Grid
    ) -> Tracks:
        branch = choose_product(address, means, prior)
        if not grid.hard_ends:
            return Tracks(prior + torch.where(branch, totals[0], totals[1]))
        finite = prior + torch.where(branch, totals[0], totals[2])
        certain = torch.where(branch, totals[1], totals[3]) > 0
        limit = torch.where(branch, torch.inf, -torch.inf).to(finite.dtype)
        return Tracks(torch.where(certain, limit, finite))


tilted = Tilted
