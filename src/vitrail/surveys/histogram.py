"""Surveys as histograms over p = P(1): the grid, binning, integer masses, draws.

A survey is (…, B) masses over p_k = k/(B−1), B odd, so that 0, ½ and 1 are grid points. Draws
depend on integers alone: masses are rounded to multiples of 2⁻²⁰, tilted by integers, summed in
int64 and compared with a 32-bit lane. So every backend draws the same bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor

from vitrail.numerics import SAMPLED_LIMIT

Split = Literal["round", "linear"]

MAX_BINS = 1025  # masses·tilts then stay below 2⁴⁰, which `scaled` multiplies exactly
MASS_ONE = 2**20  # the integer mass of a survey, up to rounding
SNAP = 1e-6  # p·(B−1) within this distance of a half is a tie
LATTICE = 2.0**26  # survey logs are multiples of 1/LATTICE: 10⁷ of them add up exactly in float64
SOFT_PARTS = 1000  # with soft ends the end bins are p = 0.001 and 0.999


@dataclass(frozen=True)
class Grid:
    """p_k = k/(B−1), the binning of values, and the meaning of the end bins.

    split: "round" takes the nearest point, half to even; "linear" divides a value between its two
    neighbours with the same mean.
    hard_ends: p = 0 and p = 1 are certainties, as in exact messages. Otherwise the end bins count
    as 0.001 and 0.999 in products, because draws that all miss prove nothing.
    """

    bins: int
    split: Split = "round"
    hard_ends: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.bins, int | Integral) or not 3 <= self.bins <= MAX_BINS:
            raise ValueError(
                f"bins must be an odd number from 3 to {MAX_BINS}, got {self.bins}; use 201"
            )
        if self.bins % 2 == 0:
            raise ValueError(
                f"bins must be odd so that 0, ½ and 1 are grid points, got {self.bins}; "
                f"use {self.bins + 1}"
            )
        if self.split not in ("round", "linear"):
            raise ValueError(f"unknown split {self.split!r}; choose 'round' or 'linear'")

    @property
    def tilt_unit(self) -> int:
        """tilt(1) + tilt(0) of every bin: the integer for probability one."""
        return (self.bins - 1) * (1 if self.hard_ends else SOFT_PARTS)

    def values(self, device: torch.device | str = "cpu") -> Tensor:
        """p_k, (B,) float64."""
        return torch.arange(self.bins, dtype=torch.float64, device=device) / (self.bins - 1)

    def tables(self, device: torch.device | str = "cpu") -> Tables:
        return _tables(self, str(device))


@dataclass(frozen=True)
class Tables:
    """The factors of bins in the two products."""

    tilt: Tensor  # (2, B) int64: tilt_unit·p_k and tilt_unit·(1 − p_k), row 0 for value one
    log: Tensor  # (2, B) float64 on the lattice: their logs, 0 where the tilt is 0
    zero: Tensor  # (2, B) float64: 1 where the tilt is 0
    log_odds: Tensor  # (B,) float64 on the lattice; 0 at hard ends, see `zero`


@lru_cache(maxsize=64)
def _tables(grid: Grid, device: str) -> Tables:
    points = torch.arange(grid.bins, device=device)
    if grid.hard_ends:
        one = points
    else:
        one = (points * SOFT_PARTS).clamp(grid.bins - 1, (SOFT_PARTS - 1) * (grid.bins - 1))
    tilt = torch.stack([one, one.flip(0)])
    zero = tilt == 0
    # in float64: float32 is coarser than the lattice, and its logarithm differs between machines
    log = on_survey_lattice(torch.log(tilt.clamp(min=1).double() / grid.tilt_unit))
    log = torch.where(zero, 0.0, log)
    log_odds = torch.where(zero.any(0), 0.0, log[0] - log[1])
    return Tables(tilt, log, zero.to(torch.float64), log_odds)


def on_survey_lattice(values: Tensor) -> Tensor:
    """Multiples of 2⁻²⁶, float64: sums are exact in any order."""
    return torch.round(values.to(torch.float64) * LATTICE) / LATTICE


# Integer masses and draws


def masses(survey: Tensor) -> Tensor:
    """A survey (…, B) float32 as integer masses (…, B) int64."""
    return torch.round(survey.to(torch.float64) * MASS_ONE).to(torch.int64)


def scaled(lane: Tensor, total: Tensor) -> Tensor:
    """⌊lane·total/2³²⌋ without overflow, int64, for lanes below 2³² and totals below 2⁴⁴."""
    high, low = total >> 16, total & 0xFFFF
    return (lane * high + ((lane * low) >> 16)) >> 16


def draw(weights: Tensor, lanes: Tensor) -> Tensor:
    """Bins with probability weights/Σ weights: the first whose cumulative sum exceeds the lane.

    weights (…, B) int64, lanes (…, R) int64 in [0, 2³²): (…, R) int64.
    """
    running = weights.cumsum(-1)
    position = scaled(lanes, running[..., -1:])
    found = torch.searchsorted(running, position.contiguous(), right=True)
    return found.clamp(max=weights.shape[-1] - 1)


# Binning


def positions(grid: Grid, log_odds: Tensor) -> Tensor:
    """p·(B−1) of log-odds (…), rounded to a half that is within 1e-6."""
    position = torch.sigmoid(log_odds) * (grid.bins - 1)
    half = torch.floor(position) + 0.5
    return torch.where((position - half).abs() < SNAP, half, position)


def relative_masses(log_mass: Tensor) -> Tensor:
    """exp(log_mass − largest along axis 0) in units of 2⁻²⁰, int64; 0 where all are −inf."""
    largest = log_mass.amax(0, keepdim=True)
    relative = torch.exp(log_mass - torch.where(torch.isneginf(largest), 0.0, largest))
    return torch.round(relative * MASS_ONE).to(torch.int64)


def histogram(grid: Grid, log_odds: Tensor, mass: Tensor) -> Tensor:
    """Histogram of log-odds (R, …) with masses (R, …) int64: (…, B) int64, exact in any order."""
    return _binned(grid, positions(grid, log_odds).movedim(0, -1), mass.movedim(0, -1))


def _binned(grid: Grid, position: Tensor, mass: Tensor) -> Tensor:
    """Histogram of positions (…, R) with masses (…, R), int64 or float64: (…, B)."""
    out = mass.new_zeros((*mass.shape[:-1], grid.bins))
    if grid.split == "round":
        return out.scatter_add_(-1, torch.round(position).to(torch.int64), mass)
    lower = torch.floor(position).clamp(max=grid.bins - 2)
    bins, share = lower.to(torch.int64), position - lower
    if mass.is_floating_point():
        above, below = mass * share, mass * (1 - share)
    else:
        above = torch.round(mass * share).to(torch.int64)
        below = mass - above
    return out.scatter_add_(-1, bins, below).scatter_add_(-1, bins + 1, above)


def normalised(counts: Tensor) -> Tensor:
    """Integer histogram (…, B) as a survey, float32; all zero without mass."""
    total = counts.sum(-1, keepdim=True)
    return (counts.to(torch.float64) / total.clamp(min=1)).to(torch.float32)


def point_mass(grid: Grid, log_odds: Tensor) -> Tensor:
    """Surveys with all mass at log-odds (…), binned: (…, B) float32."""
    one = torch.full((1, *log_odds.shape), MASS_ONE, device=log_odds.device)
    return normalised(histogram(grid, log_odds[None].to(torch.float64), one))


# Between the probability grid and a log-odds grid


@dataclass(frozen=True)
class LogOddsGrid:
    """ℓ_g = (g − half)·step for g = 0…2·half, with an atom for p = 0 before and p = 1 after."""

    step: float
    half: int

    @property
    def points(self) -> int:
        return 2 * self.half + 1

    def values(self, device: torch.device | str = "cpu") -> Tensor:
        """ℓ_g, (2·half + 1,) float64."""
        index = torch.arange(self.points, dtype=torch.float64, device=device)
        return (index - self.half) * self.step


def log_odds_grid(grid: Grid) -> LogOddsGrid:
    """A grid with steps of at most 4/(B−1) up to the largest finite log-odds."""
    step = min(4 / (grid.bins - 1), 0.05)
    reach = math.log(grid.bins - 2) if grid.hard_ends else SAMPLED_LIMIT
    return LogOddsGrid(step, math.ceil(reach / step) + 1)


def to_log_odds(grid: Grid, survey: Tensor, wide: LogOddsGrid) -> Tensor:
    """Surveys (…, B) on a log-odds grid: (…, 1 + G + 1) float64, mass kept.

    A bin's mass is divided between the two neighbouring points with the same mean log-odds; with
    hard ends the end bins become the atoms.
    """
    tables = grid.tables(survey.device)
    place = (tables.log_odds / wide.step + wide.half).clamp(0, wide.points - 1)
    lower = torch.floor(place).clamp(max=wide.points - 2)
    share = place - lower
    bins = torch.arange(grid.bins, device=survey.device)
    move = survey.new_zeros(grid.bins, wide.points + 2, dtype=torch.float64)
    first = lower.to(torch.int64) + 1
    move[bins, first] = 1 - share
    move[bins, first + 1] = share
    if grid.hard_ends:
        move[0], move[-1] = 0.0, 0.0
        move[0, 0], move[-1, -1] = 1.0, 1.0
    return survey.to(torch.float64) @ move


def to_probability(grid: Grid, mass: Tensor, log_odds: Tensor) -> Tensor:
    """Mass (…, L + 2) at p = 0, at log-odds (…, L), at p = 1: on the grid, (…, B) float64."""
    finite = mass[..., 1:-1]
    out = _binned(grid, positions(grid, log_odds).expand_as(finite), finite)
    out[..., 0] += mass[..., 0]
    out[..., -1] += mass[..., -1]
    return out
