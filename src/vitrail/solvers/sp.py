"""Survey propagation, the common part of S3P and S4P.

    factor side    Algorithm 2 of the paper on any update that takes cavities
    variable side  S4P: weighted (Algorithm 3), tilted or gaussian draws; S3P: convolution
    marginal       P(w=1) = Z1/(Z1+Z0) from the survey means, no sampling

Only factor→variable surveys are stored, (F, A, B) per block.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from vitrail.checks import checked_count
from vitrail.factors import Factors
from vitrail.graph import FactorGraph
from vitrail.numerics import DEFAULT_MEMORY, chunks
from vitrail.random import Key
from vitrail.scopes import Scope
from vitrail.solvers.base import (
    PER_FACTOR,
    PER_PROBLEM,
    PER_VARIABLE,
    Feedback,
    Info,
)
from vitrail.solvers.bp import DampedSolver, random_prior
from vitrail.solvers.damping import Damping, Schedule
from vitrail.solvers.schedules import Order
from vitrail.surveys.factor_update import factor_histogram, mixed, without_smoothing
from vitrail.surveys.histogram import Grid, Split, masses, point_mass
from vitrail.surveys.variable import Cavities, VariableUpdate, log_means, mean_log_odds
from vitrail.updates.base import MAX_DRAWS

CERTAIN_LOG_ODDS = 1000.0  # finite log-odds of a certain value


@dataclass(frozen=True)
class SPState:
    """Surveys and their sums over factors; a step may consume the state.

    Batches and compiled steps write the rows of updated factors in place: a copy of all surveys
    would cost more than the step, or would not fit.
    """

    surveys: tuple[Tensor, ...] = field(metadata=PER_FACTOR)  # (F, A, B) float32
    updated: tuple[Tensor, ...] = field(metadata=PER_FACTOR)  # (F,) int64, the step of their draws
    draws: Tensor = field(metadata=PER_VARIABLE)  # (C, R, V) float64, exact sums over factors
    means: Tensor = field(metadata=PER_VARIABLE)  # (4, V) float64, exact sums of `log_means`
    prior: Tensor = field(metadata=PER_VARIABLE)  # (V,) float64, with symmetry breaking
    gamma: Tensor = field(metadata=PER_PROBLEM)  # (P,) float64: one minus the damping
    order: Order  # current shuffle of the factors
    kind: Tensor  # () int64: the entry of VARIABLES chosen by degree


@dataclass(frozen=True)
class FactorChunk:
    """A chunk of factors with their surveys and contributions to the sums."""

    number: int  # index of the block
    block: Factors
    index: Tensor  # (f,) int64 into the block
    problem: Tensor  # (f,) int64
    survey: Tensor  # (f, A, B)
    draws: Tensor  # (C, R, f, A)
    means: Tensor  # (4, f, A)

    @cached_property
    def factors(self) -> Factors:
        """The factors of the chunk, for code without a kernel that takes row indices."""
        return self.block.select(self.index)

    @cached_property
    def scope(self) -> Scope:
        return self.block.scope.select(self.index)


@dataclass(frozen=True)
class UpdatedChunk:
    """The same chunk after the update."""

    survey: Tensor | None  # (f, A, B); None if already written in place
    draws: Tensor  # (C, R, f, A)
    means: Tensor  # (4, f, A)
    change: Tensor  # (f,) float64, the largest change of a bin's mass
    starved: Tensor  # () int64: edges whose draws carried no mass
    evaluations: int
    min_hits: int | None
    effective: Tensor  # (f, A) float64, effective number of draws


@dataclass(frozen=True)
class SurveyPropagation(DampedSolver[SPState]):
    """The common part of S3P and S4P: everything but the variable→factor side."""

    _: KW_ONLY
    damping: Damping | Schedule | float = 0.2
    survey_samples: int = 100
    bins: int = 201
    split: Split = "round"
    hard_ends: bool | None = None
    watch: Sequence[int] = ()
    memory: int = DEFAULT_MEMORY

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "update", without_smoothing(self.update))
        checked_count("survey_samples", self.survey_samples, 1, MAX_DRAWS)
        self.grid  # noqa: B018 (raises errors)

    @cached_property
    def grid(self) -> Grid:
        """The bins of surveys."""
        hard_ends = self.update.exact if self.hard_ends is None else self.hard_ends
        return Grid(self.bins, self.split, hard_ends)

    @abstractmethod
    def sampler(self, state: SPState) -> VariableUpdate | None:
        """The sampler of variable→factor surveys; None where they are not sampled."""

    @abstractmethod
    def variable_kind(self, graph: FactorGraph) -> int:
        """The index of the variable update chosen by the graph's degree."""

    def prepare(self, graph: FactorGraph, state: SPState) -> tuple[Tensor, ...]:
        """Values computed once per step for all factors, passed to `cavities_of`."""
        return ()

    @abstractmethod
    def cavities_of(
        self, key: Key, state: SPState, prepared: tuple[Tensor, ...], part: FactorChunk
    ) -> Cavities:
        """Cavities (R, f, A) of a chunk of factors."""

    @abstractmethod
    def belief_surveys(self, key: Key, graph: FactorGraph, state: SPState) -> Tensor:
        """Surveys of the watched variables over all their factors, (W, B) float32."""

    def init(self, key: Key, graph: FactorGraph) -> SPState:
        """Surveys with all mass at ½, which have no effect before the first update."""
        state = self._uniform_state(graph, random_prior(key, graph, self.prior_scale))
        # draws from a point mass do not depend on the edge, so one edge represents all
        edge = torch.zeros(1, dtype=torch.int64, device=graph.device)
        mass = masses(state.surveys[0][:1, :1])
        own, degree = self._contribution(key, state, edge, edge, mass)[:, :, 0], degrees(graph)
        means = log_means(mass, self.grid)[:, 0] * degree
        return replace(state, draws=own * degree, means=means)

    def start(
        self, key: Key, graph: FactorGraph, surveys: Sequence[Tensor], prior: Tensor
    ) -> SPState:
        """Start from surveys (F, A, B) float32 per block, and a prior (V,) log-odds."""
        state = self._uniform_state(graph, prior)
        for kept, survey in zip(state.surveys, surveys, strict=True):
            if kept.shape != survey.shape:
                raise ValueError(
                    f"surveys of shape {tuple(kept.shape)} expected, got {tuple(survey.shape)}; "
                    "give one (F, A, B) tensor per block of the graph"
                )
            kept.copy_(survey)
        draws, means = torch.zeros_like(state.draws), torch.zeros_like(state.means)
        for number, block in enumerate(graph.blocks):
            index = torch.arange(block.num_factors, device=graph.device)
            for part in self._chunks(key, graph, state, number, index):
                draws += part.scope.total(part.draws, graph.num_variables)
                means += part.scope.total(part.means, graph.num_variables)
        draws, means = graph.world.sum(draws, means)
        return replace(state, draws=draws, means=means)

    def warm_start(
        self, key: Key, graph: FactorGraph, messages: Sequence[Tensor], prior: Tensor
    ) -> SPState:
        """Start with each survey a point mass at BP's message (F, A), log-odds, binned."""
        surveys = [point_mass(self.grid, message) for message in messages]
        return self.start(key, graph, surveys, prior)

    def step(
        self, key: Key, graph: FactorGraph, state: SPState, feedback: Feedback
    ) -> tuple[SPState, Info]:
        chosen, order = self.batches.select(key, graph, state.order, feedback)
        gamma = self.rule.next(key.step, state.gamma, feedback.accuracy)
        prepared = self.prepare(graph, state)
        draws, means = torch.zeros_like(state.draws), torch.zeros_like(state.means)
        residual = torch.zeros(graph.num_problems, dtype=torch.float64, device=graph.device)
        fresh, seen = [], []
        for number, block in enumerate(graph.blocks):
            index = chosen[number]
            rows = torch.arange(block.num_factors, device=graph.device) if index is None else index
            new_surveys = []
            for part, new in self.changes(key, graph, state, prepared, number, rows, gamma):
                draws += part.scope.total(new.draws - part.draws, graph.num_variables)
                means += part.scope.total(new.means - part.means, graph.num_variables)
                residual.scatter_reduce_(0, part.problem, new.change, "amax")
                if new.survey is not None:
                    new_surveys.append(new.survey)
                seen.append(new)
            fresh.append((index, new_surveys))
        surveys = tuple(
            _write_rows(old, *new) for old, new in zip(state.surveys, fresh, strict=True)
        )
        updated = tuple(
            torch.full_like(old, key.step) if index is None else old.index_fill(0, index, key.step)
            for old, index in zip(state.updated, chosen, strict=True)
        )
        effective = [new.effective.flatten() for new in seen]
        info = Info(
            residual,
            sum(new.evaluations for new in seen),
            torch.zeros_like(residual, dtype=torch.bool),
            sum(new.starved for new in seen),
            min((new.min_hits for new in seen if new.min_hits is not None), default=None),
            torch.cat(effective).min() if seen else None,
        )
        count = means.new_tensor(float(sum(part.numel() for part in effective)))
        total = torch.cat(effective).sum() if seen else means.new_zeros(())
        (draws, means, count, total), info = info.reduced(graph.world, draws, means, count, total)
        state = replace(
            state,
            surveys=surveys,
            updated=updated,
            draws=state.draws + draws,
            means=state.means + means,
            gamma=gamma,
            order=order,
        )
        records = {}
        if self.watch:
            records["survey"] = self.belief_surveys(key, graph, state)
        if seen or graph.world.size > 1:  # some rank has a factor of every batch
            records["effective_draws"] = total / count
        contradiction = info.contradiction
        if self.update.exact:
            both_zero = (state.means[1] > 0) & (state.means[3] > 0)
            contradiction = graph.over_variables(both_zero) > 0
        return state, replace(info, contradiction=contradiction, records=records)

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
        """The factors at `rows` of a block before and after the update, in chunks; γ is (P,)."""
        for part in self._chunks(key, graph, state, number, rows):
            weight = gamma[part.problem]
            yield part, self._update_chunk(key, state, prepared, part, weight)

    def log_odds(self, graph: FactorGraph, state: SPState) -> Tensor:
        return mean_log_odds(state.means, state.prior).clamp(-CERTAIN_LOG_ODDS, CERTAIN_LOG_ODDS)

    def shift_prior(self, state: SPState, by: Tensor) -> SPState:
        return replace(state, prior=state.prior + by)

    def _uniform_state(self, graph: FactorGraph, prior: Tensor) -> SPState:
        """Surveys with all mass at ½, with sums not yet computed."""
        blocks, device, gamma = graph.blocks, graph.device, self.rule.at(0)
        half = point_mass(self.grid, torch.zeros((), device=device))
        state = SPState(
            tuple(half.repeat(b.num_factors, b.arity, 1) for b in blocks),
            tuple(torch.zeros(b.num_factors, dtype=torch.int64, device=device) for b in blocks),
            torch.zeros(0, 1, graph.num_variables, dtype=torch.float64, device=device),
            torch.zeros(4, graph.num_variables, dtype=torch.float64, device=device),
            prior,
            torch.full((graph.num_problems,), gamma, dtype=torch.float64, device=device),
            self.batches.start(graph),
            torch.tensor(self.variable_kind(graph)),
        )
        variable = self.sampler(state)
        if variable is None:
            return state
        rows = 1 if variable.sums_only else self.survey_samples
        shape = (variable.channels(self.grid), rows, graph.num_variables)
        return replace(state, draws=state.draws.new_zeros(shape))

    def _contribution(
        self, key: Key, state: SPState, step: Tensor, ids: Tensor, mass: Tensor
    ) -> Tensor:
        """Contributions of factors to the sums of draws, (C, R, F, A)."""
        variable = self.sampler(state)
        if variable is None:
            return state.draws.new_zeros(0, 1, *mass.shape[:2])
        return variable.contribution(key, step, ids, mass, self.grid, self.survey_samples)

    def _chunks(
        self, key: Key, graph: FactorGraph, state: SPState, number: int, index: Tensor
    ) -> Iterator[FactorChunk]:
        """Chunks of a block's factors with their contributions to the sums."""
        block = graph.blocks[number]
        per_edge = self.survey_samples * (200 + 24 * len(state.draws)) + 64 * self.grid.bins
        for rows in chunks(len(index), block.arity * per_edge, self.memory):
            chosen = index[rows]
            problem = graph.problem_of_factors[number][chosen]
            survey = state.surveys[number][chosen]
            mass, step = masses(survey), state.updated[number][chosen]
            draws = self._contribution(key, state, step, block.ids[chosen], mass)
            means = log_means(mass, self.grid)
            yield FactorChunk(number, block, chosen, problem, survey, draws, means)

    def _update_chunk(
        self,
        key: Key,
        state: SPState,
        prepared: tuple[Tensor, ...],
        part: FactorChunk,
        gamma: Tensor,
    ) -> UpdatedChunk:
        """New surveys of a chunk of factors, damped by γ (f,), and their contributions."""
        made = self.cavities_of(key, state, prepared, part)
        limit = self.update.limit
        cavity = made.log_odds.clamp(-limit, limit).transpose(0, 1)
        estimate = self.update.estimate(key, part.factors, cavity)
        counts = factor_histogram(self.grid, estimate)
        survey = mixed(part.survey, counts, gamma[:, None, None])
        mass, step = masses(survey), torch.full_like(part.index, key.step)
        return UpdatedChunk(
            survey=survey,
            draws=self._contribution(key, state, step, part.factors.ids, mass),
            means=log_means(mass, self.grid),
            change=(survey - part.survey).abs().flatten(1).amax(1).double(),
            starved=(counts.sum(-1) == 0).sum(),
            evaluations=estimate.evaluations,
            min_hits=estimate.min_hits,
            effective=made.effective,
        )


def degrees(graph: FactorGraph) -> Tensor:
    """Factors of each variable, (V,) float64."""
    one = torch.ones(1, 1, device=graph.device)
    return graph.total([one.expand(b.num_factors, b.arity) for b in graph.blocks])


def _write_rows(survey: Tensor, index: Tensor | None, parts: list[Tensor]) -> Tensor:
    """Surveys with new rows: a new tensor if all rows are new, otherwise in place."""
    if not parts:
        return survey
    rows = torch.cat(parts)
    return rows if index is None else survey.index_copy_(0, index, rows)
