"""Other classifiers as C headers: trees and forests by emlearn and m2cgen, the others by templates.

Each header defines the names that vitrail's firmware uses, so the same tools measure all. A row is
a struct of 16-bit numbers and of words by number. Code of emlearn reads it directly; for that of
m2cgen it is converted to doubles.
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
from vitrail.lab.rivals.tsetlin import Tsetlin


def headers(
    learner: Any, features: Features, rows: Columns, *, doubles: bool = True
) -> Iterator[tuple[str, str]]:
    """C headers of a learner, by name; the rows become golden vectors.

    learner: a tree, forest or boosting of scikit-learn on `features`, `Logistic` or `Tsetlin`.
    doubles: also by m2cgen, whose code is several times larger than emlearn's.
    """
    if isinstance(learner, Logistic | Tsetlin):
        answers = learner.classes.searchsorted(learner.predict(rows))
        name = "logistic, int8" if isinstance(learner, Logistic) else "Tsetlin machine"
        yield name, _header(learner.features, learner.code(), rows, answers)
        return
    x = features.matrix(rows)
    if hasattr(learner, "init_"):
        boosted = Boosted(learner, features)
        for way, code in boosted.variants():
            yield f"boosting, {way}", _header(features, code, rows, boosted.predict(x))
        return
    with needs("rivals", "a tree or forest in C"):
        import emlearn  # pyright: ignore[reportMissingImports] (an extra)
        import m2cgen  # pyright: ignore[reportMissingImports] (an extra)

    many = hasattr(learner, "estimators_")
    kind = "forest" if many else "tree"
    answers = learner.classes_.searchsorted(learner.predict(x))
    votes = learner.classes_.searchsorted(majority(learner, x)) if many else answers
    converted: Any = emlearn.convert(_integer_thresholds(learner), method="inline")
    code = _reading_rows(converted.save(name="rival", format="c"), features)
    yield f"{kind}, emlearn", _header(features, code, rows, votes, "rival_predict(row, 0)")
    if not doubles:
        return
    inputs = [features.expression(i) for i in range(len(features.columns))]
    whole = m2cgen.export_to_c(learner)
    code = fill("doubles", code=whole, features=inputs, classes=len(learner.classes_))
    yield f"{kind}, m2cgen", _header(features, code, rows, answers)


def majority(forest: Any, x: np.ndarray) -> np.ndarray:
    """The majority of trees, the first of equals, as emlearn's forests answer."""
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
    code = re.sub(r"#include .*", "", code)
    code = code[: code.index("int rival_predict_proba")]
    code = re.sub(r"features\[(\d+)\]", lambda m: features.expression(int(m[1])), code)
    return code.replace("const int16_t *features", "const tiny_row *row").replace(
        "(features, features_length)", "(row, features_length)"
    )


def _header(
    features: Features, code: str, rows: Columns, answers: np.ndarray, answer: str = "best(row)"
) -> str:
    """The code with the names that the firmware uses, and golden vectors of Python's answers."""
    return fill(
        "header",
        code=code,
        numbers=len(features.numbers),
        words=len(features.words),
        answer=answer,
        answers=answers,
        rows=features.initialisers(rows),
    )
