"""Factor→variable surveys: Algorithm 2 of the paper, on top of any update that takes cavities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vitrail.surveys.histogram import Grid, histogram, normalised, positions, relative_masses
from vitrail.updates import Estimate, Update


def without_smoothing(update: Update) -> Update:
    """The update for use inside surveys."""
    if getattr(update, "smoothing", 0.0):
        return replace(update, smoothing=0.0)  # pyright: ignore[reportCallIssue] (not all have it)
    return update


def factor_histogram(grid: Grid, estimate: Estimate) -> Tensor:
    """Mass p̃(1) + p̃(0) in the bin of p̃(1)/(p̃(1) + p̃(0)), over the tracks.

    Integer masses (F, A, B), relative to the largest of an edge's R draws; all zero for an edge
    whose draws all have p̃(1) = p̃(0) = 0. They depend on the two logs alone, which for sampled
    updates are functions of the integer hits: `pair_tables` has the same function as tables.
    """
    one, zero = estimate.log_one.movedim(1, 0), estimate.log_zero.movedim(1, 0)
    log_mass = torch.logaddexp(one, zero)
    log_odds = torch.where(torch.isneginf(log_mass), 0.0, one - zero)
    return histogram(grid, log_odds, relative_masses(log_mass))


@dataclass(frozen=True)
class PairTables:
    """Bins and masses of tracks with hits (h_1, h_0) of S draws, by pair number h_1·(S+1) + h_0."""

    bins: Tensor  # (n,) int64
    rank: Tensor  # (n,) int64: rank in the order of log masses, shared by equal ones
    mass: Tensor  # (n, n) int64: [k, p] is that of pair p where the largest has rank k


def pair_tables(logs: Tensor, grid: Grid) -> PairTables:
    """`factor_histogram` of sampled scores as tables, from log p̃ of each number of hits (S+1,)."""
    one, zero = (part.flatten() for part in torch.meshgrid(logs, logs, indexing="ij"))
    log_mass = torch.logaddexp(one, zero)
    log_odds = torch.where(torch.isneginf(log_mass), 0.0, one - zero)
    largest, rank = log_mass.unique(return_inverse=True)
    both = torch.stack([log_mass.expand(len(largest), -1), largest[:, None].expand(-1, len(rank))])
    relative = relative_masses(both)[0]
    return PairTables(torch.round(positions(grid, log_odds)).to(torch.int64), rank, relative)


def mixed(old: Tensor, counts: Tensor, gamma: Tensor) -> Tensor:
    """(1 − γ)·old + γ·new, float32 (F, A, B); an edge without new mass keeps its old survey.

    old (F, A, B) float32, counts (F, A, B) int64, γ = 1 − damping (F, 1, 1).
    """
    gamma = gamma.to(torch.float32)
    starved = (counts.sum(-1, keepdim=True) == 0).expand_as(old)
    return torch.where(starved, old, (1 - gamma) * old + gamma * normalised(counts))
