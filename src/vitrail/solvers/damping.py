"""Damping of messages, by step and accuracy, for each problem.

`damping` is the share of the OLD message that is kept, as in PGMax, libDAI and pgmpy: 0 keeps
nothing of it. Messages are mixed by the paper's γ = 1 − damping, the weight of the new message.
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
    """γ = 1 − damping, rounded to 12 decimals.

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
    """1 − γ for weights γ (P,), for the history."""
    return torch.round(1 - gamma, decimals=DECIMALS)


@dataclass(frozen=True)
class Damping:
    """Damping, constant or by step; γ = 1 − damping is the weight of the new message."""

    value: float | Schedule  # share of the old message that is kept, or that share by step

    def __post_init__(self) -> None:
        if not callable(self.value):
            if not isinstance(self.value, Real):
                raise TypeError(f"damping is a number from 0 to below 1, got {self.value!r}")
            weight_of_new(self.value)

    def at(self, step: int) -> float:
        """γ at a step, for damping that depends on the step alone."""
        return weight_of_new(self.value(step) if callable(self.value) else self.value)

    def next(self, step: int, gamma: Tensor, accuracy: Tensor) -> Tensor:
        """γ for this step, (P,) float64, from the last one and the last accuracies (P,)."""
        return torch.full_like(gamma, self.at(step))


class StoredDamping(Damping):
    """Damping stored in the state, where `steady` changes it; `value` is the initial one."""

    def next(self, step: int, gamma: Tensor, accuracy: Tensor) -> Tensor:
        return gamma


@dataclass(frozen=True)
class Adaptive(Damping):
    """The paper's rule (appendix C.3): every `every` steps damping = accuracy, within [0, high]."""

    every: int
    high: float

    def next(self, step: int, gamma: Tensor, accuracy: Tensor) -> Tensor:
        if step == 0 or step % self.every:
            return gamma
        return (1 - accuracy).clamp(weight_of_new(self.high), 1.0)


def damping_in_state(damping: Damping) -> Damping:
    """Constant damping, converted to damping stored in the state."""
    if isinstance(damping, Adaptive) or callable(damping.value):
        kind = "adaptive" if isinstance(damping, Adaptive) else "scheduled"
        raise ValueError(
            f"{kind} damping follows its own rule and cannot be changed; give a number as the "
            "initial damping"
        )
    return StoredDamping(damping.value)


def adaptive(every: int = 20, *, high: float = 0.99, first: float = 0.5) -> Damping:
    """Damping that follows the training accuracy: the fewer errors, the smaller the steps.

    Args:
        every: Steps between two changes.
        high: Largest damping.
        first: Damping until the first change.

    Examples:
        >>> adaptive(every=10).at(0)
        0.5
    """
    weight_of_new(high)
    return Adaptive(first, every, high)


def as_damping(given: Damping | Schedule | float) -> Damping:
    """A number is constant damping, a function gives it by the step."""
    return given if isinstance(given, Damping) else Damping(given)
