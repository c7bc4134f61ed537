"""Damping that grows when beliefs oscillate and shrinks when they do not."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.base import PER_VARIABLE, Feedback, Info
from vitrail.solvers.damping import damping_of, weight_of_new
from vitrail.solvers.wrapping import Wrapper, WrapperState


@dataclass(frozen=True)
class SteadyState(WrapperState):
    """Beliefs at the last step, and their change since the step before."""

    belief: Tensor = field(metadata=PER_VARIABLE)  # (V,) float64 log-odds
    change: Tensor = field(metadata=PER_VARIABLE)  # (V,) float64, of P(w = 1)


@dataclass(frozen=True)
class Steady(Wrapper[SteadyState]):
    """Adapt the damping of a solver to the oscillation of its beliefs, problem by problem.

    Beliefs oscillate when a step reverses the previous one: the cosine between the changes of
    P(w = 1) at two consecutive steps is below −½.

    Args:
        solver: The solver; its own damping, a number, is the initial one.
        low: Smallest damping.
        high: Largest damping.
        cut: Factor of 1 − damping, the weight of new messages, where beliefs oscillate.
        grow: Factor of 1 − damping where they do not.

    Examples:
        >>> from vitrail.solvers import belief_propagation
        >>> from vitrail.updates import flip
        >>> steady(belief_propagation(flip(5), damping=0.0)).high
        0.99
    """

    _: KW_ONLY
    low: float = 0.0
    high: float = 0.99
    cut: float = 0.5
    grow: float = 1.02

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.low <= self.high < 1:
            raise ValueError(
                f"damping lies between 0 <= low <= high < 1, got {self.low} and {self.high}"
            )
        if not 0 < self.cut < 1 <= self.grow:
            raise ValueError(
                f"cut must lie in (0, 1) and grow be at least 1, got {self.cut} and {self.grow}"
            )
        object.__setattr__(self, "solver", self.solver.with_damping_in_state())

    def wrap_state(self, graph: FactorGraph, inner: Any) -> SteadyState:
        belief = self.solver.log_odds(graph, inner)
        return SteadyState(inner, belief, torch.zeros_like(belief))

    def step(
        self, key: Key, graph: FactorGraph, state: SteadyState, feedback: Feedback
    ) -> tuple[SteadyState, Info]:
        inner, info = self.solver.step(key, graph, state.inner, feedback)
        belief = self.solver.log_odds(graph, inner)
        change = torch.sigmoid(belief) - torch.sigmoid(state.belief)
        cosine = _cosine(graph, change, state.change)
        factor = torch.where(cosine < -0.5, self.cut, self.grow)
        factor = torch.where(feedback.active, factor, 1.0)
        used = self.solver.gamma(inner)
        least, most = weight_of_new(self.high), weight_of_new(self.low)
        inner = self.solver.with_gamma(inner, (used * factor).clamp(least, most))
        info = replace(info, records={**info.records, "damping": damping_of(used)})
        return SteadyState(inner, belief, change), info

    def shift_prior(self, state: SteadyState, by: Tensor) -> SteadyState:
        return replace(super().shift_prior(state, by), belief=state.belief + by)


steady = Steady


def _cosine(graph: FactorGraph, one: Tensor, other: Tensor) -> Tensor:
    """Cosine of two (V,) vectors within each problem, (P,); 0 where one of them is zero."""
    total = graph.over_variables
    size = (total(one * one) * total(other * other)).sqrt()
    return torch.where(size > 0, total(one * other) / size.clamp(min=1e-300), 0.0)
