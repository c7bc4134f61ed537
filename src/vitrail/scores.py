"""Scores of predictions: calibration by bins of confidence, and accuracy by coverage."""

from __future__ import annotations

import numpy as np

BINS = 10  # of confidence


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


def _bins(confidence: np.ndarray, bins: int) -> np.ndarray:
    return np.minimum((confidence * bins).astype(int), bins - 1)
