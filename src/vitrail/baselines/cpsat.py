"""One-layer nets by constraint programming (CP-SAT of OR-Tools), with a proven bound.

    maximise Σ_f weight_f·s_f   over bits w and s,   s_f ⇒ [Σ_i x_fi·w_i > 0] = label_f

The model is linear in the bits, with w read as ±1 through 2·w − 1. Workers are interleaved,
which makes a run repeatable; easy problems take longer that way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.baselines.exhaustive import ExactSolver
from vitrail.extras import needs
from vitrail.factors.linear import LinearProblem, linear_problems
from vitrail.graph import FactorGraph


@dataclass(frozen=True)
class Proof:
    """What CP-SAT found for one problem, and what it could rule out."""

    weights: Tensor  # (N,) bool, the best found
    satisfied: int  # examples, each counted as often as its weight says
    bound: int  # no configuration satisfies more
    examples: int  # how many there are, counted by their weights
    cut_by_seconds: bool  # the clock stopped it, so that another machine may find otherwise

    @property
    def optimal(self) -> bool:
        """Whether what was found reaches the bound."""
        return self.satisfied == self.bound


@dataclass(frozen=True)
class Limits:
    """When to give up: `effort` counts CP-SAT's own work (about seconds), the same anywhere."""

    effort: float | None
    seconds: float | None
    workers: int


def prove(
    graph: FactorGraph,
    *,
    effort: float | None = 60.0,
    seconds: float | None = None,
    workers: int = 2,
    seed: int = 0,
) -> list[Proof]:
    """The best weights and a proven bound for each problem of a graph of linear threshold units.

    Args:
        graph: Perceptrons; ortools must be installed.
        effort: Limit in CP-SAT's deterministic time, which is about seconds and repeatable; None
            for no limit.
        seconds: Limit by the clock; results then depend on the machine.
        workers: Threads of CP-SAT.
        seed: Same number, same result.

    Examples:
        >>> from vitrail import factor_graph, perceptron
        >>> from vitrail.datasets import glass
        >>> data = glass(5, 7, seed=0)
        >>> proof = prove(factor_graph(perceptron(data.inputs, data.labels)))[0]  # doctest: +SKIP
        >>> proof.satisfied, proof.bound  # doctest: +SKIP
        (5, 5)
    """
    limits = Limits(effort, seconds, workers)
    return [_prove(problem, limits, seed) for problem in _linear(graph)]


def _linear(graph: FactorGraph) -> list[LinearProblem]:
    problems = linear_problems(graph)
    if problems is None:
        raise ValueError(
            "CP-SAT takes linear threshold units only, and this graph has other factors; "
            "use annealing there"
        )
    return problems


def _prove(problem: LinearProblem, limits: Limits, seed: int) -> Proof:
    with needs("lab", "CP-SAT"):
        from ortools.sat.python import cp_model
    counts = problem.counts()
    model = cp_model.CpModel()
    weights = [model.new_bool_var(f"w{i}") for i in range(len(problem.variables))]
    met = [model.new_bool_var(f"s{f}") for f in range(len(counts))]
    # h = Σ x·((1 − low)·w + low)
    low, inputs = problem.low, problem.inputs.tolist()
    for row, label, is_met in zip(inputs, problem.labels.tolist(), met, strict=True):
        h = cp_model.LinearExpr.weighted_sum(weights, [(1 - low) * x for x in row]) + low * sum(row)
        model.add(h >= 1 if label else h <= 0).only_enforce_if(is_met)
    model.maximize(cp_model.LinearExpr.weighted_sum(met, counts.tolist()))

    solver = cp_model.CpSolver()
    solver.parameters.random_seed = seed % 2**31
    solver.parameters.num_workers = limits.workers
    solver.parameters.interleave_search = True
    if limits.effort is not None:
        solver.parameters.max_deterministic_time = limits.effort
    if limits.seconds is not None:
        solver.parameters.max_time_in_seconds = limits.seconds
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    bits = torch.tensor([found and solver.boolean_value(weight) for weight in weights])
    total = int(counts.sum())
    return Proof(
        bits,
        int(counts[problem.satisfied(bits)].sum()),
        math.floor(solver.best_objective_bound + 1e-6) if found else total,
        total,
        limits.seconds is not None and solver.wall_time >= limits.seconds,
    )


@dataclass(frozen=True)
class CPSAT(ExactSolver):
    """CP-SAT as a solver; history["bound"] is the proven bound, as an accuracy."""

    limits: Limits
    unknown = {"bound": 1.0, "cut_by_seconds": 0.0}  # noqa: RUF012 (a ClassVar of the base)

    def problems(self, graph: FactorGraph) -> list[LinearProblem]:
        return _linear(graph)

    def solve(self, problem: LinearProblem, seed: int) -> tuple[Tensor, int, dict[str, float]]:
        proof = _prove(problem, self.limits, seed)
        bound, cut = proof.bound / proof.examples, float(proof.cut_by_seconds)
        return proof.weights, 0, {"bound": bound, "cut_by_seconds": cut}


def cpsat(*, effort: float | None = 60.0, seconds: float | None = None, workers: int = 2) -> CPSAT:
    """CP-SAT on one-layer nets, each problem within the limits that `prove` explains.

    Args:
        effort: Limit in CP-SAT's deterministic time; None for no limit.
        seconds: Limit by the clock.
        workers: Threads of CP-SAT.

    Examples:
        >>> cpsat(effort=5.0).limits.workers
        2
    """
    return CPSAT(Limits(effort, seconds, workers))
