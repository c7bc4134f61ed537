"""One-layer nets by constraint programming (CP-SAT of OR-Tools), with a proven bound.

    maximise Σ_f weight_f·s_f   over bits w and s,   s_f ⇒ [Σ_i x_fi·w_i > 0] = label_f

The model is linear in the bits; ±1 weights are 2·w − 1. Workers are interleaved, so that a run is
reproducible; easy problems take longer.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from vitrail.baselines.exhaustive import ExactSolver
from vitrail.extras import needs
from vitrail.factors.linear import LinearProblem


@dataclass(frozen=True)
class CPSAT(ExactSolver):
    """The best weights of one-layer nets and a proven bound, problem by problem.

    history["bound"] is the bound, as an accuracy.

    Args:
        effort: Limit in CP-SAT's deterministic time, which is about seconds and repeatable; None
            for no limit.
        seconds: Limit by the clock; results then depend on the machine.
        workers: Threads of CP-SAT.

    Examples:
        >>> cpsat(effort=5.0).workers
        2
    """

    _: KW_ONLY
    effort: float | None = 60.0
    seconds: float | None = None
    workers: int = 2
    unknown = {"bound": 1.0, "cut_by_seconds": 0.0}  # noqa: RUF012 (a ClassVar of the base)

    def solve(self, problem: LinearProblem, seed: int) -> tuple[Tensor, int, dict[str, float]]:
        with needs("lab", "CP-SAT"):
            from ortools.sat.python import cp_model
        counts = problem.counts()
        model = cp_model.CpModel()
        weights = [model.new_bool_var(f"w{i}") for i in range(len(problem.variables))]
        met = [model.new_bool_var(f"s{f}") for f in range(len(counts))]
        # h = Σ x·((1 − low)·w + low)
        low, inputs, weighted_sum = problem.low, problem.inputs, cp_model.LinearExpr.weighted_sum
        for row, label, is_met in zip(inputs.tolist(), problem.labels.tolist(), met, strict=True):
            h = weighted_sum(weights, [(1 - low) * x for x in row]) + low * sum(row)
            model.add(h >= 1 if label else h <= 0).only_enforce_if(is_met)
        model.maximize(weighted_sum(met, counts.tolist()))

        solver = cp_model.CpSolver()
        solver.parameters.random_seed = seed % 2**31
        solver.parameters.num_workers = self.workers
        solver.parameters.interleave_search = True
        if self.effort is not None:
            solver.parameters.max_deterministic_time = self.effort
        if self.seconds is not None:
            solver.parameters.max_time_in_seconds = self.seconds
        found = solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        bits = torch.tensor([found and solver.boolean_value(weight) for weight in weights])
        bound = math.floor(solver.best_objective_bound + 1e-6) / int(counts.sum()) if found else 1.0
        cut = self.seconds is not None and solver.wall_time >= self.seconds
        return bits, 0, {"bound": bound, "cut_by_seconds": float(cut)}


cpsat = CPSAT
