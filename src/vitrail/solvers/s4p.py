"""S4P: surveys sampled in both directions, with many candidate configurations at every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor

from vitrail.checks import checked_choice, checked_count, checked_number
from vitrail.decode import threshold
from vitrail.factors import Factors, Network
from vitrail.graph import FactorGraph
from vitrail.kernels.dispatch import BackendError, GaussianCavities, find
from vitrail.numerics import DEFAULT_MEMORY, chunks
from vitrail.random import Key
from vitrail.solvers.bp import PRIOR_SCALE
from vitrail.solvers.damping import Damping, Schedule, as_damping
from vitrail.solvers.schedules import Batches
from vitrail.solvers.sp import FactorChunk, SPState, SurveyPropagation, UpdatedChunk, degrees
from vitrail.surveys import VARIABLES
from vitrail.surveys.factor_update import pair_tables, without_smoothing
from vitrail.surveys.gaussian import Gaussian, moment_units
from vitrail.surveys.histogram import MASS_ONE, Grid, Split, histogram, normalised, relative_masses
from vitrail.surveys.variable import (
    Cavities,
    Feed,
    Tracks,
    VariableUpdate,
    belief_address,
    branch_threshold,
    cavities,
    cavity_address,
    log_means_of,
)
from vitrail.updates import Update
from vitrail.updates.base import MAX_DRAWS
from vitrail.updates.flip import Flip

SCRATCH = 1600  # temporary bytes per edge of a compiled step, plus one per track
GAUSSIAN_DEGREE = 200  # factors per variable above which sums of draws are nearly Gaussian


@dataclass(frozen=True)
class S4P(SurveyPropagation):
    """Surveys sampled in both directions (Algorithms 2 and 3), many candidates at every step."""

    chosen: VariableUpdate | None  # None chooses by degree
    feed: Feed

    over_ranks = True

    def variable_kind(self, graph: FactorGraph) -> int:
        many = float(degrees(graph).max()) >= GAUSSIAN_DEGREE
        return list(VARIABLES).index("gaussian" if many else "tilted")

    def variable(self, state: SPState) -> VariableUpdate:
        return self.chosen or list(VARIABLES.values())[int(state.kind)]()

    def cavities_of(
        self, key: Key, state: SPState, prepared: tuple[Tensor, ...], part: FactorChunk
    ) -> Cavities:
        gather, grid = part.factors.scope.gather, self.grid
        address = cavity_address(key, part.factors.ids, self.survey_samples, part.factors.arity)
        means, prior = gather(state.means) - part.means, gather(state.prior)
        draws = gather(state.draws) - part.draws
        tracks = self.variable(state).tracks(address, draws, means, prior, grid)
        return cavities(address, tracks, means, prior, grid, self.feed)

    def changes(
        self,
        key: Key,
        graph: FactorGraph,
        state: SPState,
        prepared: tuple[Tensor, ...],
        number: int,
        rows: Tensor,
        gamma: Tensor,
    ) -> Iterator[tuple[FactorChunk, UpdatedChunk]]:
        block, variable = graph.blocks[number], self.variable(state)
        kernel = self._kernel(block, variable, len(rows))
        if kernel is None or not isinstance(variable, Gaussian):
            yield from super().changes(key, graph, state, prepared, number, rows, gamma)
            return
        survey, inner, samples = state.surveys[number], self.update, self.survey_samples
        assert isinstance(inner, Flip)
        assert isinstance(block, Network)
        tables = block.once_at_beta(_tables, kernel, inner.samples, self.grid)

        def contributions(sums: Tensor) -> tuple[Tensor, Tensor]:
            means = log_means_of(sums[0], sums[1:3], self.grid)
            return variable.from_sums(sums[3:], self.grid), means

        for chunk in chunks(len(rows), (SCRATCH + samples) * block.arity, self.memory):
            index = rows[chunk]
            problem = graph.problem_of_factors[number][index]
            draws, means = contributions(kernel.sums(survey, index, tables))
            part = FactorChunk(number, block, index, problem, survey[:0], draws, means)
            gather = part.scope.gather
            prior = gather(state.prior)
            one, zero = (gather(state.draws) - draws)[:, 0].chunk(2)
            cavities = GaussianCavities(
                samples,
                inner.limit,
                branch_threshold(gather(state.means) - means, prior),
                torch.stack([prior + one[0], prior + zero[0]], dim=1),
                torch.stack([one[1], zero[1]], dim=1).clamp(min=0).sqrt(),
            )
            sums, change, starved = kernel.update(
                key.of(inner.stream),
                inner.samples,
                block,
                index,
                survey,
                cavities,
                gamma[problem],
                tables,
            )
            draws, means = contributions(sums)
            every = torch.full_like(prior, samples).expand(len(index), -1)
            counts = starved.sum(), len(index) * samples * inner.samples, inner.samples
            yield part, UpdatedChunk(None, draws, means, change, *counts, every)

    def _kernel(self, block: Factors, variable: VariableUpdate, rows: int) -> Any:
        """The compiled module for a whole step of gaussian surveys with flips, if any."""
        inner, grid = self.update, self.grid
        plain = isinstance(variable, Gaussian) and self.feed == "draws"
        if not (plain and isinstance(inner, Flip) and grid.split == "round" and not grid.hard_ends):
            return None
        lanes = rows * block.arity * self.survey_samples * inner.samples
        try:
            return find("survey", inner.backend, block, lanes, inner.samples)
        except BackendError:
            return None  # the named backend may still run the flips; otherwise it raises there

    def candidates(self, key: Key, graph: FactorGraph, state: SPState) -> Tensor:
        """The decoded mean, then the configuration of each drawn track: (1 + R, V) bool."""
        decoded = threshold(key, self.log_odds(graph, state))
        drawn = self._tracks(key, state).log_odds
        return torch.cat([decoded[None], torch.where(drawn == 0, decoded, drawn > 0)])

    def belief_surveys(self, key: Key, graph: FactorGraph, state: SPState) -> Tensor:
        tracks = self._tracks(key, state)
        watched = torch.tensor(self.watch, device=graph.device)
        odds = tracks.log_odds[:, watched]
        if tracks.log_weight is None:
            mass = torch.full(odds.shape, MASS_ONE, device=graph.device)
        else:
            mass = relative_masses(tracks.log_weight[:, watched])
        return normalised(histogram(self.grid, odds, mass))

    def _tracks(self, key: Key, state: SPState) -> Tracks:
        """Draws of every variable's belief, (R, V)."""
        address = belief_address(key, self.survey_samples, len(state.prior), state.prior)
        return self.variable(state).tracks(
            address, state.draws, state.means, state.prior, self.grid
        )


