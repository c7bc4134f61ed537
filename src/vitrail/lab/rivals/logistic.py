"""Logistic regression with 8-bit weights in integer arithmetic."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.linear_model import LogisticRegression

from vitrail.lab.rivals.features import MISSING, Columns, Features, fill

UNIT = 64  # integer that stands for one standard deviation
SHIFT = 10  # of the factors by which numbers are scaled
LEAST = 0.5  # standard deviation, so that products do not overflow


@dataclass(frozen=True)
class Logistic:
    """8-bit weights on numbers that are standardised in integers.

    A number v becomes (v − middle)·factor >> SHIFT, about UNIT at one standard deviation above the
    mean; a missing number becomes 0. A feature of a word is UNIT or 0.
    """

    features: Features
    classes: np.ndarray
    middle: np.ndarray  # of numbers, int16
    factor: np.ndarray  # int32
    weights: np.ndarray  # (outputs, features) int8, one output for two classes
    bias: np.ndarray  # (outputs,) int32
    has_missing: bool  # whether numbers were missing in training

    @staticmethod
    def fit(columns: Columns, labels: np.ndarray, strength: float) -> Logistic:
        features = Features.fit(columns)
        numbers = features.matrix(columns)[:, : len(features.numbers)].astype(np.float64)
        numbers[numbers == MISSING] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns without any number
            middle = np.nan_to_num(np.rint(np.nanmean(numbers, 0))).astype(np.int64)
            spread = np.nan_to_num(np.nanstd(numbers, 0))
        factor = np.rint(UNIT * 2**SHIFT / np.maximum(spread, LEAST)).astype(np.int64)
        nothing, missing = np.zeros(0), bool(np.isnan(numbers).any())
        plain = Logistic(features, np.unique(labels), middle, factor, nothing, nothing, missing)
        learned = LogisticRegression(C=strength, max_iter=2000)
        learned.fit(plain.scaled(columns) / UNIT, labels)
        weights, bias = learned.coef_, learned.intercept_
        scale = 127 / max(np.abs(weights).max(), 1e-9)
        whole = np.rint(weights * scale).astype(np.int64)
        return replace(plain, weights=whole, bias=np.rint(bias * scale * UNIT).astype(np.int64))

    def scaled(self, columns: Columns) -> np.ndarray:
        """Scaled features, (rows, features) int64."""
        matrix = self.features.matrix(columns).astype(np.int64)
        count = len(self.features.numbers)
        numbers = (matrix[:, :count] - self.middle) * self.factor >> SHIFT
        numbers[matrix[:, :count] == MISSING] = 0
        return np.hstack([numbers, matrix[:, count:] * UNIT])

    def predict(self, columns: Columns) -> np.ndarray:
        """The class of each row."""
        sums = self.scaled(columns) @ self.weights.T + self.bias
        return self.classes[sums.argmax(1) if len(self.bias) > 1 else (sums[:, 0] > 0).astype(int)]

    def code(self) -> str:
        """The C function `best` of a row."""
        count, sizes = len(self.features.numbers), [*map(len, self.features.words.values())]
        return fill(
            "logistic",
            **vars(self),
            n=len(self.features.columns),
            count=count,
            sizes=sizes,
            first=count + np.cumsum([0, *sizes[:-1]]),
            missing=MISSING,
            shift=SHIFT,
            unit=UNIT,
        )
