"""Variable→factor surveys exactly, by convolution in log-odds: the S3P of the paper.

In each of the two products the tilted surveys of a variable's factors are independent, and their
log-odds add up: a convolution, hence a product of spectra. Leave-one-out products are computed from
prefixes and suffixes, without division. Certainties (p = 1 in Πp, p = 0 in Π(1−p)) are left out of
the convolution; their share is that of the end atom.

Cost O(n·L log L) per variable of n factors, L = n·G points: for small problems only.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.numerics import chunks
from vitrail.surveys.histogram import (
    Grid,
    LogOddsGrid,
    log_odds_grid,
    point_mass,
    to_log_odds,
    to_probability,
)

MAX_BYTES = 2**31  # limit of temporary memory per variable


def product(
    surveys: Tensor, prior: Tensor, wide: LogOddsGrid, leave_one_out: bool
) -> tuple[Tensor, Tensor]:
    """The measure of each variable on a log-odds grid: without each factor, or over all of them.

    surveys (v, n, 1 + G + 1) float64 on `wide`, prior (v,) log-odds. Returns masses
    (v, n or 1, 1 + L + 1), whose ends are the atoms of p = 0 and p = 1, and log-odds (L,) without
    the prior.
    """
    half = (surveys.shape[1] - int(leave_one_out)) * wide.half
    length = 2 * half + 1
    size = _fast_size(length)
    ones, one_ends, log_one = _branch(surveys, wide, +1, size, leave_one_out)
    zeros, zero_ends, log_zero = _branch(surveys, wide, -1, size, leave_one_out)
    contradiction = torch.isneginf(log_one) & torch.isneginf(log_zero)
    ratio = prior[:, None] + log_one - log_zero
    weight = torch.sigmoid(torch.where(contradiction, 0.0, ratio))[..., None]
    # the transform is linear, so one inverse is enough
    finite = torch.fft.irfft(weight * ones + (1 - weight) * zeros, n=size, dim=-1)
    finite = finite[..., :length].clamp(min=0.0)
    ends = (1 - weight) * zero_ends[..., None], weight * one_ends[..., None]
    index = torch.arange(length, dtype=torch.float64, device=surveys.device)
    mass = torch.cat([ends[0], finite, ends[1]], dim=-1)
    return mass, (index - half) * wide.step


def _branch(
    surveys: Tensor, wide: LogOddsGrid, sign: int, size: int, leave_one_out: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Spectra of the finite sums, shares of certainty and log Z of one product.

    Point k of a distribution of m factors has the log-odds (k − m·half)·step.
    """
    together = _leave_one_out_products if leave_one_out else _product
    tilt = torch.sigmoid(sign * wide.values(surveys.device))
    finite = surveys[..., 1:-1] * tilt
    certain = surveys[..., -1] if sign > 0 else surveys[..., 0]
    total = finite.sum(-1) + certain
    scale = torch.where(total > 0, total, 1.0)
    spectra = together(torch.fft.rfft(finite / scale[..., None], n=size, dim=-1))
    ends = 1 - together((finite.sum(-1) / scale)[..., None])[..., 0]
    logs = torch.stack([torch.log(scale), (total == 0).to(torch.float64)])
    sums = logs.sum(2, keepdim=True)
    log_total, zeros = sums - logs if leave_one_out else sums
    return spectra, ends, torch.where(zeros > 0, -torch.inf, log_total)


def _leave_one_out_products(values: Tensor) -> Tensor:
    """Leave-one-out products over axis 1, from prefixes and suffixes: (v, n, …)."""
    ones = torch.ones_like(values[:, :1])
    before = torch.cat([ones, values[:, :-1]], dim=1).cumprod(1)
    after = torch.cat([ones, values[:, 1:].flip(1)], dim=1).cumprod(1).flip(1)
    return before * after


def _product(values: Tensor) -> Tensor:
    """Product over axis 1: (v, 1, …)."""
    return values.prod(1, keepdim=True)


def exact_surveys(
    graph: FactorGraph, surveys: tuple[Tensor, ...], prior: Tensor, grid: Grid, memory: int
) -> tuple[Tensor, ...]:
    """Variable→factor surveys (F, A, B) of every block from the factor→variable ones."""
    edges = sum(block.num_factors * block.arity for block in graph.blocks)
    out = torch.zeros(edges, grid.bins, dtype=torch.float64, device=graph.device)
    for _, where, mass in _products(graph, surveys, prior, grid, memory, True):
        out[where] = mass
    sizes = [block.num_factors * block.arity for block in graph.blocks]
    shapes = [survey.shape for survey in surveys]
    return tuple(p.view(s) for p, s in zip(out.split(sizes), shapes, strict=True))


def belief_surveys(
    graph: FactorGraph, surveys: tuple[Tensor, ...], prior: Tensor, grid: Grid, memory: int
) -> Tensor:
    """The survey of each variable over all its factors, (V, B) float64."""
    out = point_mass(grid, prior).to(torch.float64)
    for chosen, _, mass in _products(graph, surveys, prior, grid, memory, False):
        out[chosen] = mass[:, 0]
    return out


def _products(
    graph: FactorGraph,
    surveys: tuple[Tensor, ...],
    prior: Tensor,
    grid: Grid,
    memory: int,
    leave_one_out: bool,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """For parts of the variables (v,): their edges (v, n), products, and masses by bin."""
    wide = log_odds_grid(grid)
    flat, edges = _edges(graph, surveys, wide)
    for variables, rows in edges:
        for part in chunks(len(variables), _bytes(rows.shape[1], wide), memory):
            where, chosen = rows[part], variables[part]
            own = to_log_odds(grid, flat[where], wide)
            mass, log_odds = product(own, prior[chosen], wide, leave_one_out)
            values = log_odds + prior[chosen][:, None, None]
            yield chosen, where, to_probability(grid, mass, values)


def _edges(
    graph: FactorGraph, surveys: tuple[Tensor, ...], wide: LogOddsGrid
) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """All surveys as rows (E, B) float32, and for each degree n: variables (v,), rows (v, n)."""
    flat = torch.cat([survey.flatten(0, 1) for survey in surveys])
    variable = torch.cat(
        [b.scope.index().expand(b.num_factors, b.arity).flatten() for b in graph.blocks]
    )
    order = variable.argsort(stable=True)
    degree = torch.bincount(variable, minlength=graph.num_variables)
    first = degree.cumsum(0) - degree
    groups = []
    for count in torch.unique(degree[degree > 0]).tolist():
        _bytes(count, wide)
        variables = (degree == count).nonzero()[:, 0]
        offsets = torch.arange(count, device=order.device)
        groups.append((variables, order[first[variables][:, None] + offsets]))
    return flat, groups


def _fast_size(length: int) -> int:
    """The least 2^a·m of at least `length`, m one of 1, 3, 5, 9, 15: sizes with fast transforms."""
    odd = (1, 3, 5, 9, 15)
    return min(m << max(1, (-(-length // m) - 1).bit_length()) for m in odd)


def _bytes(degree: int, wide: LogOddsGrid) -> int:
    """Temporary bytes per variable; an error if there are more than MAX_BYTES."""
    needed = 64 * degree * _fast_size(2 * degree * wide.half + 1)
    if needed > MAX_BYTES:
        raise ValueError(
            f"the exact product over {degree} factors would take {needed / 2**30:.0f} GiB for one "
            "variable; s3p is for small problems: use s4p, or fewer bins"
        )
    return needed
