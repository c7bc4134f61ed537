"""What a model's rivals cost on a device, for rows whose labels are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from vitrail.export.devices import TARGETS, Cost, cost
from vitrail.export.golden import GOLDEN
from vitrail.lab.rivals.features import Columns, Features, device_columns
from vitrail.lab.rivals.in_c import headers
from vitrail.lab.rivals.logistic import Logistic
from vitrail.lab.rivals.tsetlin import CLAUSES, Tsetlin, installed
from vitrail.learning.folds import split_rows

Maker = Callable[[Features, Columns, np.ndarray], Any]


def _of_features(learner: Any) -> Maker:
    def made(features: Features, table: Columns, labels: np.ndarray) -> Any:
        fresh: Any = clone(learner)
        return fresh.fit(features.matrix(table), labels)

    return made


MAKERS: dict[str, Maker] = {
    "8 leaves": _of_features(DecisionTreeClassifier(max_leaf_nodes=8, random_state=0)),
    "32 leaves": _of_features(DecisionTreeClassifier(max_leaf_nodes=32, random_state=0)),
    "10 trees of 16 leaves": _of_features(
        RandomForestClassifier(10, max_leaf_nodes=16, random_state=0)
    ),
    "15 stages of 4 leaves": _of_features(
        GradientBoostingClassifier(
            n_estimators=15, max_leaf_nodes=4, learning_rate=0.3, random_state=0
        )
    ),
    "": lambda _, table, labels: Logistic.fit(table, labels, 1.0),
}


@dataclass(frozen=True)
class Beside:
    """A rival, its accuracy, and its cost on a Cortex-M0+."""

    name: str
    accuracy: float
    cost: Cost


def beside(columns: Columns, labels: Any) -> list[Beside]:
    """Rivals for these rows: each learns on one half and is judged on the other, both ways, and is
    exported as it learns from all. Raises MissingPackageError without emlearn and m2cgen; a Tsetlin
    machine is among them where one is installed."""
    table, y = device_columns(columns), np.asarray(labels).astype(str)
    features = Features.fit(table)
    halves = split_rows(y, 0.5, seed=0)
    first = _taken(table, np.arange(min(GOLDEN, len(y))))
    found = []
    makers = dict(MAKERS)
    if installed():
        makers[f"{CLAUSES} clauses a class"] = lambda _, table, labels: Tsetlin.fit(table, labels)
    for size, make in makers.items():
        right = [
            _predicted(make(features, _taken(table, a), y[a]), features, _taken(table, b)) == y[b]
            for a, b in (halves, halves[::-1])
        ]
        learner = make(features, table, y)
        for way, header in headers(learner, features, first):
            name = f"{way}, {size}" if size else way
            measured = cost(header, "tiny", TARGETS[0], ("predict",))
            found.append(Beside(name, float(np.concatenate(right).mean()), measured))
    return found


def _taken(table: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    return {name: cells[rows] for name, cells in table.items()}


def _predicted(learner: Any, features: Features, table: Columns) -> np.ndarray:
    if isinstance(learner, Logistic | Tsetlin):
        return learner.predict(table)
    return learner.predict(features.matrix(table))
