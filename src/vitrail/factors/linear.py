"""One-layer nets of a graph as plain tables, for exact and incremental searches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.factors.base import Factors
from vitrail.factors.network import Network
from vitrail.factors.split import split
from vitrail.graph import FactorGraph


@dataclass(frozen=True)
class LinearProblem:
    """Maximise the weight of examples with [Σ_i inputs_i·w_i > 0] = label over N bits w."""

    inputs: Tensor  # (M, N) int8 in {−1, 0, 1}
    labels: Tensor  # (M,) bool
    weight: Tensor  # (M,) float64
    low: int  # value of a zero bit, −1 or 0
    variables: Tensor  # (N,) int64, their indices in the graph

    def counts(self) -> Tensor:
        """Integer weight of each example, (M,) int64, in units of 1 or of the smallest weight."""
        whole = bool((self.weight == self.weight.round()).all())
        unit = 1.0 if whole else self.weight[self.weight > 0].min()
        counts = torch.round(self.weight / unit)
        if not torch.allclose(counts * unit, self.weight, rtol=1e-9, atol=0.0):
            raise ValueError(
                "an exact optimum counts examples, so weights must be whole numbers or whole "
                "multiples of the smallest; leave the weights out or use annealing"
            )
        return counts.to(torch.int64)

    def satisfied(self, bits: Tensor) -> Tensor:
        """Whether bits (N,) bool satisfy each example, (M,) bool."""
        values = torch.where(bits, 1, self.low)
        return (self.inputs.to(torch.int64) @ values > 0) == self.labels


def linear_problems(graph: FactorGraph) -> list[LinearProblem] | None:
    """Each problem of the graph as a table, or None if one is not linear; see `linear_problem`."""
    problems = [linear_problem(part, variables) for part, variables in split(graph)]
    known = [problem for problem in problems if problem is not None]
    return known if len(known) == len(problems) else None


def linear_problem(graph: FactorGraph, variables: Tensor) -> LinearProblem | None:
    """A graph of one problem as a table on the CPU, or None if it has other factors.

    variables (N,) int64: their indices in the whole graph. Variables that a factor does not see
    have input 0. All weights must have the same coding.
    """
    tables = [_table(block, graph.num_variables) for block in graph.blocks]
    known = [table for table in tables if table is not None]
    lows = {low for _, _, low in known}
    if len(known) < len(tables) or len(lows) != 1:
        return None
    return LinearProblem(
        torch.cat([inputs for inputs, _, _ in known]),
        torch.cat([labels for _, labels, _ in known]),
        torch.cat([block.weight.cpu() for block in graph.blocks]),
        lows.pop(),
        variables,
    )


def _table(block: Factors, num_variables: int) -> tuple[Tensor, Tensor, int] | None:
    """Inputs (F, N) int8 and labels (F,) bool of linear threshold units, and their low value."""
    low = block.perceptron_low
    if low is None or not isinstance(block, Network):
        return None
    inputs, labels = block.inputs.flatten(1).cpu(), block.labels.cpu() == 1
    columns = block.scope.index().cpu()
    if columns.shape[0] == 1 and block.arity == num_variables:
        return inputs, labels, low
    table = torch.zeros(inputs.shape[0], num_variables, dtype=torch.int8)
    return table.scatter_(1, columns.expand(inputs.shape), inputs), labels, low
