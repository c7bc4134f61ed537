"""Other classifiers as C headers: trees and forests by emlearn, the others by templates.

Each header defines the names that vitrail's firmware uses, so the same tools measure all. A row is
a struct of 16-bit numbers and of words by number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from vitrail.extras import needs
from vitrail.lab.rivals.boosted import Boosted
from vitrail.lab.rivals.features import Columns, Features, fill
from vitrail.lab.rivals.logistic import Logistic


def headers(learner: Any, features: Features, rows: Columns) -> Iterator[tuple[str, str]]:
    """C headers of a learner, by name; the rows become golden vectors.

    learner: a tree, forest or boosting of scikit-learn on `features`, or `Logistic`.
    """

    def header(code: str, answers: np.ndarray, call: str = "best(row)") -> str:
        return fill(
            "header",
            code=code,
            numbers=len(features.numbers),
            words=len(features.words),
            answer=call,
            answers=answers,
            rows=features.initialisers(rows),
        )

    if isinstance(learner, Logistic):
        features = learner.features
        predictions = learner.classes.searchsorted(learner.predict(rows))
        yield "logistic, int8", header(learner.code(), predictions)
        return
    x = features.matrix(rows)
    if hasattr(learner, "init_"):
        boosted = Boosted(learner, features)
        for variant, code in boosted.variants():
            yield f"boosting, {variant}", header(code, boosted.predict(x))
        return
    with needs("rivals", "a tree or forest in C"):
        import emlearn  # pyright: ignore[reportMissingImports] (an extra)

    forest = hasattr(learner, "estimators_")
    predictions = majority(learner, x) if forest else learner.predict(x)
    converted: Any = emlearn.convert(_integer_thresholds(learner), method="inline")
    code = _reading_rows(converted.save(name="rival", format="c"), features)
    name = f"{'forest' if forest else 'tree'}, emlearn"
    yield name, header(code, learner.classes_.searchsorted(predictions), "rival_predict(row, 0)")


def majority(forest: Any, x: np.ndarray) -> np.ndarray:
    """The majority of trees, the first of ties, as in emlearn's forests."""
    answers = np.stack([tree.predict(x) for tree in forest.estimators_]).astype(int)
    votes = np.stack([(answers == number).sum(0) for number in range(len(forest.classes_))])
    return forest.classes_[votes.argmax(0)]


def _integer_thresholds(learner: Any) -> Any:
    """A copy with thresholds rounded up: emlearn writes x <= 7.5 as x < 7 otherwise."""
    copy = deepcopy(learner)
    for tree in getattr(copy, "estimators_", [copy]):
        inner = tree.tree_.children_left >= 0
        tree.tree_.threshold[inner] = np.floor(tree.tree_.threshold[inner]) + 1
    return copy


def _reading_rows(code: str, features: Features) -> str:
    """emlearn's code with a row in place of its array of features."""
    code = re.sub(r"#include .*", "", code)
    code = code[: code.index("int rival_predict_proba")]
    code = re.sub(r"features\[(\d+)\]", lambda m: features.expression(int(m[1])), code)
    return code.replace("const int16_t *features", "const tiny_row *row").replace(
        "(features, features_length)", "(row, features_length)"
    )
