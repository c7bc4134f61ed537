"""Solvers built around another solver: what they hand on, and what cannot be wrapped."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.base import MessagePassing

StateT = TypeVar("StateT")


@dataclass(frozen=True)
class Wrapper(MessagePassing[StateT], Generic[StateT]):
    """A solver that steps the one inside and does something before or after.

    Its state is a dataclass that holds the other's as `inner`; a wrapper that has nothing to
    remember overrides `inside` and `put`, and its state is the other's.
    """

    solver: MessagePassing[Any]

    def __post_init__(self) -> None:
        name = type(self).__name__.lower()
        if not isinstance(self.solver, MessagePassing):
            raise TypeError(
                f"{name} goes around a solver that passes messages, such as belief_propagation, "
                f"s4p or another wrapper, got {type(self.solver).__name__}"
            )
        if any(isinstance(solver, type(self)) for solver in solvers_inside(self.solver)):
            raise ValueError(f"the solver is {name} already; wrap it once, with one setting")

    @property
    def over_ranks(self) -> bool:
        return self.solver.over_ranks

    @abstractmethod
    def wrapped(self, graph: FactorGraph, inner: Any) -> StateT:
        """The first state around a first state of the solver inside."""

    def inside(self, state: StateT) -> Any:
        """The state of the solver inside."""
        return state.inner  # pyright: ignore[reportAttributeAccessIssue] (no type variable says so)

    def put(self, state: StateT, inner: Any) -> StateT:
        """The state with another one inside."""
        return replace(state, inner=inner)  # pyright: ignore[reportCallIssue, reportArgumentType]

    def init(self, key: Key, graph: FactorGraph) -> StateT:
        return self.wrapped(graph, self.solver.init(key, graph))

    def around(self, graph: FactorGraph, innermost: Any) -> StateT:
        return self.wrapped(graph, self.solver.around(graph, innermost))

    def log_odds(self, graph: FactorGraph, state: StateT) -> Tensor:
        return self.solver.log_odds(graph, self.inside(state))

    def candidates(self, key: Key, graph: FactorGraph, state: StateT) -> Tensor:
        return self.solver.candidates(key, graph, self.inside(state))

    @property
    def batch(self) -> int | None:
        """That of the solver inside."""
        return getattr(self.solver, "batch", None)

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        return self.solver.epoch_steps(graph)

    def shifted(self, state: StateT, by: Tensor) -> StateT:
        return self.put(state, self.solver.shifted(self.inside(state), by))

    def renewed(self, graph: FactorGraph, state: StateT, fresh: StateT, problems: Tensor) -> StateT:
        old, new = self.inside(state), self.inside(fresh)
        return self.put(state, self.solver.renewed(graph, old, new, problems))

    def gamma(self, state: StateT) -> Tensor:
        return self.solver.gamma(self.inside(state))

    def with_gamma(self, state: StateT, gamma: Tensor) -> StateT:
        return self.put(state, self.solver.with_gamma(self.inside(state), gamma))

    def with_held_damping(self) -> Wrapper[StateT]:
        return replace(self, solver=self.solver.with_held_damping())


def solvers_inside(solver: MessagePassing[Any]) -> Iterator[MessagePassing[Any]]:
    """The solver and those inside it, from the outermost to the innermost."""
    yield solver
    if isinstance(solver, Wrapper):
        yield from solvers_inside(solver.solver)


def innermost_state(state: Any) -> Any:
    """The messages' own state inside all wrappers."""
    while hasattr(state, "inner"):
        state = state.inner
    return state
