"""Tiny graphs for which survey propagation can be enumerated."""

import math

import torch

from vitrail.factors import table
from vitrail.graph import FactorGraph, factor_graph, indexed

HARD, SOFT = math.inf, 1.5


def random_surveys(graph: FactorGraph, bins: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Dirichlet(1, …, 1) surveys of every edge, (F, A, B) float64 a block."""
    generator = torch.Generator().manual_seed(seed)
    out = []
    for block in graph.blocks:
        shape = block.num_factors, block.arity, bins
        mass = -torch.log(torch.rand(shape, generator=generator, dtype=torch.float64))
        out.append(mass / mass.sum(-1, keepdim=True))
    return tuple(out)


def triangle(beta: float, seed: int = 0) -> FactorGraph:
    """3 variables, 3 factors of 0/1 tables on all of them, about half of the rows allowed."""
    generator = torch.Generator().manual_seed(seed)
    rows = (torch.rand(3, 8, generator=generator) < 0.6).double()
    rows[:, 0] = 1.0
    prior = torch.tensor([0.3, -0.2, 0.0], dtype=torch.float64)
    scope = indexed([[0, 1, 2], [2, 0, 1], [1, 2, 0]])
    return factor_graph(table(rows, scope, beta), log_prior=prior)
