"""Scores of predictions: calibration, accuracy by coverage, AUC, log-loss, drift."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BINS = 10  # of confidence
MIN_PROBABILITY = 1e-9  # probabilities are clipped to it in log-loss


def reliability(confidence: np.ndarray, right: np.ndarray) -> list[tuple[float, float, int]]:
    """Per bin of confidence that has rows: mean confidence, accuracy, rows."""
    place = _bins(confidence, BINS)
    return [
        (float(confidence[place == one].mean()), float(right[place == one].mean()), int(count))
        for one, count in enumerate(np.bincount(place, minlength=BINS))
        if count
    ]


def calibration_gaps(confidence: np.ndarray, right: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Σ (right − confidence) over the rows of each bin, (bins,); gaps of several sets add up."""
    return np.bincount(_bins(confidence, bins), right - confidence, bins)


def calibration_error(confidence: np.ndarray, right: np.ndarray, bins: int = BINS) -> float:
    """Expected calibration error: Σ_b (rows in b / rows)·|accuracy in b − mean confidence in b|."""
    return float(np.abs(calibration_gaps(confidence, right, bins)).sum() / len(right))


def coverage(confidence: np.ndarray, right: np.ndarray, parts: int) -> list[tuple[int, float]]:
    """Rows and accuracy of the 1/parts, 2/parts, … of the rows that have the highest confidence."""
    ordered = right[np.argsort(-confidence, kind="stable")]
    counts = [max(1, round(len(right) * part / parts)) for part in range(1, parts + 1)]
    return [(rows, float(ordered[:rows].mean())) for rows in counts]


def area_under_curve(score: np.ndarray, positive: np.ndarray) -> float:
    """P(a positive row scores above a negative one), ties counting half; NaN for one class."""
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]  # from 1, the mean of equal scores
    ones = int(positive.sum())
    zeros = len(positive) - ones
    if not ones * zeros:
        return float("nan")
    return float((rank[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def log_loss(own: np.ndarray) -> float:
    """Mean −ln of the probabilities of the labels, clipped to MIN_PROBABILITY."""
    return float(-np.log(np.clip(own, MIN_PROBABILITY, 1)).mean())


def _bins(confidence: np.ndarray, bins: int) -> np.ndarray:
    return np.minimum((confidence * bins).astype(int), bins - 1)


class PageHinkley:
    """Page–Hinkley test: whether the mean of a sequence has risen.

    With m_t = Σ (x_t − mean_t − slack), it detects a rise where m_t exceeds its minimum by the
    threshold, and then restarts.

    Examples:
        >>> test = PageHinkley()
        >>> [t for t in range(2000) if test.add(float(t >= 1000))]
        [1025]
    """

    SLACK, THRESHOLD, LATE = 0.015, 25.0, 200  # in units of x; rows in the mean `late`

    def __init__(self) -> None:
        self.late = 0.0  # a moving mean
        self._begin()

    def _begin(self) -> None:
        self._count, self._mean, self._sum, self._least = 0, 0.0, 0.0, 0.0

    def add(self, value: float) -> bool:
        """Add the next value; returns whether the mean has risen."""
        self._count += 1
        self.late += (value - self.late) / min(self._count, self.LATE)
        self._mean += (value - self._mean) / self._count
        self._sum += value - self._mean - self.SLACK
        self._least = min(self._least, self._sum)
        if self._sum - self._least <= self.THRESHOLD:
            return False
        self._begin()
        return True

    def state(self) -> list[float]:
        """The state, for `restore`."""
        return [self.late, self._count, self._mean, self._sum, self._least]

    def restore(self, state: Sequence[float]) -> None:
        """Continue from a `state`."""
        self.late, count, self._mean, self._sum, self._least = state
        self._count = int(count)
