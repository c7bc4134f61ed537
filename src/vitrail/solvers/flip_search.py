"""Annealed bit-flip search of any graph, problem by problem, from given configurations.

A proposal flips one weight and is accepted with probability min(1, exp((E − E')/T)), where T falls
geometrically. Kernels search nets of this package's layers and tables of energies with incremental
updates; anything else is evaluated. A search is a function of (seed, step, problem, chain).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail.factors import Network
from vitrail.factors.linear import linear_problem
from vitrail.factors.split import split
from vitrail.factors.table import log_potentials
from vitrail.graph import FORBIDDEN, FactorGraph
from vitrail.nn.program import linear_program
from vitrail.nn.wiring import MAX_FAN_IN, Wiring
from vitrail.random import Key, Stream, lanes32
from vitrail.scopes import Dense

MAX_COUNT = 2**12  # largest weight of an example as an integer; relative rounding is 1e-4
MAX_TABLE_ARITY = 10  # of factors whose energies are tabulated for the search
ENERGIES = (0.7, 0.12)  # temperatures in units of the field at a variable
LAST_ENERGIES = (0.5, 0.12)  # hot enough to leave the configurations that chains share
MAX_LOOKAHEAD = 64  # proposals evaluated at once where there is no kernel


@dataclass(frozen=True)
class Energy:
    """The energy E = Σ weight·clip(margin − m, 0, width), and its temperatures.

    m is the signed margin of an example, positive where it is satisfied. margin and width are in
    units of √(inputs of the last layer); zero, zero counts the unsatisfied examples. start and
    end are temperatures in units of √Σ weight².
    """

    margin: float
    width: float
    start: float
    end: float

    def __post_init__(self) -> None:
        if min(self.margin, self.width) < 0 or not 0 < self.end <= self.start:
            raise ValueError(
                "an energy needs margin and width of at least 0 and temperatures "
                f"start ≥ end > 0, got {self}"
            )

    def temperature(self, share: float) -> float:
        """Temperature after this share of the search, in units of √Σ weight²."""
        return self.start * (self.end / self.start) ** share


def errors(start: float = 0.3, end: float = 0.03) -> Energy:
    """The weight of unsatisfied examples."""
    return Energy(0.0, 0.0, start, end)


def ramp(margin: float = 0.4, width: float = 1.6, start: float = 1.0, end: float = 0.1) -> Energy:
    """The shortfall of margins below `margin`, capped at `width`."""
    return Energy(margin, width, start, end)


@dataclass(frozen=True)
class SearchResult:
    """Results of the searches from each of R starts, in one problem."""

    best: Tensor  # (R, N) bool
    best_score: Tensor  # (R,) float64, satisfied weight, or minus the energy
    last: Tensor  # (R, N) bool
    last_score: Tensor  # (R,) float64
    evaluations: int


@dataclass(frozen=True)
class Segment:
    """A part of a search: proposals per start, from one share of the cooling to another."""

    energy: Energy
    proposals: int
    begin: float = 0.0
    end: float = 1.0
    stop: bool = True  # end a chain once everything is satisfied; sampling must continue
    free: Tensor | None = None  # (K,) int64, the weights that may flip; None is all

    def temperatures(self, scale: float) -> tuple[float, float]:
        """The first and the last, `scale` being √Σ weight²."""
        first, last = (self.energy.temperature(share) for share in (self.begin, self.end))
        return first * scale, last * scale


class FlipSearch(ABC):
    """One problem, prepared for the search."""

    variables: Tensor  # (N,) int64, in the whole graph
    number: int  # index of the problem, part of the address of its draws
    compiled: bool  # whether a kernel updates the margins after each flip
    default_energy: Energy  # best energy for this kind of problem
    last_energy: Energy = Energy(0.0, 0.0, 0.1, 0.02)  # for good starts: counts errors alone
    default_heat: float | None = None  # first temperature divided by the last; None: no default

    @abstractmethod
    def run(self, key: Key, starts: Tensor, segment: Segment) -> SearchResult:
        """Search from each row of starts (R, N) bool."""


def flip_searches(graph: FactorGraph) -> list[FlipSearch]:
    """A search for each problem of the graph, compiled where it can be."""
    # `once` shares results between graphs that differ in prior and beta, on which energies depend
    return _flip_searches(graph) if graph.has_energies else graph.once(_flip_searches)


def _flip_searches(graph: FactorGraph) -> list[FlipSearch]:
    return [
        _flip_search(part, variables, number)
        for number, (part, variables) in enumerate(split(graph))
    ]


def _flip_search(graph: FactorGraph, variables: Tensor, number: int) -> FlipSearch:
    if graph.has_energies and max(block.arity for block in graph.blocks) <= MAX_TABLE_ARITY:
        return _EnergySearch(graph, variables, number)
    linear = linear_problem(graph, variables)
    if linear is not None:
        num_weights = linear.inputs.shape[1]
        wiring = linear_program(num_weights, linear.low).wiring
        if wiring is None:
            raise ValueError(
                f"local search and chains of a linear net take at most {MAX_FAN_IN:,} weights, got "
                f"{num_weights:,}; add hidden units, such as hidden=(3,), leave columns out, or "
                "switch both off with polish=0 and predictor='best'"
            )
        table = linear.inputs, linear.labels, linear.weight
        return _compiled_search(wiring, *table, variables, number, ramp())
    block = graph.blocks[0]
    alone = len(graph.blocks) == 1 and block.arity == graph.num_variables
    if alone and isinstance(block, Network) and isinstance(block.scope, Dense):
        wiring = block.program.wiring
        if wiring is not None:
            table = block.inputs.flatten(1), block.labels, block.weight
            return _compiled_search(wiring, *table, variables, number, errors())
    return _EvaluatedSearch(graph, variables, number)


def _compiled_search(
    wiring: Wiring,
    inputs: Tensor,
    labels: Tensor,
    weight: Tensor,
    variables: Tensor,
    number: int,
    energy: Energy,
) -> FlipSearch:
    """The search of a net of this package's layers on inputs (F, I) and labels (F,)."""
    from vitrail.kernels.cpu.anneal import anneal

    counts = _counts(weight)
    columns = np.ascontiguousarray(inputs.to(torch.int8).cpu().numpy().T)
    kernel = partial(anneal, wiring, columns, labels.cpu().numpy().astype(np.int16), counts.each)
    fan_in = wiring.output_fan_in
    return _CompiledSearch(variables, number, energy, kernel, counts, len(labels), fan_in)


