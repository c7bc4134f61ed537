"""What survey propagation is told, what it keeps, and what an update of a few factors hands around.

Only factor→variable surveys are kept, (F, A, B) a block, never a product with survey_samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from torch import Tensor

from vitrail.checks import checked_count, checked_number
from vitrail.factors import Factors
from vitrail.scopes import Scope
from vitrail.solvers.checkpoint import PER_FACTOR
from vitrail.solvers.damping import Damping, as_damping
from vitrail.solvers.schedules import Batches, Order
from vitrail.surveys.factor_update import checked_inner
from vitrail.surveys.histogram import Grid, Split
from vitrail.updates import CavityUpdate, Update
from vitrail.updates.base import MOST_DRAWS

Store = Literal["float32", "fixed16"]


@dataclass(frozen=True)
class SPState:
    """Surveys and the sums over factors that a step needs; a step may consume it.

    In batches, and wherever a compiled kernel serves, the rows of updated factors are written in
    place: a copy of all surveys a step would cost more than the step, or not fit.
    """

    surveys: tuple[Tensor, ...] = field(metadata=PER_FACTOR)  # (F, A, B) float32, or int16 masses
    updated: tuple[Tensor, ...] = field(metadata=PER_FACTOR)  # (F,) int64, the step of their draws
    draws: Tensor  # (C, R, V) float64, sums of the factors' contributions; exact
    means: Tensor  # (4, V) float64, sums of `log_means`; exact
    prior: Tensor  # (V,) float64, the graph's plus the symmetry breaking
    gamma: Tensor  # (P,) float64, weight of new surveys: one minus the damping
    order: Order  # the shuffle of the factors in force
    kind: Tensor  # () int64: which of VARIABLES the degree chose, where it was left to it


@dataclass(frozen=True)
class Part:
    """A chunk of factors with their surveys and what they have put into the sums."""

    number: int  # of the block
    block: Factors
    index: Tensor  # (f,) int64 into the block
    problem: Tensor  # (f,) int64
    survey: Tensor  # (f, A, B) as stored
    draws: Tensor  # (C, R, f, A)
    means: Tensor  # (4, f, A)

    @cached_property
    def factors(self) -> Factors:
        """The factors of the chunk, where no kernel takes them by their rows."""
        return self.block.select(self.index)

    @cached_property
    def scope(self) -> Scope:
        return self.block.scope.select(self.index)


@dataclass(frozen=True)
class Report:
    """What an update of a chunk has to report."""

    starved: Tensor  # () int64: edges whose draws carried no mass
    evaluations: int
    min_hits: int | None
    effective: Tensor  # (f, A) float64


@dataclass(frozen=True)
class Updated:
    """The same chunk after the update."""

    survey: Tensor | None  # (f, A, B) as stored; None where they are written already
    draws: Tensor  # (C, R, f, A)
    means: Tensor  # (4, f, A)
    change: Tensor  # (f,) float64, the largest change of a bin's mass
    report: Report


@dataclass(frozen=True)
class Settings:
    """What both solvers are told."""

    update: CavityUpdate
    survey_samples: int
    grid: Grid
    damping: Damping
    batches: Batches
    prior_scale: float
    store: Store
    watch: tuple[int, ...]  # variables whose belief survey goes into the history
    memory: int

    @property
    def fixed(self) -> bool:
        return self.store == "fixed16"


def checked_settings(
    update: Update,
    survey_samples: int,
    bins: int,
    damping: Damping | float,
    batch: int | None,
    split: Split,
    hard_ends: bool | None,
    prior_scale: float,
    store: Store,
    watch: Sequence[int],
    memory: int,
) -> Settings:
    """Settings that make sense together, or an error that says which does not."""
    inner = checked_inner(update)
    checked_count("survey_samples", survey_samples, 1, MOST_DRAWS)
    checked_number("prior_scale", prior_scale)
    if store not in ("float32", "fixed16"):
        raise ValueError(f"unknown store {store!r}; choose 'float32' or 'fixed16'")
    return Settings(
        inner,
        survey_samples,
        Grid(bins, split, inner.exact if hard_ends is None else hard_ends),
        as_damping(damping),
        Batches(batch),
        prior_scale,
        store,
        tuple(watch),
        memory,
    )
