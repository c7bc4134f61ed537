"""Factors given by a table of potentials."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import torch
from torch import Tensor

from vitrail.factors.base import (
    HARD,
    Factors,
    checked_beta,
    common_parts,
)
from vitrail.scopes import Scope

MAX_TABLE_ARITY = 20  # 2²⁰ potentials per factor


@dataclass(frozen=True, kw_only=True)
class Table(Factors):
    """Row I has the 2^A potentials of factor I, variable j being bit j of the column number.

    Potentials are divided by the largest of the row, and raised to at least exp(−beta): a 0/1 table
    with finite beta is the Max-Sat relaxation, and `beta = inf` changes nothing.
    """

    cheap_flips = True

    potential: Tensor  # (F, 2^A) float64 in [0, 1], the largest of a row exactly 1
    log_largest: Tensor  # (F,) float64, log of the largest potential of the row

    @property
    def has_energies(self) -> bool:
        return self.origin()[0].once(_has_grades)

    @property
    def log_scale(self) -> Tensor:
        return self.log_largest

    def score(self, states: Tensor) -> Tensor:
        return self._lookup(encode(states))

    def flips(self, states: Tensor) -> tuple[Tensor, Tensor]:
        code = encode(states)[..., None]
        bit = 1 << torch.arange(self.arity, device=states.device)
        ones, zeros = code | bit, code & ~bit
        return (
            self._lookup(ones.flatten(1)).view(-1, *ones.shape[1:]),
            self._lookup(zeros.flatten(1)).view(-1, *zeros.shape[1:]),
        )

    def _lookup(self, code: Tensor) -> Tensor:
        potential = self.potential.gather(1, code.expand(self.num_factors, -1))
        floor = self.floor[:, None]
        lifted = (potential - floor) / (1 - floor)
        return torch.where(potential >= 1, 1.0, lifted.clamp(min=0.0))

    def merge_key(self) -> Hashable:
        return Table, self.arity


def _has_grades(factors: Table) -> bool:
    return bool(((factors.potential > 0) & (factors.potential < 1)).any())


def encode(states: Tensor) -> Tensor:
    """Configurations (…, A) bool as numbers (…) int64, variable j being bit j."""
    bit = 1 << torch.arange(states.shape[-1], device=states.device)
    return (states.to(torch.int64) * bit).sum(-1)


def decode(code: Tensor, arity: int) -> Tensor:
    """Numbers (…) int64 as configurations (…, A) bool."""
    return (code[..., None] >> torch.arange(arity, device=code.device)) & 1 == 1


def log_potentials(factors: Factors) -> Tensor:
    """Of every configuration, (F, 2^A) float64, variable j being bit j; −inf for potential 0."""
    states = decode(torch.arange(2**factors.arity, device=factors.ids.device), factors.arity)
    return factors.log_potential(states[None]) + factors.log_scale[:, None]


def table(
    potentials: Tensor,
    scope: Scope | None = None,
    beta: float | Tensor = HARD,
    weight: Tensor | None = None,
    *,
    log: bool = False,
) -> Table:
    """Factors from explicit potentials.

    Args:
        potentials: (F, 2, 2, …, 2) with axis 1+j for variable j, or (F, 2^A) with variable j as
            bit j of the column number.
        scope: Which variables a factor sees; None is variables 0…A−1.
        beta: Inverse temperature: potentials are raised to at least exp(−beta).
        weight: How much each factor counts in the accuracy, (F,); None is 1.
        log: Whether `potentials` holds their logarithms, minus infinity for 0.

    A table with values between 0 and its largest has energies, E = −log potential: for graphs with
    such factors the best configuration has the lowest energy. Other tables are constraints: the
    best configuration satisfies the most.

    Returns:
        The block of factors.

    Examples:
        >>> both_or_none = table(torch.tensor([[1.0, 0.0, 0.0, 1.0]]))
        >>> both_or_none.arity
        2
    """
    values = torch.as_tensor(potentials, dtype=torch.float64)
    if values.ndim < 2:
        raise ValueError(
            f"potentials need a factor axis and 2^A values, got shape {tuple(values.shape)}"
        )
    if values.ndim > 2 or values.shape[1] == 2:
        if any(size != 2 for size in values.shape[1:]):
            raise ValueError(
                f"every variable axis must have size 2, got shape {tuple(values.shape)}"
            )
        arity = values.ndim - 1
        values = values.permute(0, *range(arity, 0, -1)).reshape(values.shape[0], -1)
    else:
        arity = values.shape[1].bit_length() - 1
        if values.shape[1] != 1 << arity:
            raise ValueError(f"a row of potentials must have 2^A entries, got {values.shape[1]}")
    if arity > MAX_TABLE_ARITY:
        raise ValueError(
            f"a table of arity {arity} would need 2^{arity} potentials, the limit is "
            f"{MAX_TABLE_ARITY}; describe the factor by a function with `network` instead"
        )
    if log:
        if bool((torch.isnan(values) | (values == torch.inf)).any()):
            raise ValueError("log potentials must be finite, or minus infinity for a zero")
    elif not bool(torch.isfinite(values).all()) or bool((values < 0).any()):
        raise ValueError(
            "potentials must be finite and at least 0; pass log potentials with log=True"
        )
    largest = values.amax(1, keepdim=True)
    if bool((largest == (-torch.inf if log else 0)).any()):
        raise ValueError("a factor has only zero potentials, so nothing satisfies it; leave it out")
    parts = common_parts(values.shape[0], arity, scope, checked_beta(beta, values.shape[0]), weight)
    scaled, log_largest = (values / largest, largest.log())
    if log:
        scaled, log_largest = (values - largest).exp(), largest
    return Table(**parts, potential=scaled, log_largest=log_largest[:, 0])
