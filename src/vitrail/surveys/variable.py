"""Variable→factor surveys: the protocol of their samplers.

The target is the measure Π_J S_J(p_J)·(Π_J p_J + Π_J (1 − p_J)) over the other factors J of a
variable, where the prior multiplies the two products. A factor adds its contribution to the totals
of its variables: numbers that depend only on its survey and on the address of its draws. So a
cavity is the totals minus the factor's own contribution, which is recomputed from its address: a
step in batches does not read the surveys of other factors. `cavities` converts the draws to the
input of a factor update: draws of equal weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from vitrail.numerics import EXACT_LIMIT
from vitrail.random import Key, Stream, lanes32
from vitrail.surveys.histogram import (
    MASS_ONE,
    Grid,
    draw,
    histogram,
    on_survey_lattice,
    relative_masses,
)

Feed = Literal["draws", "histogram"]


@dataclass(frozen=True)
class Address:
    """The address of a step's draws, whose lanes are (R, …, slots)."""

    key: Key
    factors: Tensor  # (1, F) int64 for cavities, () for beliefs
    samples: Tensor  # (R, 1) int64 for cavities, (R,) for beliefs
    slots: int  # A for cavities, V for beliefs
    of_beliefs: bool = False

    def lanes(self, stream: Stream) -> Tensor:
        """32-bit lanes (R, …, slots); beliefs have a separate stream."""
        if self.of_beliefs:
            # each purpose has its own block of samples within the decoding stream
            samples = self.samples + (1 + int(stream) * 2**24)
            key = self.key.of(Stream.DECODE)
        else:
            samples, key = self.samples, self.key.of(stream)
        return lanes32(key, self.factors, samples, self.slots)


def cavity_address(key: Key, ids: Tensor, survey_samples: int, arity: int) -> Address:
    """The address of draws for the cavities of factors (F,)."""
    samples = torch.arange(survey_samples, device=ids.device)
    return Address(key, ids[None, :], samples[:, None], arity)


def belief_address(key: Key, survey_samples: int, num_variables: int, like: Tensor) -> Address:
    """The address of draws for the beliefs of all variables."""
    zero = torch.zeros((), dtype=torch.int64, device=like.device)
    samples = torch.arange(survey_samples, device=like.device)
    return Address(key, zero, samples, num_variables, of_beliefs=True)


@dataclass(frozen=True)
class Tracks:
    """Draws of a cavity or a belief: log-odds (R, …), log weights (R, …) or None for equal ones."""

    log_odds: Tensor
    log_weight: Tensor | None = None


class VariableUpdate(ABC):
    """A sampler of variable→factor surveys, from sums of contributions."""

    sums_only: ClassVar[bool] = False  # contributions do not depend on draws, R is 1

    numbers: ClassVar[int] = 1  # per edge and product

    def channels(self, grid: Grid) -> int:
        """C, the numbers per edge in the totals; hard ends double them."""
        return self.numbers * (4 if grid.hard_ends else 2)

    @abstractmethod
    def contribution(
        self, key: Key, step: Tensor, ids: Tensor, mass: Tensor, grid: Grid, survey_samples: int
    ) -> Tensor:
        """Contributions of factors to the totals: (C, R, F, A) float64 on the lattice.

        mass (F, A, B) int64: the factors' surveys; step (F,) int64: the step of their draws.
        """

    @abstractmethod
    def tracks(
        self, address: Address, totals: Tensor, means: Tensor, prior: Tensor, grid: Grid
    ) -> Tracks:
        """Draws from totals (C, R, …), sums of `log_means` (4, …) and the prior (…), log-odds."""


def survey_lanes(key: Key, step: Tensor, ids: Tensor, arity: int, survey_samples: int) -> Tensor:
    """32-bit lanes for R bins of each edge, (F, A, R) int64.

    Draw r at slot a has sample number r and slot a, at the factor's step.
    """
    samples = torch.arange(survey_samples, device=ids.device)
    lanes = lanes32(
        key.of(Stream.SURVEY), ids[None, :], samples[:, None], arity, step=step[None, :]
    )
    return lanes.permute(1, 2, 0).contiguous()


def log_means(mass: Tensor, grid: Grid) -> Tensor:
    """log E[p], its zeros, log E[1 − p], its zeros: (4, F, A) float64 from masses (F, A, B).

    Where a mean is zero, its log is 0 and the zero is counted, so that sums are finite and exact.
    """
    tilt = grid.tables(mass.device).tilt
    return log_means_of(mass.sum(-1), torch.stack([(mass * row).sum(-1) for row in tilt]), grid)


def log_means_of(total: Tensor, sums: Tensor, grid: Grid) -> Tensor:
    """The same from the integer sums of masses (F, A) and of tilted masses (2, F, A)."""
    whole = total.to(torch.float64) * grid.tilt_unit
    logs = on_survey_lattice(torch.log(sums.clamp(min=1) / whole))
    zero = sums == 0
    logs = torch.where(zero, 0.0, logs)
    return torch.stack([logs[0], zero[0].to(logs.dtype), logs[1], zero[1].to(logs.dtype)])


def mean_log_odds(means: Tensor, prior: Tensor) -> Tensor:
    """log Z1/Z0 = prior + log ΠE[p] − log ΠE[1−p] from sums (4, …): (…) float64, ±inf allowed.

    Where both products are zero (a contradiction) each zero counts as exp(−30), as in BP.
    """
    log_one, zeros_one, log_zero, zeros_zero = means
    finite = prior + log_one - log_zero
    both = finite + EXACT_LIMIT * (zeros_zero - zeros_one)
    one_sided = torch.where(zeros_one > 0, -torch.inf, torch.where(zeros_zero > 0, torch.inf, 0.0))
    return torch.where((zeros_one > 0) & (zeros_zero > 0), both, finite + one_sided)


def choose_product(address: Address, means: Tensor, prior: Tensor) -> Tensor:
    """The product of each draw, True for that over p: (R, …) bool, P(True) = Z1/(Z1 + Z0)."""
    return address.lanes(Stream.BRANCH) < branch_threshold(means, prior)


def branch_threshold(means: Tensor, prior: Tensor) -> Tensor:
    """2³²·Z1/(Z1 + Z0), int64: a 32-bit lane below it belongs to the product over p."""
    return torch.round(torch.sigmoid(mean_log_odds(means, prior)) * 2**32).to(torch.int64)


@dataclass(frozen=True)
class Cavities:
    """R cavities of each edge and their effective number of draws."""

    log_odds: Tensor  # (R, F, A) float64, ±inf allowed
    effective: Tensor  # (F, A) float64: (Σ weight)²/Σ weight², 0 where no draw has mass


def cavities(
    address: Address, tracks: Tracks, means: Tensor, prior: Tensor, grid: Grid, feed: Feed
) -> Cavities:
    """Draws of equal weight from tracks (R, F, A).

    feed "histogram": draws from a histogram of them, as in the paper. "draws": the draws
    themselves, resampled by weight if they have weights. Where no draw has mass (both products are
    zero), the mean of the surveys is used.
    """
    survey_samples = tracks.log_odds.shape[0]
    if tracks.log_weight is None:
        mass = torch.full(tracks.log_odds.shape, MASS_ONE, device=tracks.log_odds.device)
        effective = torch.full_like(tracks.log_odds[0], survey_samples)
        if feed == "draws":
            return Cavities(tracks.log_odds, effective)
    else:
        mass = relative_masses(tracks.log_weight)
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
