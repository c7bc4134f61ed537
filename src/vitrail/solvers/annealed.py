"""Annealed beta: the same solver on a graph whose beta changes with the steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.base import Feedback, Info, MessagePassing
from vitrail.solvers.damping import Schedule
from vitrail.solvers.wrapping import Wrapper, WrapperState


@dataclass(frozen=True)
class Geometric:
    """beta from `first` to `last` in `steps` steps, then `last`."""

    first: float
    last: float
    steps: int

    def __call__(self, step: int) -> float:
        done = min(1.0, step / self.steps)
        return self.first ** (1 - done) * self.last**done


def geometric(first: float, last: float, steps: int) -> Geometric:
    """A schedule of beta that grows by the same factor at every step.

    Args:
        first: Beta at step 0.
        last: Beta from step `steps` on.
        steps: Steps from one to the other.

    Examples:
        >>> geometric(1.0, 4.0, steps=2)(1)
        2.0
    """
    if not 0 < first < float("inf") or not 0 < last < float("inf") or steps < 1:
        raise ValueError(
            f"beta goes from one positive number to another in at least one step, "
            f"got {first}, {last} in {steps}"
        )
    return Geometric(first, last, steps)


@dataclass(frozen=True)
class Annealed(Wrapper[WrapperState]):
    """Step t uses beta = schedule(t) for every factor, or that multiple of the factor's own beta.

    Accuracy and best do not depend on beta.
    """

    beta: Schedule
    relative: bool

    def wrap_state(self, graph: FactorGraph, inner: Any) -> WrapperState:
        return WrapperState(inner)

    def step(
        self, key: Key, graph: FactorGraph, state: WrapperState, feedback: Feedback
    ) -> tuple[WrapperState, Info]:
        beta = self.beta(key.step)
        seen = graph.at_multiple(beta) if self.relative else graph.with_beta(beta)
        inner, info = self.solver.step(key, seen, state.inner, feedback)
        return WrapperState(inner), info


def annealed(solver: MessagePassing[Any], beta: Schedule, *, relative: bool = False) -> Annealed:
    """Run a message-passing solver with a beta that changes from step to step.

    Args:
        solver: What is annealed.
        beta: Inverse temperature by step, e.g. `geometric(0.5, 5.0, steps=200)`.
        relative: Whether it is a multiple of the beta that each factor has.

    Examples:
        >>> from vitrail.solvers import belief_propagation
        >>> from vitrail.updates import flip
        >>> solver = annealed(belief_propagation(flip(8)), geometric(0.5, 5.0, steps=200))
        >>> solver.beta(200)
        5.0
    """
    return Annealed(solver, beta, relative)
