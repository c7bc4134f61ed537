"""Solvers built around another solver: what they hand on unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.base import Solver


class Wrapped(Protocol):
    """A state that holds the state of the solver inside."""

    @property
    def inner(self) -> Any: ...


WrappedT = TypeVar("WrappedT", bound=Wrapped)


@dataclass(frozen=True)
class Wrapper(Solver[WrappedT], Generic[WrappedT]):
    """A solver that steps the one inside and does something before or after."""

    solver: Solver

    def log_odds(self, graph: FactorGraph, state: WrappedT) -> Tensor:
        return self.solver.log_odds(graph, state.inner)

    def candidates(self, key: Key, graph: FactorGraph, state: WrappedT) -> Tensor:
        return self.solver.candidates(key, graph, state.inner)

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return self.solver.epoch_steps(graph)
