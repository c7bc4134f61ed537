"""Rivals in C answer as they do in Python, for numbers, words and missing cells."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from parts import need
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from vitrail.extras import MissingPackageError
from vitrail.lab.rivals import Features, Logistic, as_integers, device_columns, headers
from vitrail.lab.rivals.boosted import Boosted

CHECK = """
#define TINY_CHECK
#include "tiny.h"
int main(void) { return (int)tiny_check(); }
"""


def table(classes):
    """Iris with words and missing cells."""
    values, labels = load_iris(return_X_y=True)
    columns = {f"x{i}": column.tolist() for i, column in enumerate(values.T)}
    columns["x1"] = ["?" if x < 2.5 else x for x in columns["x1"]]
    columns["x3"] = ["thin" if x < 1 else "wide" if x > 1.6 else "so so" for x in columns["x3"]]
    kept = np.flatnonzero(labels >= 3 - classes)
    columns = {name: [cells[i] for i in kept] for name, cells in columns.items()}
    return device_columns(columns), np.array(["a", "b", "c"])[labels[kept]]


LEARNERS = {
    "tree": DecisionTreeClassifier(max_leaf_nodes=6, random_state=0),
    "forest": RandomForestClassifier(5, max_leaf_nodes=6, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5, max_leaf_nodes=4, random_state=0),
    "logistic": None,
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", LEARNERS)
def test_a_rival_in_c_answers_as_in_python(kind, classes, tmp_path):
    need("gcc")
    columns, labels = table(classes)
    features = Features.fit(columns)
    assert (len(features.numbers), len(features.words)) == (3, 1)
    learner: Any
    if kind == "logistic":
        learner = Logistic.fit(columns, labels, 1.0)
        assert np.mean(learner.predict(columns) == labels) > 0.9
    else:
        learner = LEARNERS[kind].fit(features.matrix(columns), labels)
        pytest.importorskip("emlearn", reason="pip install 'vitrail[rivals]'")
    if kind == "boosting":
        near = Boosted(learner, features).predict(features.matrix(columns))
        assert np.mean(learner.classes_[near] == learner.predict(features.matrix(columns))) > 0.98
    ways = dict(headers(learner, features, columns))
    assert len(ways) == (2 if kind == "boosting" else 1)
    for header in ways.values():
        (tmp_path / "tiny.h").write_text(header)
        (tmp_path / "main.c").write_text(CHECK)
        subprocess.run(["gcc", "main.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
        assert subprocess.run([tmp_path / "main"]).returncode == 0


def test_numbers_are_whole_in_the_largest_unit_that_shows_them():
    assert as_integers(np.array([1.5, np.nan, -2.0])).tolist()[::2] == [15, -20]
    assert as_integers(np.array([3.0, 70_000.0])).tolist() == [3, 32767]
    assert as_integers(np.array([1 / 3, 9.0])).tolist() == [333, 9000]  # 90,000 needs 17 bits


def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "emlearn", None)
    columns, labels = table(2)
    features = Features.fit(columns)
    tree = DecisionTreeClassifier(max_leaf_nodes=2).fit(features.matrix(columns), labels)
    with pytest.raises(MissingPackageError, match=r"needs emlearn, .*'vitrail\[rivals\]'"):
        next(headers(tree, features, columns))
