"""Reinforcement: a growing share of each belief is fed back until beliefs commit.

    field_{t+1} = share_t · belief_t,      belief = prior + field + Σ messages

Braunstein and Zecchina 2006. After an attempt that commits to a configuration with violated
factors, another one starts from a new random prior with a slower schedule.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from vitrail.checks import checked_count, checked_number
from vitrail.graph import FactorGraph
from vitrail.numerics import on_lattice
from vitrail.random import Key
from vitrail.solvers.base import PER_PROBLEM, PER_VARIABLE, Feedback, Info
from vitrail.solvers.decimation import Decimated
from vitrail.solvers.wrapping import Wrapper, WrapperState, nested_solvers

COMMIT_TOLERANCE = 1e-6  # messages that move less, as probabilities, have committed
MAX_SHARE = 1.0 - 2.0**-10  # beliefs grow as 1/(1 − share), which must stay finite


@dataclass(frozen=True)
class Share:
    """A share of the belief, for `reinforced`, that grows by `rate` per step.

    Args:
        rate: Growth per step.
        most: Upper bound.

    Examples:
        >>> linear(0.01)(torch.tensor([0, 25]))
        tensor([0.0000, 0.2500], dtype=torch.float64)
    """

    rate: float = 0.001
    most: float = MAX_SHARE

    def __post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("most", self.most)):
            if not 0 < value < 1:
                raise ValueError(f"{name} must be above 0 and below 1, got {value}")

    def __call__(self, step: Tensor) -> Tensor:
        """The share at steps (P,)."""
        return (self.rate * step.double()).clamp(max=self.most)

    @property
    def steps(self) -> int:
        """Steps until the share stops growing."""
        return math.ceil(self.most / self.rate)


linear = Share


@dataclass(frozen=True)
class ReinforcedState(WrapperState):
    """The field, and the attempt and age of each problem."""

    field: Tensor = dataclasses.field(metadata=PER_VARIABLE)  # (V,) float64 log-odds
    shift: Tensor = dataclasses.field(metadata=PER_VARIABLE)  # (V,), added by outer wrappers
    age: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) int64, steps of this attempt
    attempt: Tensor = dataclasses.field(metadata=PER_PROBLEM)  # (P,) int64, 0 for the first


@dataclass(frozen=True)
class Reinforced(Wrapper[ReinforcedState]):
    """Feed the beliefs of any message-passing solver back to it, so that they commit.

    Attempt k takes its share at age/slower^k, the age in epochs. An attempt has failed when some
    factor is still violated although messages have converged, or `patience` epochs after its
    share stopped growing.

    Args:
        solver: The solver to reinforce.
        share: Share of the belief that is fed back, by epoch; `linear(0.001)` takes about 700
            epochs on hard random problems.
        attempts: Attempts per problem.
        slower: Factor by which each attempt is slower than the previous one.
        patience: Epochs that an attempt may continue after its share has stopped growing.

    Examples:
        >>> from vitrail.solvers import belief_propagation
        >>> from vitrail.updates import closed_form
        >>> solver = reinforced(belief_propagation(closed_form()), linear(0.01), attempts=2)
        >>> solver.attempts
        2
    """

    share: Share = linear()  # noqa: RUF009 (a frozen value)
    _: KW_ONLY
    attempts: int = 4
    slower: float = 2.0
    patience: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_count("attempts", self.attempts, 1)
        checked_number("slower", self.slower, 1)
        if any(isinstance(solver, Decimated) for solver in nested_solvers(self.solver)):
            raise ValueError(
                "reinforcement outside decimation would feed fixed variables back to themselves, "
                "so that none could be released; use decimated(reinforced(solver))"
            )

    def wrap_state(self, graph: FactorGraph, inner: Any) -> ReinforcedState:
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
        # outer wrappers may withdraw their shift of the prior, so it is not fed back
        belief = self.solver.log_odds(graph, inner) - state.shift
        target = on_lattice(share[graph.problem] * belief)
        field = torch.where(active[graph.problem], target, state.field)
        inner = self.solver.shift_prior(inner, field - state.field)

        age = state.age + active.long()
        over = age >= (self.share.steps + self.patience) * slowness
        over |= (info.residual <= COMMIT_TOLERANCE) & (state.age > epoch) | info.contradiction
        again = over & active & (state.attempt + 1 < self.attempts)
        attempt = state.attempt + again.long()
        if self.attempts > 1 and bool(again.any()):
            fresh = self.solver.init(_attempt_key(key, int(attempt.max())), graph)
            fresh = self.solver.shift_prior(fresh, state.shift)
            inner = self.solver.replace_problems(graph, inner, fresh, again)
            field = torch.where(again[graph.problem], 0.0, field)
            age = torch.where(again, 0, age)
        info = replace(
            info,
            # a problem that restarts has neither converged nor failed for good
            residual=torch.where(again, 1.0, info.residual),
            contradiction=info.contradiction & ~again,
            records={**info.records, "share": share, "attempt": attempt},
        )
        return ReinforcedState(inner, field, state.shift, age, attempt), info

    def shift_prior(self, state: ReinforcedState, by: Tensor) -> ReinforcedState:
        return replace(super().shift_prior(state, by), shift=state.shift + by)

    def max_steps(self, graph: FactorGraph) -> int:
        """Steps within which every attempt ends."""
        slowness = sum(self.slower**k for k in range(self.attempts))
        steps = (self.share.steps + self.patience) * slowness * int(self.epoch_steps(graph).max())
        return math.ceil(steps)


reinforced = Reinforced


def _attempt_key(key: Key, attempt: int) -> Key:
    """A separate seed for every attempt; the first uses that of the run."""
    return Key((key.seed + attempt * 0x9E3779B97F4A7C) % 2**56)
