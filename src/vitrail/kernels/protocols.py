"""What a module of kernels offers, task by task. The torch definitions say what it must return.

Every module also has `serves(factors, samples)`: whether it knows these factors, asked once for a
block. Rows (f,) int64 are places in the block; None is all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.random import Key, Stream


class FlipKernels(Protocol):
    """Sampled messages by single flips."""

    def hits(
        self, key: Key, factors: Network, threshold: Tensor, samples: int, /
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draws that meet the label with each weight set to 1, to 0 (F, R, A), as drawn (F, R)."""
        ...

    def messages(
        self,
        key: Key,
        factors: Network,
        belief: Tensor,
        message: Tensor,
        samples: int,
        limit: float,
        rows: Tensor | None,
        /,
    ) -> tuple[Tensor, Tensor]:
        """Log-odds (f, A) float64 and starved (f, A) bool; message (F, A) is the whole block's."""
        ...


class DampingKernels(Protocol):
    """New messages mixed with the old ones."""

    def mixed(
        self,
        factors: Factors,
        log_odds: Tensor,
        message: Tensor,
        gamma: Tensor,
        on_probability: bool,
        rows: Tensor | None,
        num_variables: int,
        /,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Messages (f, A), their sum less the old ones' (V,), changes (f,), rows left open (d,)."""
        ...


class CountingKernels(Protocol):
    """Sampled messages by counts."""

    def counts(
        self, key: Key, factors: Network, threshold: Tensor, samples: int, /
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draws with each weight at one, those that also meet the label (F, R, A), all (F, R)."""
        ...


class ScoreKernels(Protocol):
    """Which factors configurations satisfy."""

    def satisfied(self, factors: Network, states: Tensor, /) -> Tensor:
        """(C, F) bool of configurations (C, V) bool."""
        ...


class PoolKernels(Protocol):
    """Scores of a pool that all factors share."""

    def pool_scores(self, factors: Network, states: Tensor, /) -> Tensor:
        """(F, S) bool of configurations (S, A) bool."""
        ...

    def scratch_bytes(self, factors: Network, samples: int, /) -> int:
        """What scoring holds for one factor."""
        ...


class DrawKernels(Protocol):
    """Configurations drawn from cavities."""

    def configurations(
        self, key: Key, factors: Factors, threshold: Tensor, samples: int, /
    ) -> Tensor:
        """(F, R·S, A) bool; threshold (F, R, A) int32."""
        ...


class GaussianKernels(Protocol):
    """A whole damped sweep of Gaussian messages."""

    def gaussian_sweep(
        self,
        factors: Network,
        belief: Tensor,
        message: Tensor,
        limit: float,
        gamma: Tensor,
        on_probability: bool,
        rows: Tensor | None,
        /,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Messages (f, A), their sum less the old ones' (V,), largest changes (f,)."""
        ...

    def gaussian_total(
        self, factors: Network, belief: Tensor, limit: float, rows: Tensor | None, /
    ) -> Tensor:
        """The sum of messages of factors that have sent none before, (V,)."""
        ...


@dataclass(frozen=True)
class SurveyDraws:
    """How a step of surveys draws."""

    stream: Stream
    samples: int  # for each message
    survey_samples: int  # tracks
    limit: float  # of cavities, log-odds


@dataclass(frozen=True)
class GaussianCavities:
    """Cavities of the factors at some rows: a Gaussian of log-odds in each of two products."""

    chances: Tensor  # (f, A) int64: a 32-bit lane below takes the product over p
    centre: Tensor  # (f, 2, A) float64
    spread: Tensor  # (f, 2, A) float64


class SurveyKernels(Protocol):
    """A whole step of Gaussian surveys with flips."""

    Tables: Any

    def sums(self, survey: Tensor, rows: Tensor, tables: Any, /) -> Tensor:
        """Integer sums (11, f, A) of the surveys (F, A, B) at rows (f,)."""
        ...

    def update(
        self,
        key: Key,
        draws: SurveyDraws,
        factors: Network,
        rows: Tensor,
        survey: Tensor,
        cavities: GaussianCavities,
        gamma: Tensor,
        tables: Any,
        /,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """New surveys of the factors at rows, in place: sums (11, f, A), changes, starved (f,)."""
        ...
