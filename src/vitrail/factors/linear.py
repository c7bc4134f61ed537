"""One-layer nets in a graph, as plain tables: what exact and incremental searches work on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.factors.base import Classifiers
from vitrail.factors.network import Network
from vitrail.factors.perceptron import Perceptron
from vitrail.graph import FactorGraph


@dataclass(frozen=True)
class LinearProblem:
    """Maximise the weight of examples with [Σ_i inputs_i·w_i > 0] = label over N bits w."""

    inputs: Tensor  # (M, N) int8 in {−1, 0, 1}
    labels: Tensor  # (M,) bool
    weight: Tensor  # (M,) float64
    low: int  # what a zero bit stands for, −1 or 0
    variables: Tensor  # (N,) int64, their numbers in the graph

    def counts(self) -> Tensor:
        """How often each example counts, (M,) int64: its weight in units of the smallest one."""
        unit = self.weight[self.weight > 0].min()
        counts = torch.round(self.weight / unit)
        if not torch.allclose(counts * unit, self.weight, rtol=1e-9, atol=0.0):
            raise ValueError(
                "an exact optimum counts examples, so weights must be whole multiples of the "
                "smallest; leave the weights out or use annealing"
            )
        return counts.to(torch.int64)

    def satisfied(self, bits: Tensor) -> Tensor:
        """Which examples bits (N,) bool get right, (M,) bool."""
        values = torch.where(bits, 1, self.low)
        return (self.inputs.to(torch.int64) @ values > 0) == self.labels


def linear_problems(graph: FactorGraph) -> list[LinearProblem] | None:
    """Each problem of the graph as a table, or None where a factor is no linear threshold unit.

    Variables that a factor does not see have input 0. Tables are on the CPU.
    """
    blocks = [block.to("cpu") for block in graph.blocks if isinstance(block, Classifiers)]
    lows = {_low(block) for block in blocks}
    if len(blocks) < len(graph.blocks) or len(lows) > 1:
        return None
    (low,) = lows
    if low is None:
        return None
    problem_of = graph.problem.cpu()
    owners = [graph.factor_problem(block).cpu() for block in graph.blocks]
    tables = []
    for problem in range(graph.num_problems):
        variables = torch.nonzero(problem_of == problem)[:, 0]
        parts = [
            block.select(torch.nonzero(owner == problem)[:, 0])
            for block, owner in zip(blocks, owners, strict=True)
        ]
        wide = [_spread(part, variables) for part in parts if part.num_factors > 0]
        tables.append(
            LinearProblem(
                torch.cat(wide),
                torch.cat([part.labels == 1 for part in parts]),
                torch.cat([part.weight for part in parts]),
                low,
                variables,
            )
        )
    return tables


def _low(block: Classifiers) -> int | None:
    """What a zero bit of a linear threshold unit stands for; None for anything else."""
    if isinstance(block, Perceptron):
        return block.low
    layers = block.layers if isinstance(block, Network) else None
    if layers is not None and layers.num_hidden == 0 and layers.num_outputs == 1:
        return layers.low_output
    return None


def _spread(block: Classifiers, variables: Tensor) -> Tensor:
    """Inputs (F, A) of a block at the columns of their variables, (F, N) int8."""
    table = torch.zeros(block.num_factors, len(variables), dtype=torch.int8)
    columns = torch.searchsorted(variables, block.scope.index())
    return table.scatter_(
        1, columns.expand(block.num_factors, block.arity), block.inputs.flatten(1)
    )