@dataclass(frozen=True)
class _Counts:
    """Weights as integers, for kernels that add integers."""

    each: np.ndarray  # (F,) int32, or empty if every example counts once
    unit: float  # weight of one count
    scale: float  # √Σ count²


def _counts(weight: Tensor) -> _Counts:
    weight = weight.cpu()
    smallest, largest = float(weight[weight > 0].min()), float(weight.max())
    if float(weight.min()) == largest:
        return _Counts(np.empty(0, np.int32), largest, math.sqrt(len(weight)))
    whole = torch.round(weight / smallest)
    exact = torch.allclose(whole * smallest, weight, rtol=1e-9, atol=0.0)
    unit = smallest if exact and largest <= MAX_COUNT * smallest else largest / MAX_COUNT
    counts = torch.round(weight / unit)
    return _Counts(counts.to(torch.int32).numpy(), unit, float(counts.square().sum().sqrt()))


@dataclass(frozen=True)
class _CompiledSearch(FlipSearch):
    variables: Tensor
    number: int
    default_energy: Energy
    kernel: Callable[..., Any]  # from (starts, proposals, schedule, key, step, number, free)
    counts: _Counts
    num_factors: int
    fan_in: int  # of the last layer
    compiled: bool = True

    def run(self, key: Key, starts: Tensor, segment: Segment) -> SearchResult:
        from vitrail.kernels.cpu.anneal import Schedule

        free = None if segment.free is None else segment.free.cpu().numpy()
        unit, energy = math.sqrt(self.fan_in), segment.energy
        margin, width = (max(1, math.ceil(x * unit)) for x in (energy.margin, energy.width))
        first, last = segment.temperatures(self.counts.scale)
        schedule = Schedule(margin, width, first, last, segment.stop)
        address = key.of(Stream.SEARCH).words(), key.step, self.number
        found = self.kernel(starts.cpu().numpy(), segment.proposals, schedule, *address, free)
        best, best_score, last, last_score = (
            torch.from_numpy(array).to(self.variables.device) for array in found[:4]
        )
        unit = self.counts.unit
        return SearchResult(
            best,
            best_score.double() * unit,
            last,
            last_score.double() * unit,
            found[4] * self.num_factors,
        )


def _lowest_energy(graph: FactorGraph) -> float:
    """A lower bound: every factor and every variable at its minimum."""
    scales = sum(float(block.log_scale.sum()) for block in graph.blocks)
    return -scales - float(graph.log_prior.clamp(min=0).sum())


