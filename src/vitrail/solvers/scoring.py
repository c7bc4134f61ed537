"""How many factors a candidate satisfies: what the loop asks at every step."""

from __future__ import annotations

import torch
from torch import Tensor

from vitrail.factors import Factors
from vitrail.graph import FactorGraph
from vitrail.kernels.dispatch import find


def satisfied(graph: FactorGraph, states: Tensor) -> Tensor:
    """`graph.satisfied` of configurations (C, V) bool: (C, P) float64, compiled where it can be."""
    found = [_by_kernel(block, states) for block in graph.blocks]
    if any(part is None for part in found):
        return graph.satisfied(states)
    weighted = [
        part.to(torch.float64) * weight
        for part, weight in zip(found, graph.weights, strict=True)
        if part is not None
    ]
    return graph.per_problem(weighted)


def _by_kernel(block: Factors, states: Tensor) -> Tensor | None:
    terms = block.num_factors * block.arity * len(states)
    kernel = find("score", "auto", block, terms // 4, 1)  # four cost about a draw
    return None if kernel is None else kernel.satisfied(block, states)
