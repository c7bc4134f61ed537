"""Messages of perceptron factors without sampling: exact distribution of the sum, or Gaussian.

Let K be the number of inputs whose contribution agrees with the label. Each agrees independently
with probability q_i (from its cavity), so K is Poisson-binomial, and the factor is satisfied
exactly if K ≥ T, for either weight coding, with ties counted as label 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor

from vitrail.checks import checked_choice
from vitrail.factors import Factors, Network
from vitrail.kernels.dispatch import LANES_BEFORE_LOADING, find
from vitrail.random import Key
from vitrail.updates.base import Estimate, Sweep, Update

Method = Literal["convolution", "gaussian"]


@dataclass(frozen=True)
class ClosedForm(Update):
    """Messages of perceptrons without sampling: p̃(v) = P(K ≥ T | w_i = v), leave-one-out.

    Args:
        method: "convolution" is exact: O(A²) per factor, from prefix distributions and suffix
            tails, without division. "gaussian" approximates large arity in O(A) per factor:
            P(K ≥ T) ≈ Φ((μ − T + ½)/σ), the boundary being halfway between two values of K.

    Examples:
        >>> closed_form("gaussian").method
        'gaussian'
    """

    exact: ClassVar[bool] = True
    method: Method = "convolution"

    def __post_init__(self) -> None:
        checked_choice("method", self.method, get_args(Method))

    def check(self, factors: Factors) -> None:
        if factors.perceptron_low is None:
            raise TypeError(
                f"closed_form takes linear threshold units only, got {type(factors).__name__} "
                "factors of another kind; use flip or counting"
            )

    def bytes_per_factor(self, factors: Factors, cavity: Tensor) -> int:
        table = factors.arity**2 if self.method == "convolution" else 16 * factors.arity
        return 8 * cavity.shape[1] * (table + 16 * factors.arity)

    def sweep(
        self,
        key: Key,
        factors: Factors,
        belief: Tensor,
        message: Tensor,
        gamma: Tensor,
        rows: Tensor | None = None,
    ) -> Sweep:
        self.check(factors)
        kernel = self._kernel(factors)
        if kernel is None:
            return super().sweep(key, factors, belief, message, gamma, rows)
        # within 1e-5 of the definition (absolute, or relative for messages above 1)
        messages, moved, change = kernel.gaussian_sweep(
            factors, belief, message, self.limit, gamma, rows
        )
        # a Gaussian tail is never zero
        starved = torch.zeros(len(messages), dtype=torch.int64, device=belief.device)
        return Sweep(messages, moved, change, starved, 0)

    def _kernel(self, factors: Factors) -> Any:
        """The compiled module for gaussian messages, if any, for any amount of work."""
        if self.method != "gaussian":
            return None
        return find("gaussian", "auto", factors, LANES_BEFORE_LOADING + 1, 0)

    def estimate_chunk(self, key: Key, factors: Factors, cavity: Tensor) -> Estimate:
        assert isinstance(factors, Network)
        agree_if_one, threshold = agreement(factors)
        agrees = torch.sigmoid(torch.where(agree_if_one[:, None], cavity, -cavity))
        agrees = torch.where(factors.rows[:, None] != 0, agrees, 0.0)
        tails = _convolved if self.method == "convolution" else _gaussian
        log_with, log_without = tails(agrees, threshold[:, None])
        # an input of zero has no effect
        log_with = torch.where(factors.rows[:, None] != 0, log_with, log_without)
        one = torch.where(agree_if_one[:, None], log_with, log_without)
        zero = torch.where(agree_if_one[:, None], log_without, log_with)
        return Estimate(factors.log_potential_mean(one), factors.log_potential_mean(zero), 0)


def agreement(factors: Network) -> tuple[Tensor, Tensor]:
    """Whether weight 1 agrees with the label, (F, A) bool; and T, (F,) int64.

    Label 1 needs h > 0. With ±1 weights h = 2K − n for n nonzero inputs, so T = ⌊n/2⌋ + 1; with 0/1
    weights h = K − n₋, where n₋ inputs are −1, so T = n₋ + 1. Label 0 is the complement, in terms
    of the inputs that disagree: n − K ≥ n − T + 1.
    """
    inputs = factors.rows.to(torch.int64)
    nonzero = (inputs != 0).sum(1)
    positive = nonzero // 2 + 1 if factors.perceptron_low == -1 else (inputs == -1).sum(1) + 1
    wanted = factors.labels == 1
    threshold = torch.where(wanted, positive, nonzero - positive + 1)
    return (inputs > 0) == wanted[:, None], threshold


def _convolved(agrees: Tensor, threshold: Tensor) -> tuple[Tensor, Tensor]:
    """log P(K₋ᵢ ≥ T−1) and log P(K₋ᵢ ≥ T) for every i, exactly.

    agrees (F, R, A) float64, threshold (F, 1) int64.
    """
    lead, arity = agrees.shape[:2], agrees.shape[2]
    # tail[j] = P(at least j of the variables seen so far, from the right, agree)
    tail = agrees.new_zeros(*lead, arity + 2)
    tail[..., 0] = 1.0
    tails = [tail]
    for i in range(arity - 1, 0, -1):
        q = agrees[..., i, None]
        shifted = torch.cat([tail[..., :1], tail[..., :-1]], dim=-1)
        tail = q * shifted + (1 - q) * tail
        tails.append(tail)
    law = agrees.new_zeros(*lead, arity + 1)  # law[k] = P(k of the variables before i agree)
    law[..., 0] = 1.0
    missing = (threshold[..., None] - torch.arange(arity + 1, device=agrees.device)).clamp(
        0, arity + 1
    )
    missing = missing.expand(*lead, -1)
    one_less = (missing - 1).clamp(min=0)
    with_i, without_i = torch.empty_like(agrees), torch.empty_like(agrees)
    for i in range(arity):
        tail = tails.pop()
        with_i[..., i] = (law * tail.gather(-1, one_less)).sum(-1)
        without_i[..., i] = (law * tail.gather(-1, missing)).sum(-1)
        q = agrees[..., i, None]
        law = (1 - q) * law + q * torch.cat([torch.zeros_like(q), law[..., :-1]], dim=-1)
    return torch.log(with_i), torch.log(without_i)


def _gaussian(agrees: Tensor, threshold: Tensor) -> tuple[Tensor, Tensor]:
    """The same two logs with a Gaussian K₋ᵢ."""
    variance = agrees * (1 - agrees)
    mean = agrees.sum(-1, keepdim=True) - agrees
    spread = (variance.sum(-1, keepdim=True) - variance).clamp(min=1e-12).sqrt()
    boundary = threshold[..., None] - 0.5
    return (
        torch.special.log_ndtr((mean + 1 - boundary) / spread),
        torch.special.log_ndtr((mean - boundary) / spread),
    )


closed_form = ClosedForm
