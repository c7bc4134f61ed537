"""Wrappers: solvers that step an inner solver and do something before or after."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.base import MessagePassing


@dataclass(frozen=True)
class WrapperState:
    """The state of the inner solver; subclasses add the state of the wrapper."""

    inner: Any


StateT = TypeVar("StateT", bound=WrapperState)


@dataclass(frozen=True)
class Wrapper(MessagePassing[StateT]):
    """Base of wrappers: everything but `step` is delegated to the inner solver."""

    solver: MessagePassing[Any]

    def __post_init__(self) -> None:
        name = type(self).__name__.lower()
        if not isinstance(self.solver, MessagePassing):
            raise TypeError(
                f"{name} wraps a solver that passes messages, such as belief_propagation, s4p or "
                f"another wrapper, got {type(self.solver).__name__}"
            )
        if any(isinstance(solver, type(self)) for solver in nested_solvers(self.solver)):
            raise ValueError(f"the solver is {name} already; wrap it once")

    @property
    def over_ranks(self) -> bool:
        return self.solver.over_ranks

    @property
    def batch(self) -> int | None:
        """The batch of the inner solver."""
        return getattr(self.solver, "batch", None)

    @abstractmethod
    def wrap_state(self, graph: FactorGraph, inner: Any) -> StateT:
        """The initial state, from that of the inner solver."""

    def init(self, key: Key, graph: FactorGraph) -> StateT:
        return self.wrap_state(graph, self.solver.init(key, graph))

    def log_odds(self, graph: FactorGraph, state: StateT) -> Tensor:
        return self.solver.log_odds(graph, state.inner)

    def candidates(self, key: Key, graph: FactorGraph, state: StateT) -> Tensor:
        return self.solver.candidates(key, graph, state.inner)

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return self.solver.epoch_steps(graph)

    def shift_prior(self, state: StateT, by: Tensor) -> StateT:
        return replace(state, inner=self.solver.shift_prior(state.inner, by))

    def replace_problems(
        self, graph: FactorGraph, state: StateT, fresh: StateT, problems: Tensor
    ) -> StateT:
        inner = self.solver.replace_problems(graph, state.inner, fresh.inner, problems)
        return replace(super().replace_problems(graph, state, fresh, problems), inner=inner)

    def gamma(self, state: StateT) -> Tensor:
        return self.solver.gamma(state.inner)

    def with_gamma(self, state: StateT, gamma: Tensor) -> StateT:
        return replace(state, inner=self.solver.with_gamma(state.inner, gamma))

    def with_damping_in_state(self) -> Wrapper[StateT]:
        return replace(self, solver=self.solver.with_damping_in_state())


def nested_solvers(solver: MessagePassing[Any]) -> Iterator[MessagePassing[Any]]:
    """The solver and its inner solvers, from the outermost to the innermost."""
    yield solver
    if isinstance(solver, Wrapper):
        yield from nested_solvers(solver.solver)
