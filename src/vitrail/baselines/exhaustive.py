"""The true optimum of one-layer nets: every configuration is evaluated."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.factors.linear import LinearProblem, linear_problems
from vitrail.graph import FactorGraph

MAX_WEIGHTS = 44  # each weight doubles the time: 31 take seconds on two cores, 44 take hours
MAX_EXAMPLES = 2**15 - 1  # with those of weight k repeated k times; satisfied ones fit 16 bits


@dataclass(frozen=True)
class Optimum:
    """The optimum of one problem, and the number of configurations that reach it."""

    weights: Tensor  # (N,) bool; of all optima the one with the lowest Σ_i w_i·2^i
    satisfied: int  # weight of the satisfied examples
    examples: int  # weight of all examples
    optima: int  # number of configurations that reach it

    @property
    def accuracy(self) -> float:
        """Share of satisfied examples."""
        return self.satisfied / self.examples


def optima(graph: FactorGraph) -> list[Optimum]:
    """The optimum of each problem of a graph of linear threshold units, by enumeration.

    It takes about 2^N·M/40 nanoseconds on one core, for N weights and M examples.

    Args:
        graph: Perceptrons with at most 44 weights.

    Examples:
        >>> from vitrail import factor_graph, perceptron
        >>> from vitrail.datasets import glass
        >>> data = glass(20, 7, seed=0)
        >>> best = optima(factor_graph(perceptron(data.inputs, data.labels)))[0]
        >>> best.examples
        20
    """
    problems = linear_problems(graph)
    if problems is None:
        raise ValueError(
            "exhaustive search takes linear threshold units only, and this graph has other "
            "factors; use annealing there"
        )
    return [_optimum(problem) for problem in problems]


def _optimum(problem: LinearProblem) -> Optimum:
    from vitrail.kernels.cpu.enumerate import enumerate_weights

    if len(problem.variables) > MAX_WEIGHTS:
        raise ValueError(
            f"exhaustive search takes at most {MAX_WEIGHTS} weights, got "
            f"{len(problem.variables)}; use annealing for a good answer"
        )
    copies = problem.counts()
    if int(copies.sum()) > MAX_EXAMPLES:
        raise ValueError(
            f"exhaustive search takes at most {MAX_EXAMPLES} examples, each counted as often as "
            f"its weight says, got {int(copies.sum())}; use annealing there"
        )
    inputs = problem.inputs.repeat_interleave(copies, 0).numpy()
    labels = problem.labels.repeat_interleave(copies, 0).numpy()
    satisfied, count, index = enumerate_weights(inputs, labels, problem.low)
    return Optimum(
        (index >> torch.arange(len(problem.variables)) & 1).to(torch.bool),
        satisfied,
        len(labels),
        count,
    )
