"""Survey propagation by enumeration of bins: the oracle, for a few variables and bins.

Everything is spelled out in probabilities and loops; nothing is shared with the fast code but
the grid's rule for binning.
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from vitrail.factors.table import decode
from vitrail.graph import FactorGraph
from vitrail.surveys.histogram import Grid

MAX_COMBINATIONS = 200_000  # of bins, for one edge


def variable_surveys(
    graph: FactorGraph, surveys: tuple[Tensor, ...], prior: Tensor, grid: Grid
) -> tuple[Tensor, ...]:
    """Variable→factor surveys (F, A, B) float64 from factor→variable ones; nan without mass."""
    prior_one = torch.sigmoid(prior.to(torch.float64))
    edges = _edges_by_variable(graph)
    out = tuple(torch.zeros_like(survey, dtype=torch.float64) for survey in surveys)
    for variable, places in edges.items():
        for block, factor, slot in places:
            others = [place for place in places if place != (block, factor, slot)]
            _check(grid.bins ** len(others))
            for bins in product(range(grid.bins), repeat=len(others)):
                probability, one, zero = (
                    1.0,
                    float(prior_one[variable]),
                    float(1 - prior_one[variable]),
                )
                for (b, f, a), k in zip(others, bins, strict=True):
                    probability *= float(surveys[b][f, a, k])
                    one *= k / (grid.bins - 1)
                    zero *= 1 - k / (grid.bins - 1)
                _put(out[block][factor, slot], grid, one, zero, probability)
    return _normalised(out)


def factor_surveys(
    graph: FactorGraph, cavities: tuple[Tensor, ...], grid: Grid
) -> tuple[Tensor, ...]:
    """Factor→variable surveys (F, A, B) float64 from variable→factor ones; nan without mass."""
    out = tuple(torch.zeros_like(survey, dtype=torch.float64) for survey in cavities)
    for number, block in enumerate(graph.blocks):
        states = decode(torch.arange(2**block.arity), block.arity)
        potential = torch.exp(block.log_potential(states[None]))
        for factor in range(block.num_factors):
            for slot in range(block.arity):
                others = [j for j in range(block.arity) if j != slot]
                _check(grid.bins ** len(others))
                for bins in product(range(grid.bins), repeat=len(others)):
                    probability, weight = 1.0, potential[factor].clone()
                    for j, k in zip(others, bins, strict=True):
                        probability *= float(cavities[number][factor, j, k])
                        p = k / (grid.bins - 1)
                        weight *= torch.where(states[:, j], p, 1 - p)
                    one, zero = weight[states[:, slot]].sum(), weight[~states[:, slot]].sum()
                    _put(out[number][factor, slot], grid, float(one), float(zero), probability)
    return _normalised(out)


def _edges_by_variable(graph: FactorGraph) -> dict[int, list[tuple[int, int, int]]]:
    edges: dict[int, list[tuple[int, int, int]]] = {v: [] for v in range(graph.num_variables)}
    for number, block in enumerate(graph.blocks):
        index = block.scope.index().expand(block.num_factors, block.arity)
        for factor, row in enumerate(index.tolist()):
            for slot, variable in enumerate(row):
                edges[variable].append((number, factor, slot))
    return edges


def _put(survey: Tensor, grid: Grid, one: float, zero: float, probability: float) -> None:
    """Add probability·(one + zero) at one/(one + zero)."""
    mass = probability * (one + zero)
    if mass == 0:
        return
    position = one / (one + zero) * (grid.bins - 1)
    if grid.split == "linear":
        lower = min(int(position), grid.bins - 2)
        survey[lower] += mass * (lower + 1 - position)
        survey[lower + 1] += mass * (position - lower)
        return
    half = int(position) + 0.5
    if abs(position - half) < 1e-6:
        position = half
    survey[round(position)] += mass


def _normalised(surveys: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(survey / survey.sum(-1, keepdim=True) for survey in surveys)


def _check(combinations: int) -> None:
    if combinations > MAX_COMBINATIONS:
        raise ValueError(
            f"an edge has {combinations} combinations of bins, the oracle stops at "
            f"{MAX_COMBINATIONS}; use fewer bins or a smaller graph"
        )
