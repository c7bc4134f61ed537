"""Exact messages by enumeration of all 2^A configurations: the reference of all tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vitrail.factors import Factors
from vitrail.factors.table import decode
from vitrail.random import Key
from vitrail.updates.base import Estimate, Update

MAX_EXACT_ARITY = 20  # a million configurations per factor
TILE = 4096  # configurations at a time; fixed, so that the order of sums is fixed


@dataclass(frozen=True, kw_only=True)
class Exact(Update):
    """Exact messages by enumeration, for factors of up to 20 variables.

    p̃(v) = Σ_{w: w_i=v} f(w)·Π_{j≠i} cavity_j(w_j). Cost 2^A evaluations per factor.

    Examples:
        >>> exact().exact
        True
    """

    exact: ClassVar[bool] = True

    def check(self, factors: Factors) -> None:
        if factors.arity > MAX_EXACT_ARITY:
            raise ValueError(
                f"exact messages enumerate 2^A configurations and stop at arity {MAX_EXACT_ARITY}, "
                f"these factors have {factors.arity}; use flip, counting or closed_form"
            )

    def bytes_per_factor(self, factors: Factors, cavity: Tensor) -> int:
        return min(2**factors.arity, TILE) * (factors.row_bytes + 24 * cavity.shape[1])

    def estimate_chunk(self, key: Key, factors: Factors, cavity: Tensor) -> Estimate:
        log_one = torch.nn.functional.logsigmoid(cavity)
        log_zero = torch.nn.functional.logsigmoid(-cavity)
        sum_one, sum_zero = torch.zeros_like(cavity), torch.zeros_like(cavity)
        for first in range(0, 2**factors.arity, TILE):
            last = min(first + TILE, 2**factors.arity)
            states = decode(torch.arange(first, last, device=cavity.device), factors.arity)
            ones, zeros = states.to(torch.float64), (~states).to(torch.float64)
            potential = torch.exp(factors.log_potential(states[None]))
            weight = torch.exp(log_one @ ones.T + log_zero @ zeros.T) * potential[:, None, :]
            sum_one += weight @ ones
            sum_zero += weight @ zeros
        # the variable's own cavity is a common positive factor of its sum
        return Estimate(
            torch.log(sum_one) - log_one,
            torch.log(sum_zero) - log_zero,
            factors.num_factors * 2**factors.arity,
        )


exact = Exact
