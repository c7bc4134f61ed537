"""How much of an old message to keep, by the step and the accuracy, for each problem.

`damping` is the share of the OLD message that is kept, as in PGMax, libDAI and pgmpy: 0 takes the
new message whole. Messages are mixed by the paper's γ = 1 − damping, the weight of the new one;
`weight_of_new` and `damping_of` are the places where one becomes the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import torch
from torch import Tensor

Schedule = Callable[[int], float]
DECIMALS = 12  # 1 − 0.9 is then exactly 0.1


def weight_of_new(damping: float) -> float:
    """γ = 1 − damping, as the decimal it was meant to be.

    >>> weight_of_new(0.9)
    0.1
    """
    gamma = round(1 - damping, DECIMALS)
    if not 0 < gamma <= 1:
        raise ValueError(
            "damping is the share of the old message that is kept, at least 0 and below 1, "
            f"got {damping}"
        )
    return gamma


def damping_of(gamma: Tensor) -> Tensor:
    """The damping of weights γ (P,), for a history."""
    return torch.round(1 - gamma, decimals=DECIMALS)


@dataclass(frozen=True)
class Damping:
    """A rule for the damping; γ = 1 − damping is the weight of the new message."""

    on_probability: bool  # whether probabilities are mixed, as the paper has it, or log-odds

    def start(self) -> float:
        """γ of the first step."""
        return self.at(0)

    def at(self, step: int) -> float:
        raise TypeError(f"{type(self).__name__} has no value by step alone")

    def next(self, step: int, gamma: Tensor, accuracy: Tensor) -> Tensor:
        """γ for this step, (P,) float64, from the last one and the last accuracies (P,)."""
        return torch.full_like(gamma, self.at(step))


@dataclass(frozen=True)
class Constant(Damping):
    """The same damping at every step."""

    value: float

    def at(self, step: int) -> float:
        return weight_of_new(self.value)


@dataclass(frozen=True)
class Scheduled(Damping):
    """Damping by step."""

    schedule: Schedule

    def at(self, step: int) -> float:
        return weight_of_new(self.schedule(step))


@dataclass(frozen=True)
class Held(Damping):
    """Damping as it stands in the state: it is set from outside, by `steady`."""

    first: float

    def at(self, step: int) -> float:
        return weight_of_new(self.first)

    def next(self, step: int, gamma: Tensor, accuracy: Tensor) -> Tensor:
        return gamma


@dataclass(frozen=True)
class Adaptive(Damping):
    """The paper's rule (appendix C.3): every `every` steps damping = accuracy, within [0, high]."""

    every: int
    high: float
    first: float

    def at(self, step: int) -> float:
        return weight_of_new(self.first)

    def next(self, step: int, gamma: Tensor, accuracy: Tensor) -> Tensor:
        if step == 0 or step % self.every:
            return gamma
        return (1 - accuracy).clamp(weight_of_new(self.high), 1.0)


def constant(value: float, *, on: str = "probability") -> Damping:
    """The same damping at every step; a plain number given as `damping` means this.

    Args:
        value: Share of the old message that is kept, from 0 to below 1.
        on: What is mixed, "probability" as in the paper or "log_odds".

    Returns:
        The rule, for a solver's `damping`.

    Examples:
        >>> constant(0.9).start()  # γ, the weight of the new message
        0.1
    """
    return Constant(_on(on), _checked(value))


def held(damping: Damping) -> Damping:
    """Constant damping as one that stands in the state, where it can be moved."""
    if isinstance(damping, Constant):
        return Held(damping.on_probability, damping.value)
    if isinstance(damping, Held):
        return damping
    raise ValueError(
        f"{type(damping).__name__.lower()} damping follows a rule of its own and cannot be moved; "
        "give a number, which is then the first"
    )


def scheduled(schedule: Schedule, *, on: str = "probability") -> Damping:
    """Damping by the step.

    Args:
        schedule: Gives the share of the old message that is kept at a step, counted from 0.
        on: What is mixed, "probability" as in the paper or "log_odds".

    Returns:
        The rule, for a solver's `damping`.

    Examples:
        >>> scheduled(lambda step: 0.5 if step < 10 else 0.9).at(10)
        0.1
    """
    return Scheduled(_on(on), schedule)


def adaptive(
    every: int = 20, *, high: float = 0.99, first: float = 0.5, on: str = "probability"
) -> Damping:
    """Damping that follows the training accuracy: the fewer errors, the smaller the steps.

    Args:
        every: Steps between two changes.
        high: The most damping there may be.
        first: Damping until the first change.
        on: What is mixed, "probability" as in the paper or "log_odds".

    Returns:
        The rule, for a solver's `damping`.

    Examples:
        >>> adaptive(every=10).start()
        0.5
    """
    return Adaptive(_on(on), every, _checked(high), _checked(first))


def as_damping(given: Damping | float) -> Damping:
    """A number is constant damping."""
    return given if isinstance(given, Damping) else constant(given)


def _on(name: str) -> bool:
    if name not in ("probability", "log_odds"):
        raise ValueError(f"damping acts on 'probability' or 'log_odds', got {name!r}")
    return name == "probability"


def _checked(value: float) -> float:
    if not isinstance(value, Real):
        raise TypeError(f"damping is a number from 0 to below 1, got {value!r}")
    weight_of_new(float(value))
    return float(value)
