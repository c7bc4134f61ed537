"""The solver protocol: `init` and `step` over immutable states, run by one loop (`run`)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from vitrail.decode import threshold
from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.ranks import World

StateT = TypeVar("StateT")
# what a state field is indexed by; each rank holds only its own factors
PER_FACTOR = {"per": "factor"}  # a tuple of (F, …), one per block
PER_VARIABLE = {"per": "variable"}  # (…, V)
PER_PROBLEM = {"per": "problem"}  # (P,)


@dataclass(frozen=True)
class Feedback:
    """Information from the loop that a step may use, per problem."""

    accuracy: Tensor  # (P,) float64, of the last decoded configuration
    active: Tensor  # (P,) bool; steps leave inactive problems unchanged
    all_active_hint: bool | None = None  # whether all are active; None is unknown

    def all_active(self) -> bool:
        """Whether every problem is active; a GPU is read only where `all_active_hint` is None."""
        return bool(self.active.all()) if self.all_active_hint is None else self.all_active_hint


@dataclass(frozen=True)
class Info:
    """Diagnostics of one step. Tensors stay on their device until the history is read."""

    residual: Tensor  # (P,) float64, largest change of a message as a probability
    evaluations: int  # factor evaluations of the step
    contradiction: Tensor  # (P,) bool
    starved: Tensor | int = 0  # messages without any satisfying draw
    min_hits: int | None = None  # fewest draws behind any message; None where draws are not split
    effective_samples: Tensor | float | None = None  # smallest effective sample size
    records: dict[str, Tensor] = field(default_factory=dict)  # further columns of the history
    diverged: Tensor | None = None  # (P,) bool, final; None if the solver does not check

    def reduced(self, world: World, *sums: Tensor) -> tuple[tuple[Tensor, ...], Info]:
        """Float64 sums over all ranks, and the diagnostics of all ranks combined."""
        if world.size == 1:
            return sums, self
        counts = map(torch.as_tensor, (self.starved, self.evaluations))
        *sums_of_all, starved, evaluations = world.sum(*sums, *counts)
        least = (self.min_hits, self.effective_samples)
        low = [-torch.as_tensor(math.inf if x is None else x, dtype=torch.float64) for x in least]
        residual, *low = world.max(self.residual, *low)
        hits, effective = (None if math.isinf(float(x)) else -float(x) for x in low)
        info = replace(
            self,
            residual=residual,
            evaluations=int(evaluations),
            starved=starved.to(torch.int64),
            min_hits=None if hits is None else int(hits),
            effective_samples=effective,
        )
        return tuple(sums_of_all), info


class Solver(ABC, Generic[StateT]):
    """A pure algorithm: its fields are its settings."""

    over_ranks = False
    """Whether each rank takes a share of the factors; otherwise every rank has all of them."""

    @abstractmethod
    def init(self, key: Key, graph: FactorGraph) -> StateT:
        """The first state; a pure function of the key's seed."""

    @abstractmethod
    def step(
        self, key: Key, graph: FactorGraph, state: StateT, feedback: Feedback
    ) -> tuple[StateT, Info]:
        """One update of all factors or a batch; `key.step` is the step number."""

    @abstractmethod
    def log_odds(self, graph: FactorGraph, state: StateT) -> Tensor:
        """Log-odds of each variable's marginal, (V,) float64."""

    def marginals(self, graph: FactorGraph, state: StateT) -> Tensor:
        """P(w = 1), (V,) float64."""
        return torch.sigmoid(self.log_odds(graph, state))

    def candidates(self, key: Key, graph: FactorGraph, state: StateT) -> Tensor:
        """Configurations to score, (C, V) bool; the first is the decoded one."""
        return threshold(key, self.log_odds(graph, state))[None]

    def epoch_steps(self, graph: FactorGraph) -> Tensor:
        """Steps in which every factor is updated once, (P,) int64."""
        return torch.ones(graph.num_problems, dtype=torch.int64, device=graph.device)


class MessagePassing(Solver[StateT]):
    """A solver with a prior and damping, which wrappers such as `reinforced` take.

    Its state is a dataclass whose fields are marked `PER_FACTOR`, `PER_VARIABLE` or `PER_PROBLEM`.
    """

    @abstractmethod
    def shift_prior(self, state: StateT, by: Tensor) -> StateT:
        """The state with `by` (V,), log-odds on the lattice, added to every variable's prior."""

    def replace_problems(
        self, graph: FactorGraph, state: StateT, fresh: StateT, problems: Tensor
    ) -> StateT:
        """The state with the marked fields of the chosen problems, (P,) bool, from `fresh`."""
        masks = {"problem": problems, "variable": problems[graph.problem]}
        changes: dict[str, Any] = {}
        for part in fields(state):  # pyright: ignore[reportArgumentType] (states are dataclasses)
            old, new = getattr(state, part.name), getattr(fresh, part.name)
            per = part.metadata.get("per")
            if per == "factor":
                blocks = zip(graph.problem_of_factors, new, old, strict=True)
                changes[part.name] = tuple(_rows(problems[of], a, b) for of, a, b in blocks)
            elif per is not None:
                changes[part.name] = torch.where(masks[per], new, old)
        return replace(state, **changes)  # pyright: ignore[reportArgumentType]

    def gamma(self, state: Any) -> Tensor:
        """Weight of new messages, (P,) float64: one minus the damping of the last step."""
        return state.gamma

    def with_gamma(self, state: Any, gamma: Tensor) -> Any:
        """The state with that weight; later steps use it after `with_damping_in_state`."""
        return replace(state, gamma=gamma)

    @abstractmethod
    def with_damping_in_state(self) -> MessagePassing[StateT]:
        """The solver with its constant damping stored in the state, where `with_gamma` sets it."""


def _rows(chosen: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Rows of `new` where chosen (F,), of `old` elsewhere, (F, …) each."""
    return torch.where(chosen.view(-1, *[1] * (new.ndim - 1)), new, old)
