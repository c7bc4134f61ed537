"""Factors: a score in [0, 1] for each configuration, and a floor.

    potential(w) = floor + (1 − floor)·score(w),      floor = exp(−beta)

For networks the score is 1 where the example is classified correctly and 0 elsewhere, the Max-Sat
relaxation of the paper (section 3.3); `beta = inf` gives the hard 0/1 factor. Sampled updates only
add up scores, which are integers for networks: exact in any order, and the same on every backend.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from vitrail.numerics import chunks
from vitrail.prepared import Prepared
from vitrail.scopes import Dense, Scope, dense, joined

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Factors(Prepared, ABC):
    """F factors of one kind and one arity."""

    ids: Tensor  # (F,) int64: the address of a factor's draws, independent of its batch
    scope: Scope  # the variables of each factor
    beta: Tensor  # (F,) float64 > 0, inf allowed
    weight: Tensor  # (F,) float64: how much the factor counts in the accuracy

    @property
    def num_factors(self) -> int:
        return self.ids.shape[0]

    @property
    def arity(self) -> int:
        return self.scope.arity

    @property
    def floor(self) -> Tensor:
        """Potential of a configuration of score 0, (F,) float64."""
        return torch.exp(-self.beta)

    has_energies = False
    """Whether configurations are compared by energy, not by the number of satisfied factors."""

    cheap_flips = False
    """Whether `flips` costs about one evaluation instead of A + 1."""

    @property
    def perceptron_low(self) -> int | None:
        """The value of a zero bit (−1 or 0) for linear threshold units; None for other factors."""
        return None

    @property
    def log_scale(self) -> Tensor:
        """Constant that `log_potential`, whose maximum is 0, leaves out, (F,) float64."""
        return torch.zeros_like(self.weight)

    @abstractmethod
    def score(self, states: Tensor) -> Tensor:
        """Score of configurations (F or 1, S, A) bool: (F, S), bool or float64 in [0, 1]."""

    def flips(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Scores with each variable in turn set to 1 and to 0: two (F, S, A) tensors.

        This general form evaluates each configuration and its A neighbours. Factors that compute
        the effect of a flip in O(1) override it, and set `cheap_flips`.
        """
        num_rows, num_samples, arity = states.shape
        flip = torch.eye(arity, dtype=torch.bool, device=states.device)
        neighbours = (states[:, :, None, :] ^ flip).reshape(num_rows, num_samples * arity, arity)
        other = self.score(neighbours).view(-1, num_samples, arity)
        own = self.score(states)[:, :, None].expand_as(other)
        return torch.where(states, own, other), torch.where(states, other, own)

    @property
    def row_bytes(self) -> int:
        """Temporary bytes for scoring one configuration of one factor, for chunking."""
        return 16 * self.arity

    def select(self, index: Tensor) -> Self:
        """The factors at `index` (F',) int64, with their ids and a reference to these factors."""
        made = self.subset(index)
        whole, rows = self.origin()
        object.__setattr__(made, "_origin", (whole, index if rows is None else rows[index]))
        return made

    def subset(self, index: Tensor) -> Self:
        """`select` without the reference, so that results of `once` are not shared."""
        parts = {name: part[index] for name, part in self._tensors().items()}
        return replace(self, scope=self.scope.select(index), **parts)

    def chunks(self, bytes_per_factor: int, memory: int) -> Iterator[tuple[slice, Self]]:
        """The factors in chunks, with their slices; temporary memory is at most `memory`."""
        for part in chunks(self.num_factors, bytes_per_factor, memory):
            if part == slice(0, self.num_factors):
                yield part, self
            else:
                index = torch.arange(part.start, part.stop, device=self.ids.device)
                yield part, self.select(index)

    def _tensors(self) -> dict[str, Tensor]:
        """The fields that have a row for each factor."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def to(self, device: torch.device | str) -> Self:
        """All tensors on another device."""
        parts = {name: part.to(device) for name, part in self._tensors().items()}
        return replace(self, scope=self.scope.to(device), **parts)

    def with_beta(self, beta: float | Tensor) -> Self:
        made = replace(self, beta=checked_beta(beta, self.num_factors).to(self.beta.device))
        object.__setattr__(made, "_prepared", self._prepared)
        return made

    def shifted(self, offset: int) -> Self:
        """The same factors on variables `offset` further on."""
        scope = self.scope
        if isinstance(scope, Dense):
            return replace(self, scope=replace(scope, start=scope.start + offset))
        return replace(self, scope=replace(scope, variables=scope.variables + offset))

    def merge_key(self) -> Hashable:
        """Blocks with equal keys may be merged into one; by default none may."""
        return id(self)

    def merge(self, blocks: Sequence[Self]) -> Self:
        """One block of all the factors of `blocks`, in order; their keys are equal."""
        rows = [block._tensors() for block in blocks]
        parts = {name: torch.cat([row[name] for row in rows]) for name in rows[0]}
        return replace(self, scope=joined([block.scope for block in blocks]), **parts)

    def log_potential(self, states: Tensor) -> Tensor:
        """Log potential of configurations (F or 1, S, A) bool: (F, S) float64."""
        score = self.score(states).to(torch.float64)
        floor = self.floor[:, None]
        return torch.log(floor + (1 - floor) * score)

    def log_mean(self, score_sum: Tensor, count: Tensor | float) -> Tensor:
        """Log of the mean potential over `count` draws whose scores add up to `score_sum`.

        (F, …) float64. Integer hits of an integer count are looked up in the table of `log_means`,
        which kernels use too.
        """
        if not score_sum.is_floating_point() and isinstance(count, int):
            table = self.log_means(count)
            if table.shape[0] == 1:
                return table[0][score_sum.to(torch.int64)]
            return table.gather(1, score_sum.flatten(1).to(torch.int64)).view(score_sum.shape)
        floor = self.floor.view(-1, *(1,) * (score_sum.ndim - 1))
        share = score_sum.to(torch.float64) / count
        return torch.log(floor + (1 - floor) * share)

    def log_means(self, count: int) -> Tensor:
        """`log_mean` of 0…count hits of `count` draws: (F, count + 1) float64.

        One row where all factors share a beta.
        """
        whole, rows = self.origin()
        table = whole.once_at_beta(_log_means, count)
        return table if rows is None or len(table) == 1 else table[rows]

    def once_at_beta(self, make: Callable[..., T], *details: Hashable) -> T:
        """`once` for values that depend on beta."""
        return self._kept(self._prepared_at_beta, make, details)

    @cached_property
    def _prepared_at_beta(self) -> dict[Hashable, Any]:
        return {}

    def origin(self) -> tuple[Factors, Tensor | None]:
        """The factors that these were selected from, and their indices (F,); None is all."""
        return self.__dict__.get("_origin", (self, None))

    def log_potential_mean(self, log_score: Tensor) -> Tensor:
        """Log of the mean potential from the log of the mean score, (F, …) float64.

        log(floor + (1 − floor)·score) in logs, so that tiny probabilities do not underflow.
        """
        shape = (-1, *(1,) * (log_score.ndim - 1))
        return torch.logaddexp(
            -self.beta.view(shape), torch.log1p(-self.floor).view(shape) + log_score
        )

    def satisfied_at(self, states: Tensor, memory: int) -> Tensor:
        """Whether each factor has score 1 at configurations (C, V) bool: (C, F) float64 of 0, 1."""
        return self._at(states, memory, lambda block, local: block.score(local) >= 1)

    def energy_at(self, states: Tensor, memory: int) -> Tensor:
        """Minus the log potential of each factor at configurations (C, V) bool: (C, F) float64."""
        logs = self._at(states, memory, lambda block, local: block.log_potential(local))
        return -(logs + self.log_scale)

    def _at(self, states: Tensor, memory: int, value: Callable[[Self, Tensor], Tensor]) -> Tensor:
        """A value of each factor at configurations (C, V) bool: (C, F) float64."""
        num_states = states.shape[0]
        out = torch.empty(num_states, self.num_factors, dtype=torch.float64, device=states.device)
        for part, block in self.chunks(num_states * self.row_bytes, memory):
            local = block.scope.gather(states).transpose(0, 1)
            out[:, part] = value(block, local).T.to(torch.float64)
        return out


def meets(outputs: Tensor, labels: Tensor) -> Tensor:
    """Whether outputs (…, C) give the labels (…): one unit by its sign, several by argmax."""
    if outputs.shape[-1] == 1:
        return (outputs[..., 0] > 0) == (labels == 1)
    return outputs.argmax(-1) == labels


def common_parts(
    num_factors: int,
    arity: int,
    scope: Scope | None,
    beta: float | Tensor,
    weight: Tensor | None,
) -> dict[str, Any]:
    """The fields that all kinds of factors share, checked and with their defaults."""
    if arity < 1:
        raise ValueError("a factor needs at least one variable, got arity 0")
    if scope is None:
        scope = dense(num_factors, arity)
    if (scope.num_factors, scope.arity) != (num_factors, arity):
        raise ValueError(
            f"the scope describes {scope.num_factors} factors of arity {scope.arity}, "
            f"the factors are {num_factors} of arity {arity}; make them agree"
        )
    if weight is None:
        weight = torch.ones(num_factors, dtype=torch.float64)
    weight = torch.as_tensor(weight, dtype=torch.float64)
    if weight.shape != (num_factors,) or not bool((weight >= 0).all()):
        raise ValueError(
            f"weights must be {num_factors} numbers of at least 0, one per factor, "
            f"got shape {tuple(weight.shape)}"
        )
    return {
        "ids": torch.arange(num_factors),
        "scope": scope,
        "beta": checked_beta(beta, num_factors),
        "weight": weight,
    }


def checked_beta(beta: float | Tensor, num_factors: int) -> Tensor:
    """One inverse temperature per factor, (F,) float64."""
    try:
        values = torch.as_tensor(beta, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"beta must be one number or one per factor, got {beta!r}") from None
    if values.ndim == 0:
        values = values.expand(num_factors).clone()
    if values.shape != (num_factors,):
        raise ValueError(
            f"beta must be one number or one per factor ({num_factors}), "
            f"got shape {tuple(values.shape)}"
        )
    if not bool((values > 0).all()):
        raise ValueError(
            f"beta must be positive (math.inf for hard constraints), got {float(values.min())}; "
            "leave out examples that should not count"
        )
    return values


def checked_labels(labels: Tensor, num_factors: int, num_classes: int) -> Tensor:
    """Labels 0…C−1 as int64 (F,)."""
    labels = torch.as_tensor(labels)
    if labels.shape != (num_factors,):
        raise ValueError(
            f"labels have shape {tuple(labels.shape)}, expected one per example, ({num_factors},)"
        )
    values = labels.to(torch.float64)
    whole = (values == values.round()) & (values >= 0) & (values < num_classes)
    if not bool(whole.all()):
        wrong = values[~whole][0].item()
        names = "0 or 1" if num_classes == 2 else f"0 to {num_classes - 1}"
        raise ValueError(
            f"labels must be {names}, got {wrong:g}; recode them before building factors"
        )
    return labels.to(torch.int64).contiguous()


def _log_means(factors: Factors, count: int) -> Tensor:
    same = factors.num_factors > 0 and bool((factors.beta == factors.beta[0]).all())
    floor = factors.floor[:1, None] if same else factors.floor[:, None]
    share = torch.arange(count + 1, device=floor.device).double() / count
    return torch.log(floor + (1 - floor) * share)


HARD = math.inf  # the beta of a factor that must be satisfied
