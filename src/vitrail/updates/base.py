"""Factor→variable messages: the protocol of updates.

All updates estimate one expectation (equation 5 of the paper),

    p̃_{I→i}(v) = E[f_I | w_i = v],   the other variables drawn from their cavities,

and return log p̃(1) and log p̃(0). Cavities have a track axis, (F, R, A): belief propagation has one
track, surveys have one per survey sample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from vitrail.checks import checked_choice, checked_count
from vitrail.factors import Factors
from vitrail.kernels.dispatch import find
from vitrail.numerics import DEFAULT_MEMORY, EXACT_LIMIT, SAMPLED_LIMIT, on_lattice
from vitrail.random import Key, bernoulli

Backend = Literal["auto", "torch", "numba", "triton"]


@dataclass(frozen=True)
class Estimate:
    """log p̃(1) and log p̃(0), float64, with their cost and numbers of draws."""

    log_one: Tensor  # (F, R, A), log of the mean potential with the variable at 1
    log_zero: Tensor  # (F, R, A), the same at 0
    evaluations: int  # factor evaluations, 0 for closed forms
    min_hits: int | None = None  # least number of draws of any p̃(v); None where not split by value


@dataclass(frozen=True)
class Messages:
    """New messages of a batch of factors, before damping."""

    log_odds: Tensor  # (F, A) float64, clipped
    starved: Tensor  # (F, A) bool: both p̃ are zero, so there is no message
    evaluations: int  # factor evaluations
    min_hits: int | None = None  # least number of draws of any p̃(v); None where not split by value
    forbids: Tensor | None = None  # (2, F, A) bool: p̃(0), p̃(1) are zero; exact updates only


@dataclass(frozen=True)
class Sweep:
    """A batch of factors after a damped update, and the changes at the variables."""

    messages: Tensor  # (F, A) float32 log-odds, on the lattice
    moved: Tensor  # (V,) float64: sum of the new messages minus that of the old ones, exact
    change: Tensor  # (F,): largest change of a factor's messages, as probabilities
    starved: Tensor  # (F,) int64: number of starved messages
    evaluations: int
    min_hits: int | None = None
    forbidding: Tensor | None = None  # (2, V): number of factors that exclude 0, 1; exact ones only


@dataclass(frozen=True, kw_only=True)
class Update(ABC):
    """An estimator of factor→variable messages."""

    exact: ClassVar[bool] = False  # whether p̃(v) = 0 proves that v is impossible
    memory: int = DEFAULT_MEMORY  # limit of temporary memory, in bytes

    @property
    def limit(self) -> float:
        """Messages and cavities are clipped to ±limit, log-odds."""
        return EXACT_LIMIT if self.exact else SAMPLED_LIMIT

    def messages(
        self,
        key: Key,
        factors: Factors,
        belief: Tensor,
        message: Tensor,
        rows: Tensor | None = None,
    ) -> Messages:
        """New messages from the belief (V,) float64 and the last messages (F, A), log-odds.

        rows (f,) int64: the factors to compute messages of; None is all.
        """
        if rows is not None:
            factors, message = factors.select(rows), message[rows]
        estimate = self.estimate(key, factors, self.cavity(factors, belief, message))
        one, zero = estimate.log_one[:, 0], estimate.log_zero[:, 0]
        forbids = torch.isneginf(torch.stack([zero, one]))
        starved = forbids.all(0)
        log_odds = torch.where(starved, 0.0, one - zero).clamp(-self.limit, self.limit)
        return Messages(
            log_odds,
            starved,
            estimate.evaluations,
            estimate.min_hits,
            forbids if self.exact else None,
        )

    def estimate(self, key: Key, factors: Factors, cavity: Tensor) -> Estimate:
        """The estimate from cavities (F, R, A), log-odds, computed in chunks of factors."""
        self.check(factors)
        pieces = factors.chunks(self.bytes_per_factor(factors, cavity), self.memory)
        parts = [self.estimate_chunk(key, part, cavity[rows]) for rows, part in pieces]
        if not parts:
            empty = torch.empty(cavity.shape, dtype=torch.float64, device=cavity.device)
            return Estimate(empty, empty, 0)
        return Estimate(
            torch.cat([part.log_one for part in parts]),
            torch.cat([part.log_zero for part in parts]),
            sum(part.evaluations for part in parts),
            min((part.min_hits for part in parts if part.min_hits is not None), default=None),
        )

    def check(self, factors: Factors) -> None:  # noqa: B027 (most support all factors)
        """Raise an error if the update does not support these factors."""

    @abstractmethod
    def bytes_per_factor(self, factors: Factors, cavity: Tensor) -> int:
        """Temporary bytes for all tracks of one factor."""

    @abstractmethod
    def estimate_chunk(self, key: Key, factors: Factors, cavity: Tensor) -> Estimate:
        """The estimate for a chunk of factors; must not depend on the chunks."""

    def cavity(self, factors: Factors, belief: Tensor, message: Tensor) -> Tensor:
        """Belief without the factor's own message, clipped: (F, 1, A) float64, log-odds."""
        cavity = factors.scope.gather(belief) - message.to(torch.float64)
        return cavity.clamp(-self.limit, self.limit)[:, None]

    def sweep(
        self,
        key: Key,
        factors: Factors,
        belief: Tensor,
        message: Tensor,
        gamma: Tensor,
        rows: Tensor | None = None,
    ) -> Sweep:
        """Damped messages of the factors at rows (f,); γ (f,) is the weight of new messages.

        This defines a step of belief propagation at the factors; compiled kernels may do it in one
        pass over the rows.
        """
        result = self.messages(key, factors, belief, message, rows)
        scope = factors.scope if rows is None else factors.scope.select(rows)
        forbids, num_variables = result.forbids, belief.shape[0]
        # backend="torch" applies to damping too
        backend = "torch" if getattr(self, "backend", "auto") == "torch" else "auto"
        new, moved, change = self._mixed(
            factors, result.log_odds, message, gamma, rows, num_variables, backend
        )
        return Sweep(
            new,
            moved,
            change,
            _true_in_rows(result.starved),
            result.evaluations,
            result.min_hits,
            None if forbids is None else scope.total(forbids, num_variables),
        )

    def _mixed(
        self,
        factors: Factors,
        log_odds: Tensor,
        message: Tensor,
        gamma: Tensor,
        rows: Tensor | None,
        num_variables: int,
        backend: Backend = "auto",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Damped messages (f, A), their sum minus that of the old ones, largest changes (f,)."""
        kernel = None if self.exact else find("damp", backend, factors, log_odds.numel(), 0)
        if kernel is None:
            old = (message if rows is None else message[rows]).double()
            scope = factors.scope if rows is None else factors.scope.select(rows)
            new = damped(old, log_odds, gamma[:, None])
            change = (torch.sigmoid(new.double()) - torch.sigmoid(old)).abs().amax(1)
            return new, scope.total(new.double() - old, num_variables), change
        given = message, gamma, rows, num_variables
        new, moved, change, left = kernel.mixed(factors, log_odds, *given)
        if len(left):  # rows too close to a rounding boundary for the kernel
            places = left if rows is None else rows[left]
            given = message, gamma[left], places, num_variables
            new[left], more, change[left] = self._mixed(factors, log_odds[left], *given, "torch")
            moved = moved + more
        return new, moved, change


def _true_in_rows(values: Tensor) -> Tensor:
    """The number of true values in each row: (F, A) bool → (F,) int64.

    On a CPU torch's sum converts everything to int64 first; here only the few rows with any are
    converted. A GPU would have to wait for their number.
    """
    if values.device.type != "cpu":
        return values.sum(1)
    some = values.any(1).nonzero()[:, 0]
    return some.new_zeros(len(values)).index_copy_(0, some, values[some].sum(1))


def configurations(key: Key, factors: Factors, threshold: Tensor, samples: int) -> Tensor:
    """S configurations per track of cavities: (F, R·S, A) bool.

    threshold (F, R, A) int32. Draw s of track r has the sample number r·S + s.
    """
    num_factors, tracks, _ = threshold.shape
    number = torch.arange(tracks * samples, device=threshold.device).view(tracks, samples)
    ids = factors.ids.view(num_factors, 1, 1)
    return bernoulli(key, ids, number, threshold[:, :, None, :]).flatten(1, 2)


MAX_DRAWS = 2**24  # per factor and step: float32 counts hits exactly up to it


def checked_draws(name: str, value: int, least: int = 1) -> int:
    """`value`, or an error if it is not an integer from `least` to MAX_DRAWS."""
    return checked_count(name, value, least, MAX_DRAWS)


def checked_backend(backend: Backend) -> Backend:
    """`backend`, or an error if its name is unknown."""
    checked_choice("backend", backend, get_args(Backend))
    return backend


def damped(old: Tensor, new: Tensor, gamma: Tensor) -> Tensor:
    """Old and new messages mixed as probabilities: (1 − γ)·old + γ·new, on the message lattice.

    The formula of the paper's appendix C.1 lacks the second γ.

    Args:
        old: Messages (F, A), log-odds.
        new: Messages (F, A), log-odds.
        gamma: Weight of the new ones, 1 − damping, (F, 1).

    Returns:
        The messages (F, A) float32, log-odds.
    """
    on_host = gamma.device.type == "cpu"  # reading a GPU would wait for it
    if on_host and bool((gamma >= 1).all()):
        return on_lattice(new).to(torch.float32)
    old = old.to(torch.float64)
    mixed = torch.logit(torch.sigmoid(old) * (1 - gamma) + torch.sigmoid(new) * gamma)
    mixed = mixed.clamp(-EXACT_LIMIT, EXACT_LIMIT)
    return on_lattice(torch.where(gamma >= 1, new, mixed)).to(torch.float32)
