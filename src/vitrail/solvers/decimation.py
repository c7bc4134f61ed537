"""Decimation: fix the most polarised variables, let the rest converge, release mistakes.

A fixed variable has ±FIXED added to its prior. It still receives messages; when their sum has the
opposite sign, the variable is released (backtracking, Parisi 2003).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from vitrail.checks import checked_count, checked_share
from vitrail.graph import FactorGraph
from vitrail.numerics import EXACT_LIMIT
from vitrail.random import Key
from vitrail.solvers.base import PER_VARIABLE, Feedback, Info
from vitrail.solvers.wrapping import Wrapper, WrapperState

FIXED = EXACT_LIMIT  # log-odds; a multiple of the lattice, so subtracting it is exact


@dataclass(frozen=True)
class DecimatedState(WrapperState):
    """The fixed variables."""

    fixed: Tensor = field(metadata=PER_VARIABLE)  # (V,) int8: −1 fixed to 0, +1 to 1; 0 is free


@dataclass(frozen=True)
class Decimated(Wrapper[DecimatedState]):
    """Fix the most polarised variables of any message-passing solver, a few at a time.

    Variables whose messages have the opposite sign are released first. A contradiction releases
    all variables of its problem.

    Args:
        solver: The solver to decimate.
        fraction: Share of each problem's variables that is fixed at a time.
        rest: Steps between two rounds of fixing.

    Examples:
        >>> from vitrail.solvers import s4p
        >>> from vitrail.updates import flip
        >>> decimated(s4p(flip(5)), fraction=0.1).rest
        5
    """

    _: KW_ONLY
    fraction: float = 0.05
    rest: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_share("fraction", self.fraction)
        checked_count("rest", self.rest, 1)

    def wrap_state(self, graph: FactorGraph, inner: Any) -> DecimatedState:
        fixed = torch.zeros(graph.num_variables, dtype=torch.int8, device=graph.device)
        return DecimatedState(inner, fixed)

    def step(
        self, key: Key, graph: FactorGraph, state: DecimatedState, feedback: Feedback
    ) -> tuple[DecimatedState, Info]:
        inner, info = self.solver.step(key, graph, state.inner, feedback)
        failed = info.contradiction & feedback.active
        fixed = torch.where(failed[graph.problem], 0, state.fixed)
        if (key.step + 1) % self.rest == 0:
            free = self.solver.log_odds(graph, inner) - FIXED * state.fixed
            outvoted = (free * fixed < 0) & feedback.active[graph.problem]
            fixed = torch.where(outvoted, 0, fixed)
            fixed = self._fix_most_polarised(graph, fixed, free, outvoted, feedback.active)
        inner = self.solver.shift_prior(inner, FIXED * (fixed - state.fixed).double())
        share = graph.over_variables((fixed != 0).double()) / graph.variables_per_problem
        info = replace(
            info,
            # converged messages do not end the run before all variables are fixed
            residual=torch.where(share < 1, 1.0, info.residual),
            contradiction=torch.zeros_like(info.contradiction),
            records={**info.records, "fixed": share},
        )
        return DecimatedState(inner, fixed), info

    def _fix_most_polarised(
        self, graph: FactorGraph, fixed: Tensor, free: Tensor, excluded: Tensor, active: Tensor
    ) -> Tensor:
        """Fix ⌈fraction·N⌉ more of each active problem, the most polarised ones first."""
        open_ = (fixed == 0) & ~excluded & active[graph.problem]
        polarisation = torch.where(open_, free.abs(), -1.0)
        order = polarisation.argsort(descending=True)
        order = order[torch.sort(graph.problem[order], stable=True).indices]
        sizes = graph.variables_per_problem
        first = (sizes.cumsum(0) - sizes)[graph.problem[order]]
        rank = torch.empty_like(order)
        rank[order] = torch.arange(len(order), device=order.device) - first
        quota = (self.fraction * sizes).ceil().long()[graph.problem]
        chosen = open_ & (rank < quota) & (free != 0)
        return torch.where(chosen, torch.sign(free).to(torch.int8), fixed)


decimated = Decimated


def decimation_steps(solver: Decimated) -> int:
    """Steps to fix all variables once without releases, plus half as many."""
    return math.ceil(1.5 * solver.rest / solver.fraction)
