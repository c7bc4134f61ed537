"""Annealing: a solver on a graph whose beta changes from step to step."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.base import Feedback, Info
from vitrail.solvers.damping import Schedule
from vitrail.solvers.wrapping import Wrapper, WrapperState


@dataclass(frozen=True)
class Geometric:
    """A schedule of beta that grows by the same factor at every step.

    Args:
        first: Beta at step 0.
        last: Beta from step `steps` on.
        steps: Steps from one to the other.

    Examples:
        >>> geometric(1.0, 4.0, steps=2)(1)
        2.0
    """

    first: float
    last: float
    steps: int

    def __post_init__(self) -> None:
        if not 0 < self.first < math.inf or not 0 < self.last < math.inf or self.steps < 1:
            raise ValueError(
                "beta goes from one positive number to another in at least one step, "
                f"got {self.first}, {self.last} in {self.steps}"
            )

    def __call__(self, step: int) -> float:
        done = min(1.0, step / self.steps)
        return self.first ** (1 - done) * self.last**done


geometric = Geometric


@dataclass(frozen=True)
class Annealed(Wrapper[WrapperState]):
    """Run a message-passing solver with a beta that changes from step to step.

    Accuracy and best do not depend on beta.

    Args:
        solver: The solver to anneal.
        beta: Inverse temperature by step, e.g. `geometric(0.5, 5.0, steps=200)`.
        relative: Whether it is a multiple of the beta that each factor has.

    Examples:
        >>> from vitrail.solvers import belief_propagation
        >>> from vitrail.updates import flip
        >>> solver = annealed(belief_propagation(flip(8)), geometric(0.5, 5.0, steps=200))
        >>> solver.beta(200)
        5.0
    """

    beta: Schedule
    _: KW_ONLY
    relative: bool = False

    def wrap_state(self, graph: FactorGraph, inner: Any) -> WrapperState:
        return WrapperState(inner)

    def step(
        self, key: Key, graph: FactorGraph, state: WrapperState, feedback: Feedback
    ) -> tuple[WrapperState, Info]:
        beta = self.beta(key.step)
        seen = graph.at_multiple(beta) if self.relative else graph.with_beta(beta)
        inner, info = self.solver.step(key, seen, state.inner, feedback)
        return WrapperState(inner), info


annealed = Annealed
