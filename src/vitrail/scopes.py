"""Scopes: the variables of each factor.

A scope gathers values of variables for factors, (…, V) → (…, F, A), and sums values of factors at
their variables, (…, F, A) → (…, V).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class Dense:
    """Factors of consecutive variables: start, start+1, …, start+A−1.

    A network's factor depends on every weight of its problem, so only a start per factor is stored.
    """

    start: Tensor  # (F,) int64
    arity: int
    shared: bool  # whether every factor has the same start, so that values need only one row

    @property
    def num_factors(self) -> int:
        return self.start.shape[0]

    def index(self) -> Tensor:
        """Variables of each factor, (F, A) int64, or (1, A) when shared."""
        start = self.start[:1] if self.shared else self.start
        return start[:, None] + torch.arange(self.arity, device=start.device)

    @cached_property
    def _runs(self) -> tuple[Tensor, Tensor]:
        """The different starts, and the index of each factor's start."""
        starts, group = torch.unique(self.start, return_inverse=True)
        return starts, group

    def first(self) -> Tensor:
        """The first variable of each factor, (F,) int64."""
        return self.start

    def gather(self, values: Tensor) -> Tensor:
        """(…, V) → (…, F, A); (…, 1, A) when shared, which broadcasts."""
        return values[..., self.index()]

    def total(self, messages: Tensor, num_variables: int) -> Tensor:
        """Sum per variable: (…, F, A) → (…, V) float64, exact on the message lattice."""
        messages = messages.to(torch.float64)
        out = messages.new_zeros((*messages.shape[:-2], num_variables))
        if self.num_factors == 0:
            return out
        if self.shared:
            return out.index_copy_(-1, self.index()[0], messages.sum(-2))
        starts, group = self._runs
        sums = messages.new_zeros((*messages.shape[:-2], len(starts), self.arity))
        sums.index_add_(-2, group, messages)
        variables = starts[:, None] + torch.arange(self.arity, device=starts.device)
        return out.index_add_(-1, variables.flatten(), sums.flatten(-2))

    def select(self, index: Tensor) -> Dense:
        return replace(self, start=self.start[index])

    def to(self, device: torch.device | str) -> Dense:
        return replace(self, start=self.start.to(device))


@dataclass(frozen=True)
class Indexed:
    """Factors of any variables: row I of `variables` lists those of factor I."""

    variables: Tensor  # (F, A) int64

    @property
    def num_factors(self) -> int:
        return self.variables.shape[0]

    @property
    def arity(self) -> int:
        return self.variables.shape[1]

    @property
    def shared(self) -> bool:
        return False

    def index(self) -> Tensor:
        return self.variables

    def first(self) -> Tensor:
        """The first variable of each factor, (F,) int64."""
        return self.variables[:, 0]

    def gather(self, values: Tensor) -> Tensor:
        """(…, V) → (…, F, A)."""
        return values[..., self.variables]

    def total(self, messages: Tensor, num_variables: int) -> Tensor:
        """Sum per variable: (…, F, A) → (…, V) float64."""
        messages = messages.to(torch.float64)
        out = messages.new_zeros((*messages.shape[:-2], num_variables))
        return out.index_add_(-1, self.variables.flatten(), messages.flatten(-2))

    def select(self, index: Tensor) -> Indexed:
        return replace(self, variables=self.variables[index])

    def to(self, device: torch.device | str) -> Indexed:
        return replace(self, variables=self.variables.to(device))


Scope = Dense | Indexed


def dense(num_factors: int, arity: int, start: int | Tensor = 0) -> Dense:
    """A scope of consecutive variables: start…start+arity−1.

    Args:
        num_factors: Number of factors.
        arity: Number of variables per factor.
        start: The first variable, one number or one per factor.

    Returns:
        The scope, for any kind of factors.

    Examples:
        >>> dense(2, 3, start=1).index()
        tensor([[1, 2, 3]])
    """
    if isinstance(start, Tensor):
        shared = bool(num_factors > 0 and (start == start[0]).all())
        return Dense(start.to(torch.int64).contiguous(), arity, shared)
    return Dense(torch.full((num_factors,), start, dtype=torch.int64), arity, shared=True)


def joined(scopes: Sequence[Scope]) -> Scope:
    """The concatenated scopes of blocks of one arity."""
    starts = [scope.start for scope in scopes if isinstance(scope, Dense)]
    if len(starts) == len(scopes):
        return dense(sum(map(len, starts)), scopes[0].arity, torch.cat(starts))
    return Indexed(torch.cat([s.index().expand(s.num_factors, s.arity) for s in scopes]))


def indexed(variables: Tensor | Sequence[Sequence[int]]) -> Indexed:
    """A scope of any variables; a variable may not appear twice in one factor.

    Args:
        variables: The variables of each factor, (F, A).

    Returns:
        The scope, for any kind of factors.

    Examples:
        >>> indexed([[0, 4], [2, 1]]).arity
        2
    """
    try:
        given = torch.as_tensor(variables)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise TypeError(
            f"a scope is a table (factors, arity) of variable numbers, got {variables!r}"
        ) from None
    table = given.to(torch.int64)
    if not bool((table == given).all()) or bool((table < 0).any()):
        wrong = given[(table != given) | (table < 0)][0].item()
        raise ValueError(
            f"variables are numbered by whole numbers from 0 on, got {wrong:g} in a scope; "
            "correct it"
        )
    if table.ndim != 2:
        raise ValueError(
            f"a scope is a table (factors, arity) of variable numbers, got shape "
            f"{tuple(table.shape)}; put factors of different arity into separate blocks"
        )
    ordered = table.sort(dim=1).values
    if bool((ordered[:, 1:] == ordered[:, :-1]).any()):
        raise ValueError(
            "a factor lists the same variable twice; give each variable of a factor once"
        )
    return Indexed(table)
