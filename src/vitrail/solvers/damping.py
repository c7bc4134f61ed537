"""How much of a new message to take: γ as a function of the step and the accuracy, per problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Schedule = Callable[[int], float]


@dataclass(frozen=True)
class Damping:
    """γ, the weight of the NEW message. `on_probability` as the paper has it, or on log-odds."""

    on_probability: bool

    def start(self) -> float:
        return self.at(0)

    def at(self, step: int) -> float:
        raise TypeError(f"{type(self).__name__} has no value by step alone")

    def next(self, step: int, current: Tensor, accuracy: Tensor) -> Tensor:
        """γ for this step, (P,) float64, from the last one and the last accuracies (P,)."""
        return torch.full_like(current, self.at(step))


@dataclass(frozen=True)
class Constant(Damping):
    """The same γ at every step."""

    value: float

    def at(self, step: int) -> float:
        return self.value


@dataclass(frozen=True)
class Scheduled(Damping):
    """γ by step."""

    schedule: Schedule

    def at(self, step: int) -> float:
        return _checked(self.schedule(step))


@dataclass(frozen=True)
class Held(Damping):
    """γ as it stands in the state: it is set from outside, by `steady`."""

    first: float

    def at(self, step: int) -> float:
        return self.first

    def next(self, step: int, current: Tensor, accuracy: Tensor) -> Tensor:
        return current


@dataclass(frozen=True)
class Adaptive(Damping):
    """The paper's rule (appendix C.3): every `every` steps γ = 1 − accuracy, within [low, 1]."""

    every: int
    low: float
    first: float

    def at(self, step: int) -> float:
        return self.first

    def next(self, step: int, current: Tensor, accuracy: Tensor) -> Tensor:
        if step == 0 or step % self.every:
            return current
        return (1 - accuracy).clamp(self.low, 1.0)


def constant(value: float, *, on: str = "probability") -> Damping:
    """The same γ at every step."""
    return Constant(_on(on), _checked(value))


def held(first: float, *, on: str = "probability") -> Damping:
    """γ starts at `first` and is moved by `steady`, which backs off when beliefs oscillate."""
    return Held(_on(on), _checked(first))


def scheduled(schedule: Schedule, *, on: str = "probability") -> Damping:
    """γ = schedule(step)."""
    return Scheduled(_on(on), schedule)


def adaptive(
    every: int = 20, *, low: float = 0.01, first: float = 0.5, on: str = "probability"
) -> Damping:
    """γ follows the error on the training set."""
    return Adaptive(_on(on), every, _checked(low), _checked(first))


def _on(name: str) -> bool:
    if name not in ("probability", "log_odds"):
        raise ValueError(f"damping acts on 'probability' or 'log_odds', got {name!r}")
    return name == "probability"


def _checked(value: float) -> float:
    if not 0 < value <= 1:
        raise ValueError(
            f"damping is the weight of the new message, above 0 and at most 1, got {value}"
        )
    return float(value)
