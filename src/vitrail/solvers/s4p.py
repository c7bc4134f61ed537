"""S4P and S3P, and SNMP, which runs S4P after belief propagation.

S4P samples surveys in both directions; S3P computes those of variables exactly, by convolution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, get_args

import torch
from torch import Tensor

from vitrail.checks import checked_choice
from vitrail.decode import threshold
from vitrail.factors import Factors, Network
from vitrail.graph import FactorGraph
from vitrail.kernels.dispatch import BackendError, GaussianCavities, find
from vitrail.numerics import chunks
from vitrail.random import Key
from vitrail.solvers.bp import BPState, belief_propagation
from vitrail.solvers.run import Solution
from vitrail.solvers.sp import FactorChunk, SPState, SurveyPropagation, UpdatedChunk, degrees
from vitrail.solvers.stages import Stage, Start
from vitrail.surveys import VARIABLES
from vitrail.surveys.factor_update import pair_tables
from vitrail.surveys.fft import belief_surveys, exact_surveys
from vitrail.surveys.gaussian import Gaussian, moment_units
from vitrail.surveys.histogram import MASS_ONE, Grid, histogram, normalised, relative_masses
from vitrail.surveys.variable import (
    Cavities,
    Feed,
    Tracks,
    VariableUpdate,
    belief_address,
    branch_threshold,
    cavities,
    cavity_address,
    drawn_values,
    log_means_of,
)
from vitrail.updates import Update
from vitrail.updates.flip import Flip

SCRATCH = 1600  # temporary bytes per edge of a compiled step, plus one per track
GAUSSIAN_DEGREE = 200  # factors per variable above which sums of draws are nearly Gaussian


@dataclass(frozen=True)
class S4P(SurveyPropagation):
    """Stochastic survey propagation: surveys are sampled in both directions (Algorithms 2 and 3).

    The paper's version is `s4p(pinned(5), variable=weighted(), feed="histogram")`.

    Args:
        update: Update of the inner messages; its smoothing is set to 0.
        damping: Share of the old survey that is kept: a number, a function of the step, or
            `adaptive()`.
        batch: Factors updated per step in each problem; None updates all.
        prior_scale: Spread of the random prior (log-odds) that breaks symmetry; 0 for none.
        survey_samples: Draws from surveys for each factor.
        bins: Bins of a survey's histogram over [0, 1].
        split: A value goes to the nearest bin ("round") or is shared by its neighbours ("linear").
        hard_ends: Whether the first and last bin mean probabilities 0 and 1; otherwise 0.001 and
            0.999. None is True for exact inner messages only.
        watch: Variables whose survey is recorded at every step, `history["survey"]` (steps, W, B).
        memory: Limit of temporary memory, in bytes.
        variable: How variable→factor surveys are drawn, `weighted()`, `tilted()` or `gaussian()` of
            `vitrail.surveys`; None takes tilted, and gaussian from 200 factors per variable.
        feed: Cavities from the "draws" themselves, or from a "histogram" of them as in the paper.

    Examples:
        >>> from vitrail.updates import flip
        >>> s4p(flip(5), survey_samples=50).survey_samples
        50
    """

    _: KW_ONLY
    variable: VariableUpdate | None = None
    feed: Feed = "draws"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_choice("feed", self.feed, get_args(Feed))

    over_ranks = True

    def variable_kind(self, graph: FactorGraph) -> int:
        many = float(degrees(graph).max()) >= GAUSSIAN_DEGREE
        return list(VARIABLES).index("gaussian" if many else "tilted")

    def sampler(self, state: SPState) -> VariableUpdate:
        return self.variable or list(VARIABLES.values())[int(state.kind)]()

    def cavities_of(
        self, key: Key, state: SPState, prepared: tuple[Tensor, ...], part: FactorChunk
    ) -> Cavities:
        gather, grid = part.factors.scope.gather, self.grid
        address = cavity_address(key, part.factors.ids, self.survey_samples, part.factors.arity)
        means, prior = gather(state.means) - part.means, gather(state.prior)
        draws = gather(state.draws) - part.draws
        tracks = self.sampler(state).tracks(address, draws, means, prior, grid)
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
        block, variable = graph.blocks[number], self.sampler(state)
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
        return self.sampler(state).tracks(address, state.draws, state.means, state.prior, self.grid)


def _tables(block: Factors, kernel: Any, samples: int, grid: Grid) -> Any:
    """Tables of a compiled step."""
    logs = block.log_means(samples)
    tables, units = pair_tables(logs[0], grid), moment_units(grid, logs.device)
    return kernel.Tables(units, tables.bins, tables.rank, tables.mass)


@dataclass(frozen=True)
class S3P(SurveyPropagation):
    """Survey propagation with exact variable→factor surveys; small problems only.

    A variable of n factors costs O(n²·B log(n·B)) at every step, in batches too. Options are those
    of `s4p`, except `variable` and `feed`.

    Examples:
        >>> from vitrail.updates import exact
        >>> s3p(exact(), bins=101).survey_samples
        100
    """

    def variable_kind(self, graph: FactorGraph) -> int:
        return 0

    def sampler(self, state: SPState) -> None:
        return None

    def prepare(self, graph: FactorGraph, state: SPState) -> tuple[Tensor, ...]:
        return exact_surveys(graph, state.surveys, state.prior, self.grid, self.memory)

    def cavities_of(
        self, key: Key, state: SPState, prepared: tuple[Tensor, ...], part: FactorChunk
    ) -> Cavities:
        samples = self.survey_samples
        address = cavity_address(key, part.factors.ids, samples, part.factors.arity)
        counts = torch.round(prepared[part.number][part.index] * MASS_ONE).to(torch.int64)
        odds = drawn_values(address, counts, self.grid)
        return Cavities(odds, torch.full_like(odds[0], samples))

    def candidates(self, key: Key, graph: FactorGraph, state: SPState) -> Tensor:
        """The decoded mean, then draws of every variable from its belief: (1 + R, V) bool."""
        decoded = threshold(key, self.log_odds(graph, state))
        counts = torch.round(self._beliefs(graph, state) * MASS_ONE).to(torch.int64)
        number = len(state.prior)
        address = belief_address(key, self.survey_samples, number, state.prior)
        drawn = drawn_values(address, counts, self.grid)
        return torch.cat([decoded[None], torch.where(drawn == 0, decoded, drawn > 0)])

    def belief_surveys(self, key: Key, graph: FactorGraph, state: SPState) -> Tensor:
        watched = torch.tensor(self.watch, device=graph.device)
        return self._beliefs(graph, state)[watched].to(torch.float32)

    def _beliefs(self, graph: FactorGraph, state: SPState) -> Tensor:
        """The survey of every variable, (V, B) float64."""
        return belief_surveys(graph, state.surveys, state.prior, self.grid, self.memory)


s4p, s3p = S4P, S3P


def from_messages(surveys: SurveyPropagation) -> Start:
    """Start surveys as point masses at the final messages of belief propagation."""

    def start(key: Key, graph: FactorGraph, solution: Solution[Any]) -> SPState:
        state = solution.state
        if not isinstance(state, BPState):
            raise TypeError(
                "a warm start needs the messages of belief propagation, but the previous stage "
                f"returned {type(state).__name__}; put belief propagation before it"
            )
        return surveys.warm_start(key, graph, state.messages, state.prior)

    return start


def snmp(
    update: Update,
    *,
    inner: Update | None = None,
    steps: tuple[int, int] = (20, 20),
    sbp_damping: float = 0.8,
    batch: int | None = None,
    **survey_settings: Any,
) -> tuple[Stage, Stage]:
    """The two stages of SNMP, for `run_stages`: messages, then surveys started from them.

    Args:
        update: Update of the first stage.
        inner: Update inside surveys; None is `update`.
        steps: Maximum number of steps of belief propagation and of S4P.
        sbp_damping: Damping of the first stage.
        batch: Factors updated per step in each problem; None updates all.
        **survey_settings: Options of `s4p`.

    Examples:
        >>> from vitrail.updates import flip
        >>> [stage.name for stage in snmp(flip(5))]
        ['sbp', 's4p']
    """
    surveys = s4p(inner or update, batch=batch, **survey_settings)
    return (
        Stage("sbp", belief_propagation(update, damping=sbp_damping, batch=batch), steps[0]),
        Stage("s4p", surveys, steps[1], start=from_messages(surveys)),
    )
