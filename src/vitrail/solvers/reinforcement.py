"""Reinforcement: marginals that make up their mind (Braunstein and Zecchina 2006).

Each variable is fed back a share of its own belief, and the share grows with time:

    field_{t+1} = share_t · belief_t,      belief = prior + field + Σ messages

While the share is small the messages see the whole space of solutions; as it grows the beliefs
commit to one of them. A run that commits to a configuration with violated factors has gone too
fast: it starts again, from another random prior, with a slower schedule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.numerics import on_lattice
from vitrail.random import Key
from vitrail.solvers.base import Feedback, Info, MessagePassing
from vitrail.solvers.decimation import Decimated
from vitrail.solvers.wrapping import Wrapper, solvers_inside

SETTLED = 1e-6  # messages that move less, as probabilities, have committed
MOST = 1.0 - 2.0**-10  # beliefs grow as 1/(1 − share), which must stay finite


@dataclass(frozen=True)
class Linear:
    """share = rate·step, up to `most`."""

    rate: float
    most: float

    def __call__(self, step: Tensor) -> Tensor:
        return (self.rate * step.double()).clamp(max=self.most)

    @property
    def steps(self) -> int:
        """Steps until the share stops growing."""
        return math.ceil(self.most / self.rate)


@dataclass(frozen=True)
class Exponential:
    """share = 1 − (1 − rate)^step, up to `most`: fast at first, then ever slower."""

    rate: float
    most: float

    def __call__(self, step: Tensor) -> Tensor:
        return -torch.expm1(step.double() * math.log1p(-self.rate)).clamp(min=-self.most)

    @property
    def steps(self) -> int:
        """Steps until the share stops growing."""
        return math.ceil(math.log1p(-self.most) / math.log1p(-self.rate))


Share = Linear | Exponential


def linear(rate: float = 0.001, most: float = MOST) -> Linear:
    """A share of the belief that grows by `rate` a step.

    Args:
        rate: Growth a step.
        most: Where it stops.

    Returns:
        The share, for `reinforced`.

    Examples:
        >>> linear(0.01)(torch.tensor([0, 25]))
        tensor([0.0000, 0.2500], dtype=torch.float64)
    """
    return Linear(_checked("rate", rate), _checked("most", most))


def exponential(rate: float = 0.001, most: float = MOST) -> Exponential:
    """A share of the belief whose distance from one shrinks by `rate` a step.

    Args:
        rate: Part of the distance that is taken a step.
        most: Where it stops.

    Returns:
        The share, for `reinforced`.

    Examples:
        >>> exponential(0.5)(torch.tensor([1, 2]))
        tensor([0.5000, 0.7500], dtype=torch.float64)
    """
    return Exponential(_checked("rate", rate), _checked("most", most))


@dataclass(frozen=True)
class ReinforcedState:
    """The solver inside, and how far each problem is with which attempt."""

    inner: Any
    field: Tensor  # (V,) float64 log-odds
    shift: Tensor  # (V,) float64 log-odds, what wrappers around have added to the prior
    age: Tensor  # (P,) int64, steps of this attempt
    attempt: Tensor  # (P,) int64, 0 for the first


@dataclass(frozen=True)
class Reinforced(Wrapper[ReinforcedState]):
    """Any solver with a prior, its beliefs fed back to it; failed attempts start anew.

    Attempt k has its share at age/slower^k. It has failed when its messages have settled, or
    when its share stopped growing `patience` epochs ago, and some factor is still violated.
    The share grows by the epoch: in batches one step of many stands for a fraction of it.
    """

    share: Share
    attempts: int
    slower: float
    patience: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(isinstance(solver, Decimated) for solver in solvers_inside(self.solver)):
            raise ValueError(
                "reinforcement would feed fixes back to themselves, so that none could be taken "
                "back; put decimated around reinforced"
            )

    def wrapped(self, graph: FactorGraph, inner: Any) -> ReinforcedState:
        none = torch.zeros(graph.num_problems, dtype=torch.int64, device=graph.device)
        field = torch.zeros_like(graph.log_prior)
        return ReinforcedState(inner, field, field, none, none)

    def step(
        self, key: Key, graph: FactorGraph, state: ReinforcedState, feedback: Feedback
    ) -> tuple[ReinforcedState, Info]:
        inner, info = self.solver.step(key, graph, state.inner, feedback)
        epoch = self.epoch_steps(graph)
        slowness = epoch * self.slower ** state.attempt.double()
        share = self.share(state.age / slowness)
        active = feedback.active
        # what others have put on the prior may be taken back, so it is not fed back
        belief = self.solver.log_odds(graph, inner) - state.shift
        target = on_lattice(share[graph.problem] * belief)
        field = torch.where(active[graph.problem], target, state.field)
        inner = self.solver.shifted(inner, field - state.field)

        age = state.age + active.long()
        over = age >= (self.share.steps + self.patience) * slowness
        over |= (info.residual <= SETTLED) & (state.age > epoch) | info.contradiction
        again = over & active & (state.attempt + 1 < self.attempts)
        attempt = state.attempt + again.long()
        if self.attempts > 1 and bool(again.any()):
            fresh = self.solver.init(_attempt_key(key, int(attempt.max())), graph)
            fresh = self.solver.shifted(fresh, state.shift)
            inner = self.solver.renewed(graph, inner, fresh, again)
            field = torch.where(again[graph.problem], 0.0, field)
            age = torch.where(again, 0, age)
        info = replace(
            info,
            # a problem about to try again is neither settled nor beyond hope
            residual=torch.where(again, 1.0, info.residual),
            contradiction=info.contradiction & ~again,
            records={**info.records, "share": share, "attempt": attempt},
        )
        return ReinforcedState(inner, field, state.shift, age, attempt), info

    def shifted(self, state: ReinforcedState, by: Tensor) -> ReinforcedState:
        return replace(super().shifted(state, by), shift=state.shift + by)

    def renewed(
        self, graph: FactorGraph, state: ReinforcedState, fresh: ReinforcedState, problems: Tensor
    ) -> ReinforcedState:
        here = problems[graph.problem]
        return ReinforcedState(
            self.solver.renewed(graph, state.inner, fresh.inner, problems),
            torch.where(here, fresh.field, state.field),
            torch.where(here, fresh.shift, state.shift),
            torch.where(problems, fresh.age, state.age),
            torch.where(problems, fresh.attempt, state.attempt),
        )

    def max_steps(self, graph: FactorGraph) -> int:
        """Steps within which every attempt comes to its end."""
        slowness = sum(self.slower**k for k in range(self.attempts))
        steps = (self.share.steps + self.patience) * slowness * int(self.epoch_steps(graph).max())
        return math.ceil(steps)


def reinforced(
    solver: MessagePassing[Any],
    share: Share | None = None,
    *,
    attempts: int = 4,
    slower: float = 2.0,
    patience: int = 20,
) -> Reinforced:
    """Feed the beliefs of any message-passing solver back to it, so that they commit.

    Args:
        solver: What is reinforced.
        share: Of the belief, by epoch; None is `linear(0.001)`, about 700 epochs on hard random
            problems.
        attempts: Tries a problem has.
        slower: How many times as slow each attempt is as the one before.
        patience: Epochs after which an attempt has failed whose share has stopped growing.

    Returns:
        The solver, reinforced.

    Examples:
        >>> from vitrail.solvers import belief_propagation
        >>> from vitrail.updates import closed_form
        >>> solver = reinforced(belief_propagation(closed_form()), linear(0.01), attempts=2)
        >>> solver.attempts
        2
    """
    if attempts < 1:
        raise ValueError(f"attempts must be at least 1, got {attempts}")
    if slower < 1:
        raise ValueError(f"slower must be at least 1, got {slower}")
    return Reinforced(solver, share or linear(), attempts, slower, patience)


def _attempt_key(key: Key, attempt: int) -> Key:
    """A seed of its own for every attempt: the first keeps the run's."""
    return Key((key.seed + attempt * 0x9E3779B97F4A7C) % 2**56)


def _checked(name: str, value: float) -> float:
    if not 0 < value < 1:
        raise ValueError(f"{name} must be above 0 and below 1, got {value}")
    return float(value)
