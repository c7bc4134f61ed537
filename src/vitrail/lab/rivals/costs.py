"""Accuracy and device cost of other classifiers on labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from vitrail.export.devices import TARGETS, Cost, cost
from vitrail.export.golden import GOLDEN
from vitrail.lab.rivals.features import Columns, Features, device_columns
from vitrail.lab.rivals.headers import headers
from vitrail.lab.rivals.logistic import Logistic
from vitrail.learning.examples import split_rows

LEARNERS: dict[str, Any] = {
    "8 leaves": DecisionTreeClassifier(max_leaf_nodes=8, random_state=0),
    "32 leaves": DecisionTreeClassifier(max_leaf_nodes=32, random_state=0),
    "10 trees of 16 leaves": RandomForestClassifier(10, max_leaf_nodes=16, random_state=0),
    "15 stages of 4 leaves": GradientBoostingClassifier(
        n_estimators=15, max_leaf_nodes=4, learning_rate=0.3, random_state=0
    ),
    "": partial(Logistic.fit, strength=1.0),
}


@dataclass(frozen=True)
class RivalCost:
    """A classifier, its accuracy, and its cost on a Cortex-M0+."""

    name: str
    accuracy: float
    cost: Cost


def rival_costs(columns: Columns, labels: Any) -> list[RivalCost]:
    """Other classifiers for these rows, with accuracy by two-fold cross-validation.

    Each is exported as trained on all rows. Raises MissingPackageError without emlearn.
    """
    table, y = device_columns(columns), np.asarray(labels).astype(str)
    features = Features.fit(table)
    halves = split_rows(y, 0.5, seed=0)
    first = _selected(table, np.arange(min(GOLDEN, len(y))))
    found = []
    for size, learner in LEARNERS.items():
        correct = []
        for train, test in (halves, halves[::-1]):
            half, rows = (_selected(table, part) for part in (train, test))
            fitted = _fitted(learner, features, half, y[train])
            x = rows if isinstance(fitted, Logistic) else features.matrix(rows)
            correct.append(fitted.predict(x) == y[test])
        for kind, header in headers(_fitted(learner, features, table, y), features, first):
            name = f"{kind}, {size}" if size else kind
            measured = cost(header, "tiny", TARGETS[0], ("predict",))
            found.append(RivalCost(name, float(np.concatenate(correct).mean()), measured))
    return found


def _selected(table: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    return {name: cells[rows] for name, cells in table.items()}


def _fitted(learner: Any, features: Features, table: Columns, labels: np.ndarray) -> Any:
    if isinstance(learner, BaseEstimator):
        return clone(learner).fit(features.matrix(table), labels)  # pyright: ignore
    return learner(table, labels)
