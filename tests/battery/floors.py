"""What a learner must reach on a problem: figures of rivals trained on the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from battery.problems import Problem, problem
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

ACCURACY_LOSS = 0.02  # below the better of a tree and logistic regression
LOG_LOSS_EXCESS = 0.02  # above the base rate's
CALIBRATION_ERROR = 0.1
LOGISTIC_EXCESS = 0.03  # above logistic regression's log-loss, where labels are flipped
STANDARD_ERROR = 0.5  # of a share, times the root of the number of rows, at most
BINS = 10  # of the confidence, for the calibration error
LEAST = 1e-9  # probability that a log-loss looks at
LARGEST_LOG_LOSS = {"titanic": 0.52}  # where the base rate asks for too little


@dataclass(frozen=True)
class Figures:
    """How well probabilities fit a population."""

    accuracy: float
    log_loss: float
    calibration_error: float


def figures(truth: np.ndarray, weight: np.ndarray, probability: np.ndarray) -> Figures:
    """Of probabilities (m, C) on rows with weights (m,) and true probabilities (m, C)."""
    answer = probability.argmax(1)
    confidence = probability.max(1)
    right = truth[np.arange(len(truth)), answer]
    which = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gap = np.bincount(which, weight * (right - confidence), BINS)
    loss = -(truth * np.log(np.clip(probability, LEAST, 1))).sum(1)
    return Figures(float(weight @ right), float(weight @ loss), float(np.abs(gap).sum()))


def columns_of(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Rows as rivals read them: words one-hot by the training rows `known`, gaps as a column."""
    parts = []
    for column, seen in zip(rows.T, known.T, strict=True):
        if any(isinstance(cell, str) for cell in seen):
            coder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
            coder.fit(seen.astype(str)[:, None])
            parts.append(coder.transform(column.astype(str)[:, None]))
        else:
            gone = np.isnan(column.astype(float))
            parts.append(np.stack([np.where(gone, 0.0, column.astype(float)), gone], 1))
    return np.concatenate(parts, 1)


@cache
def rivals(name: str, seed: int) -> dict[str, Figures]:
    """A small tree, logistic regression, and the base rate, on the rows of a problem."""
    asked = problem(name, seed)
    rows, test = columns_of(asked.rows, asked.rows), columns_of(asked.test_rows, asked.rows)
    leaf = max(1, len(rows) // 100)
    tree = DecisionTreeClassifier(max_depth=6, min_samples_leaf=leaf, random_state=0)
    found = {
        "tree": tree.fit(rows, asked.labels).predict_proba(test),
        "logistic": LogisticRegression(max_iter=1000).fit(rows, asked.labels).predict_proba(test),
        "base rate": np.tile(shares(asked), (len(test), 1)),
    }
    return {one: figures(asked.truth, asked.weight, said) for one, said in found.items()}


def shares(asked: Problem) -> np.ndarray:
    """The share of each class in the training rows, (C,), each with one row more."""
    counts = np.bincount(asked.labels, minlength=asked.truth.shape[1]) + 1.0
    return counts / counts.sum()


def floors(name: str, seed: int) -> Figures:
    """Least accuracy, largest log-loss and largest calibration error.

    Few rows make any learner err. Of n independent rows a share is known to a standard error of
    0.5/√n, by which accuracy may be less, and twice which calibration may be off; a curve of two
    numbers costs 1/n in log-loss. Where every row of the population was seen, accuracy must hold.
    """
    asked, rival = problem(name, seed), rivals(name, seed)
    rows = asked.draws or len(asked.labels)
    accuracy = max(rival["tree"].accuracy, rival["logistic"].accuracy) - ACCURACY_LOSS
    calibration_error = CALIBRATION_ERROR + 2 * STANDARD_ERROR / rows**0.5
    if asked.draws is not None:
        accuracy -= STANDARD_ERROR / rows**0.5
    log_loss = rival["base rate"].log_loss + LOG_LOSS_EXCESS + 1 / rows
    if "flipped" in name:
        log_loss = min(log_loss, rival["logistic"].log_loss + LOGISTIC_EXCESS)
    log_loss = min(log_loss, LARGEST_LOG_LOSS.get(name, np.inf))
    return Figures(accuracy, log_loss, calibration_error)


def shortfalls(found: Figures, floor: Figures) -> list[str]:
    """What is worse than its floor, in words."""
    missed = {
        "accuracy": found.accuracy < floor.accuracy,
        "log_loss": found.log_loss > floor.log_loss,
        "calibration_error": found.calibration_error > floor.calibration_error,
    }
    return [
        f"{one} {getattr(found, one):.4f}, expected {getattr(floor, one):.4f}"
        for one, is_missed in missed.items()
        if is_missed
    ]
