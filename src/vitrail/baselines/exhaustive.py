"""The true optimum of one-layer nets: every configuration is evaluated."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vitrail.factors.linear import LinearProblem, linear_problems
from vitrail.graph import FactorGraph
from vitrail.numerics import EXACT_LIMIT
from vitrail.random import Key
from vitrail.solvers import Feedback, Info, Solver

MAX_WEIGHTS = 44  # each weight doubles the time: 31 take a second on two cores, 44 take hours
MAX_EXAMPLES = 2**16  # with those of weight k repeated k times


@dataclass(frozen=True)
class Optimum:
    """The optimum of one problem, and the number of configurations that reach it."""

    weights: Tensor  # (N,) bool; of all optima the one with the lowest Σ_i w_i·2^i
    satisfied: int  # weight of the satisfied examples
    examples: int  # weight of all examples
    optima: int  # number of configurations that reach it
    histogram: Tensor | None  # (examples + 1,) int64: configurations by satisfied examples

    @property
    def accuracy(self) -> float:
        """Share of satisfied examples."""
        return self.satisfied / self.examples


def optima(graph: FactorGraph, histogram: bool = False) -> list[Optimum]:
    """The optimum of each problem of a graph of linear threshold units, by enumeration.

    It takes 2^N·⌈M/64⌉ times a nanosecond or less on each core, for N weights and M examples.

    Args:
        graph: Perceptrons.
        histogram: Whether to count configurations by how many examples they satisfy.

    Examples:
        >>> from vitrail import factor_graph, perceptron
        >>> from vitrail.datasets import glass
        >>> data = glass(20, 7, seed=0)
        >>> best = optima(factor_graph(perceptron(data.inputs, data.labels)))[0]
        >>> best.examples
        20
    """
    return [_optimum(problem, histogram) for problem in _small(graph)]


def _linear(graph: FactorGraph) -> list[LinearProblem]:
    problems = linear_problems(graph)
    if problems is None:
        raise ValueError(
            "exact searches take linear threshold units only, and this graph has other factors; "
            "use annealing there"
        )
    return problems


def _small(graph: FactorGraph) -> list[LinearProblem]:
    problems = _linear(graph)
    largest = max(len(problem.variables) for problem in problems)
    if largest > MAX_WEIGHTS:
        raise ValueError(
            f"exhaustive search takes at most {MAX_WEIGHTS} weights, got {largest}; "
            "use cpsat for a proven bound or annealing for a good answer"
        )
    return problems


def _optimum(problem: LinearProblem, histogram: bool) -> Optimum:
    from vitrail.kernels.cpu.enumerate import enumerate_weights

    copies = problem.counts()
    if int(copies.sum()) > MAX_EXAMPLES:
        raise ValueError(
            f"exhaustive search takes at most {MAX_EXAMPLES} examples, each counted as often as "
            f"its weight says, got {int(copies.sum())}; use annealing there"
        )
    inputs = problem.inputs.repeat_interleave(copies, 0).numpy()
    labels = problem.labels.repeat_interleave(copies, 0).numpy()
    found = enumerate_weights(inputs, labels, problem.low, histogram)
    places = torch.arange(len(problem.variables))
    return Optimum(
        (found.index >> places & 1).to(torch.bool),
        found.satisfied,
        len(labels),
        found.count,
        None if found.histogram is None else torch.from_numpy(found.histogram),
    )


@dataclass(frozen=True)
class ExactState:
    """The optimum, after the only step."""

    best: Tensor  # (V,) bool


@dataclass(frozen=True)
class ExactSolver(Solver[ExactState]):
    """Solves each problem in one step, after which the run has converged."""

    unknown: ClassVar[dict[str, float]]  # columns of the history, for inactive problems

    def problems(self, graph: FactorGraph) -> list[LinearProblem]:
        """The problems of the graph; an error if this solver does not support them."""
        return _linear(graph)

    @abstractmethod
    def solve(self, problem: LinearProblem, seed: int) -> tuple[Tensor, int, dict[str, float]]:
        """The weights (N,) bool, factor evaluations, and what goes into the history."""

    def init(self, key: Key, graph: FactorGraph) -> ExactState:
        self.problems(graph)
        return ExactState(graph.log_prior > 0)

    def step(
        self, key: Key, graph: FactorGraph, state: ExactState, feedback: Feedback
    ) -> tuple[ExactState, Info]:
        best, evaluations = state.best.clone(), 0
        zero = torch.zeros_like(feedback.accuracy)
        records = {name: torch.full_like(zero, value) for name, value in self.unknown.items()}
        for number, problem in enumerate(self.problems(graph)):
            if not feedback.active[number]:
                continue
            weights, spent, found = self.solve(problem, key.seed)
            best[problem.variables.to(best.device)] = weights.to(best.device)
            evaluations += spent
            for name, value in found.items():
                records[name][number] = value
        none = torch.zeros_like(feedback.active)
        return ExactState(best), Info(zero, evaluations, none, records=records)

    def log_odds(self, graph: FactorGraph, state: ExactState) -> Tensor:
        return torch.where(state.best, EXACT_LIMIT, -EXACT_LIMIT).to(torch.float64)


@dataclass(frozen=True)
class Exhaustive(ExactSolver):
    """The true optimum of one-layer nets of up to about 36 weights; `optima` gives more detail.

    Every configuration is evaluated; history["optima"] counts the best ones.

    Examples:
        >>> from vitrail import factor_graph, perceptron, run
        >>> from vitrail.datasets import glass
        >>> data = glass(5, 11, seed=0)
        >>> run(exhaustive(), factor_graph(perceptron(data.inputs, data.labels))).best_accuracy
        tensor([1.], dtype=torch.float64)
    """

    unknown = {"optima": 0.0}  # noqa: RUF012 (a ClassVar of the base)

    def problems(self, graph: FactorGraph) -> list[LinearProblem]:
        return _small(graph)

    def solve(self, problem: LinearProblem, seed: int) -> tuple[Tensor, int, dict[str, float]]:
        found = _optimum(problem, histogram=False)
        evaluations = 2 ** len(problem.variables) * len(problem.labels)
        return found.weights, evaluations, {"optima": float(found.optima)}


exhaustive = Exhaustive
