"""The problems of a graph as separate graphs."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from vitrail.factors.base import Factors
from vitrail.graph import FactorGraph
from vitrail.scopes import Dense, Indexed


def split(graph: FactorGraph) -> list[tuple[FactorGraph, Tensor]]:
    """One graph per problem, with the indices of its variables in the whole graph, (N,) int64.

    The inverse of `graph.join`, except that factors keep their ids.
    """
    owners = [graph.factor_problem(block) for block in graph.blocks]
    parts = []
    for number in range(graph.num_problems):
        variables = torch.nonzero(graph.problem == number)[:, 0]
        chosen = [torch.nonzero(owner == number)[:, 0] for owner in owners]
        blocks = tuple(
            _renumbered(block.select(index), variables)
            for block, index in zip(graph.blocks, chosen, strict=True)
            if len(index) > 0
        )
        problem = torch.zeros_like(variables)
        parts.append((FactorGraph(graph.log_prior[variables], blocks, problem, 1), variables))
    return parts


def _renumbered(block: Factors, variables: Tensor) -> Factors:
    """The same factors on variables 0…N−1; dense scopes stay dense."""
    scope = block.scope
    if isinstance(scope, Dense):
        start = torch.searchsorted(variables, scope.start)
        return replace(block, scope=Dense(start, scope.arity, bool((start == start[0]).all())))
    return replace(block, scope=Indexed(torch.searchsorted(variables, scope.variables)))