def _tables(block: Factors, kernel: Any, samples: int, grid: Grid) -> Any:
    """Tables of a compiled step."""
    logs = block.log_means(samples)
    tables, units = pair_tables(logs[0], grid), moment_units(grid, logs.device)
    return kernel.Tables(units, tables.bins, tables.rank, tables.mass)


def s4p(
    update: Update,
    *,
    survey_samples: int = 100,
    bins: int = 201,
    damping: Damping | Schedule | float = 0.2,
    batch: int | None = None,
    variable: VariableUpdate | None = None,
    feed: Feed = "draws",
    split: Split = "round",
    hard_ends: bool | None = None,
    prior_scale: float = PRIOR_SCALE,
    watch: Sequence[int] = (),
    memory: int = DEFAULT_MEMORY,
) -> S4P:
    """Stochastic survey propagation: surveys are sampled in both directions.

    The paper's version is `s4p(pinned(5), variable=weighted(), feed="histogram")`.

    Args:
        update: Update of the inner messages; its smoothing is set to 0.
        survey_samples: Draws from surveys for each factor.
        bins: Bins of a survey's histogram over [0, 1].
        damping: Share of the old survey that is kept: a number, a function of the step, or
            `adaptive()`.
        batch: Factors updated per step in each problem; None updates all.
        variable: How variable→factor surveys are drawn, `weighted()`, `tilted()` or `gaussian()` of
            `vitrail.surveys`; None takes tilted, and gaussian from 200 factors per variable.
        feed: Cavities from the "draws" themselves, or from a "histogram" of them as in the paper.
        split: A value goes to the nearest bin ("round") or is shared by its neighbours ("linear").
        hard_ends: Whether the first and last bin mean probabilities 0 and 1; otherwise 0.001 and
            0.999. None is True for exact inner messages only.
        prior_scale: Spread of the random prior (log-odds) that breaks symmetry; 0 for none.
        watch: Variables whose survey is recorded at every step, `history["survey"]` (steps, W, B).
        memory: Limit of temporary memory, in bytes.

    Examples:
        >>> from vitrail.updates import flip
        >>> s4p(flip(5), survey_samples=50).survey_samples
        50
    """
    checked_choice("feed", feed, get_args(Feed))
    inner = without_smoothing(update)
    return S4P(
        inner,
        checked_count("survey_samples", survey_samples, 1, MAX_DRAWS),
        Grid(bins, split, inner.exact if hard_ends is None else hard_ends),
        as_damping(damping),
        Batches(batch),
        checked_number("prior_scale", prior_scale),
        tuple(watch),
        memory,
        variable,
        feed,
    )
