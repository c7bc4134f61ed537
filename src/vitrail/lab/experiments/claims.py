"""What the paper says, what we measured, and whether it holds: computed, never typed in."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

# Student's t for two-sided 95 %, by degrees of freedom from 1; the normal quantile for many
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
NORMAL = 1.96
LEVEL = 0.01  # accuracy; differences within it are called none


class Verdict(StrEnum):
    """Whether a measurement supports a claim."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    OPEN = "cannot be told"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper beside our measurement, in plain words.

    remedy says what would make the claim hold; it is shown where it does not.
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
    """Mean of paired differences and its standard error over `count` independent ones.

    It counts as clear when its 95 % confidence interval leaves out zero.
    """

    mean: float
    error: float
    count: int

    @property
    def above(self) -> bool:
        return self.mean > clear(self.count) * self.error

    @property
    def below(self) -> bool:
        return self.mean < -clear(self.count) * self.error

    @property
    def level(self) -> bool:
        """Whether the 95 % interval lies within ±0.01."""
        return abs(self.mean) + (clear(self.count) * self.error if self.error else 0.0) <= LEVEL

    def __str__(self) -> str:
        text = f"{self.mean:+.4f} ± {self.error:.4f}"
        return text.replace("-", "−").replace(" ", "\N{NO-BREAK SPACE}")


def clear(count: int) -> float:
    """Standard errors that a mean of `count` differences must be away from zero.

    >>> clear(5), round(clear(20), 2)
    (2.78, 2.09)
    """
    freedom = count - 1
    if freedom < 1:
        return math.inf
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    return NORMAL + (NORMAL**3 + NORMAL) / (4 * freedom) + 2.8 / freedom**2  # Cornish and Fisher


def paired(first: Sequence[float], second: Sequence[float]) -> Difference:
    """first − second over the same problems; one problem alone has an infinite error."""
    if len(first) != len(second) or not first:
        raise ValueError(
            f"paired differences need two samples of one length, got {len(first)} and "
            f"{len(second)}; compare the same problems"
        )
    differences = [a - b for a, b in zip(first, second, strict=True)]
    count = len(differences)
    error = spread(differences) / math.sqrt(count) if count > 1 else math.inf
    return Difference(mean(differences), error, count)


def judged(differences: Sequence[Difference]) -> Verdict:
    """For a claim that every difference is positive.

    It holds when all are clearly positive, fails when any is clearly negative, holds in part
    when some are clear and none contradicts, fails when any of the others is level, and cannot be
    told otherwise.
    """
    if any(difference.below for difference in differences):
        return Verdict.FAILS
    if all(difference.above for difference in differences):
        return Verdict.HOLDS
    if any(difference.above for difference in differences):
        return Verdict.PARTLY
    return Verdict.FAILS if any(difference.level for difference in differences) else Verdict.OPEN


def found_or_decoded(best: Difference, decoded: Difference) -> Verdict:
    """For a claim of better configurations: found among all tracks, and decoded from marginals.

    It holds when both gain clearly, in part when only one does, fails when neither does and one
    loses clearly.
    """
    gains = [best.above, decoded.above]
    if any(gains):
        return Verdict.HOLDS if all(gains) else Verdict.PARTLY
    return Verdict.FAILS if best.below or decoded.below else Verdict.OPEN


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; NaN of nothing."""
    return statistics.fmean(values) if values else math.nan


def spread(values: Sequence[float]) -> float:
    """Standard deviation over repeats; 0 of one."""
    return statistics.stdev(values) if len(values) > 1 else 0.0