class _EnergySearch(FlipSearch):
    """Search of factors of few variables, by a kernel on tabulated energies.

    `segment.free` is ignored, so every variable may flip.
    """

    compiled = True
    default_energy = errors(*ENERGIES)
    default_heat = ENERGIES[0] / ENERGIES[1]
    last_energy = errors(*LAST_ENERGIES)

    def __init__(self, graph: FactorGraph, variables: Tensor, number: int) -> None:
        from vitrail.kernels.cpu.energies import EnergyTables

        self.variables, self.number = variables, number
        self._graph, self._lowest = graph, _lowest_energy(graph)
        prior = graph.log_prior.cpu()
        tables = [torch.stack([torch.zeros_like(prior), -prior], 1)]
        scopes = [torch.arange(graph.num_variables)[:, None]]
        for block in graph.blocks:
            energies = -log_potentials(block).cpu()
            tables.append(energies.clamp(max=FORBIDDEN))
            scopes.append(block.scope.index().expand(block.num_factors, block.arity).cpu())
        sizes = torch.cat([torch.full((len(rows),), rows.shape[1]) for rows in tables])
        arities = torch.cat([torch.full((len(rows),), rows.shape[1]) for rows in scopes])
        places = torch.cat([rows.flatten() for rows in scopes])
        bits = torch.cat([torch.arange(rows.shape[1]).repeat(len(rows)) for rows in scopes])
        order = torch.sort(places, stable=True).indices
        counts = torch.bincount(places, minlength=graph.num_variables)
        factor = torch.repeat_interleave(torch.arange(len(arities)), arities)
        # the field at a variable is the root of the summed variances of its factors
        finite = [rows.where(rows < FORBIDDEN, torch.nan) for rows in tables]
        variance = torch.cat(
            [(rows - rows.nanmean(1, True)).square().nanmean(1) for rows in finite]
        )
        felt = torch.zeros(graph.num_variables, dtype=torch.float64)
        felt.index_add_(0, places, variance[factor])
        self._scale = float(felt.mean().sqrt()) or 1.0
        self._tables = EnergyTables(
            torch.cat([rows.flatten() for rows in tables]).numpy(),
            (sizes.cumsum(0) - sizes).numpy(),
            torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]).numpy(),
            factor[order].numpy(),
            (1 << bits[order]).numpy(),
        )

    def run(self, key: Key, starts: Tensor, segment: Segment) -> SearchResult:
        from vitrail.kernels.cpu.energies import anneal_energies

        best, last, proposals = anneal_energies(
            self._tables,
            starts.cpu().numpy(),
            segment.proposals,
            segment.temperatures(self._scale),
            self._lowest if segment.stop else -math.inf,
            key.of(Stream.SEARCH).words(),
            (key.step, self.number),
        )
        found = [torch.from_numpy(bits).to(starts.device) for bits in (best, last)]
        scores = [self._graph.objective(bits)[:, 0] for bits in found]
        evaluations = proposals * self._graph.num_factors
        return SearchResult(found[0], scores[0], found[1], scores[1], evaluations)


class _EvaluatedSearch(FlipSearch):
    """Search by evaluating proposals in batches; the first accepted one ends a batch.

    So the chain does not depend on the batch size, which adapts to the acceptance rate.
    """

    compiled = False
    default_energy = errors()

    def __init__(self, graph: FactorGraph, variables: Tensor, number: int) -> None:
        self.variables, self.number = variables, number
        self._graph = graph
        weights = torch.cat([block.weight for block in graph.blocks])
        self._total, self._scale = float(weights.sum()), float(weights.square().sum().sqrt())
        if graph.has_energies:
            self._total = -_lowest_energy(graph)

    def run(self, key: Key, starts: Tensor, segment: Segment) -> SearchResult:
        energy, proposals = segment.energy, segment.proposals
        if energy.margin > 0 or energy.width > 0:
            raise ValueError(
                "a ramp needs the margins of a network of this package's layers; use the energy "
                "errors() for other factors"
            )
        (num_starts, num_weights), device = starts.shape, starts.device
        number = torch.tensor(self.number, device=device)
        chain = torch.arange(num_starts, device=device)
        draws = lanes32(key.of(Stream.SEARCH), number, chain, 2 * proposals)
        free = torch.arange(num_weights, device=device) if segment.free is None else segment.free
        which = free[draws[:, 0::2] * len(free) >> 32]
        floor = torch.log((draws[:, 1::2].double() + 0.5) / 2**32)
        share = torch.arange(proposals, device=device) / max(1, proposals - 1)
        share = segment.begin + (segment.end - segment.begin) * share.double()
        floor *= self._scale * energy.start * (energy.end / energy.start) ** share

        bits, best = starts.clone(), starts.clone()
        score = self._graph.objective(bits)[:, 0]
        best_score = score.clone()
        spent = torch.zeros(num_starts, dtype=torch.int64, device=device)
        ahead, evaluations = 8, 0
        while True:
            if segment.stop:
                spent = torch.where(best_score >= self._total, proposals, spent)
            going = torch.nonzero(spent < proposals)[:, 0]
            if len(going) == 0:
                return SearchResult(best, best_score, bits, score, evaluations)
            times = spent[going, None] + torch.arange(ahead, device=device)
            valid = times < proposals
            times = times.clamp(max=proposals - 1)
            flip = which[going].gather(1, times)
            states = bits[going, None].repeat(1, ahead, 1)
            states.scatter_(2, flip[..., None], ~states.gather(2, flip[..., None]))
            after = self._graph.objective(states.flatten(0, 1))[:, 0].view(len(going), ahead)
            evaluations += after.numel() * self._graph.num_factors
            gain = after - score[going, None]
            taken = valid & ((gain >= 0) | (gain > floor[going].gather(1, times)))
            some, first = taken.any(1), taken.to(torch.int8).argmax(1)
            spent[going] += torch.where(some, first + 1, ahead)
            row, of = torch.nonzero(some)[:, 0], going[some]
            bits[of], score[of] = states[row, first[row]], after[row, first[row]]
            better = of[score[of] > best_score[of]]
            best[better], best_score[better] = bits[better], score[better]
            # about the distance to the next accepted proposal; later evaluations are wasted
            used = torch.where(some, first + 1, 2 * ahead).double().mean()
            ahead = max(1, min(MAX_LOOKAHEAD, round(float(used))))
