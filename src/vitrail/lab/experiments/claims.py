"""Claims of the paper beside our measurements, with verdicts that are computed from the numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

CONFIDENCE = 0.95  # of intervals
NEGLIGIBLE = 0.01  # accuracy; differences within it count as none


class Verdict(StrEnum):
    """Whether a measurement supports a claim."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    OPEN = "inconclusive"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper beside our measurement.

    remedy: what would make the claim hold; shown where it does not.
    """

    paper: str
    measured: str
    verdict: Verdict
    remedy: str = ""

    @property
    def advice(self) -> str:
        return "" if self.verdict is Verdict.HOLDS else self.remedy


@dataclass(frozen=True)
class Difference:
    """Mean of `count` independent paired differences and its standard error."""

    mean: float
    error: float
    count: int

    @property
    def positive(self) -> bool:
        """Whether the 95 % interval lies above zero."""
        return self.mean > self.half_width

    @property
    def negative(self) -> bool:
        """Whether the 95 % interval lies below zero."""
        return self.mean < -self.half_width

    @property
    def negligible(self) -> bool:
        """Whether the 95 % interval lies within ±0.01."""
        return abs(self.mean) + self.half_width <= NEGLIGIBLE

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval, by Student's t; infinite for one difference."""
        from scipy.stats import t

        if self.count < 2:
            return math.inf
        return float(t.ppf((1 + CONFIDENCE) / 2, self.count - 1)) * self.error

    def __str__(self) -> str:
        text = f"{self.mean:+.4f} ± {self.error:.4f}"
        return text.replace("-", "−").replace(" ", "\N{NO-BREAK SPACE}")


def paired(first: Sequence[float], second: Sequence[float]) -> Difference:
    """first − second over the same problems; a single problem has an infinite error."""
    if len(first) != len(second) or not first:
        raise ValueError(
            f"paired differences need two samples of one length, got {len(first)} and "
            f"{len(second)}; compare the same problems"
        )
    differences = [a - b for a, b in zip(first, second, strict=True)]
    count = len(differences)
    error = deviation(differences) / math.sqrt(count) if count > 1 else math.inf
    return Difference(mean(differences), error, count)


def verdict_of(differences: Sequence[Difference]) -> Verdict:
    """Verdict on the claim that every difference is positive.

    It holds where all are significantly positive and fails where any is significantly negative.
    Otherwise it holds in part where some are positive, fails where any is negligible, and is
    inconclusive if none is.
    """
    if any(difference.negative for difference in differences):
        return Verdict.FAILS
    if all(difference.positive for difference in differences):
        return Verdict.HOLDS
    if any(difference.positive for difference in differences):
        return Verdict.PARTLY
    return (
        Verdict.FAILS if any(difference.negligible for difference in differences) else Verdict.OPEN
    )


def found_or_decoded(best: Difference, decoded: Difference) -> Verdict:
    """Verdict on a claim of better configurations: found among all tracks, and decoded.

    It holds where both differences are significantly positive, and in part where one is.
    """
    gains = [best.positive, decoded.positive]
    if any(gains):
        return Verdict.HOLDS if all(gains) else Verdict.PARTLY
    return Verdict.FAILS if best.negative or decoded.negative else Verdict.OPEN


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; NaN of nothing."""
    return statistics.fmean(values) if values else math.nan


def deviation(values: Sequence[float]) -> float:
    """Standard deviation over repeats; 0 of one."""
    return statistics.stdev(values) if len(values) > 1 else 0.0
