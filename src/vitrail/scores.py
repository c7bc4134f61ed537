"""Scores of predictions: calibration, accuracy by coverage, AUC, log-loss."""

from __future__ import annotations

import numpy as np

BINS = 10  # of confidence
LEAST = 1e-9  # probability that a loss counts


def reliability(confidence: np.ndarray, right: np.ndarray) -> list[tuple[float, float, int]]:
    """Per bin of confidence that has rows: mean confidence, accuracy, rows."""
    place = _bins(confidence, BINS)
    return [
        (float(confidence[place == one].mean()), float(right[place == one].mean()), int(count))
        for one, count in enumerate(np.bincount(place, minlength=BINS))
        if count
    ]


def calibration_gaps(confidence: np.ndarray, right: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Σ (right − confidence) over the rows of each bin, (bins,): gaps of several sets add up."""
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
    """P(a positive row scores above a negative one), ties counting half; NaN without either."""
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]  # from 1, the mean of equal scores
    ones = int(positive.sum())
    zeros = len(positive) - ones
    if not ones * zeros:
        return float("nan")
    return float((rank[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def log_loss(own: np.ndarray) -> float:
    """Mean −ln of the probabilities that the labels got, none below LEAST."""
    return float(-np.log(np.clip(own, LEAST, 1)).mean())


def _bins(confidence: np.ndarray, bins: int) -> np.ndarray:
    return np.minimum((confidence * bins).astype(int), bins - 1)
