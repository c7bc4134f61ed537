"""More rows do no harm: `partial_fit` with batches of any size and of any classes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from battery.floors import figures
from battery.problems import problem
from sklearn.datasets import load_breast_cancer, load_digits

from vitrail import BinaryNetClassifier

FALL = 0.03  # of accuracy on held-out rows, at most, from one batch


def rows_of(seed: int, rows: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    made = np.random.default_rng(seed)
    table = made.normal(size=(rows, 4))
    total = table[:, 0] + table[:, 1] + 0.3 * made.normal(size=rows)
    return table, np.digitize(total, [0.0] if classes == 2 else [-0.7, 0.7])


@pytest.mark.parametrize(
    ("settings", "classes"),
    [({"hidden": (7,)}, 2), ({"hidden": (3,), "solver": "sbp", "polish": 2}, 3)],
    ids=["default", "messages, three classes"],
)
@pytest.mark.parametrize(("size", "one_class"), [(51, True), (5, False), (1, False)])
def test_a_batch_does_not_undo_what_others_have_taught(settings, classes, size, one_class):
    table, labels = rows_of(0, 300, classes)
    held, truth = rows_of(1, 2000, classes)
    net = BinaryNetClassifier(random_state=0, **settings)
    net.partial_fit(table[:200], labels[:200])
    before = net.score(held, truth)
    assert before > (0.9 if classes == 2 else 0.65)
    more, theirs = rows_of(2, 400, classes)
    if one_class:
        more, theirs = more[theirs == 1], theirs[theirs == 1]
    for first in range(0, 3 * size, size):
        net.partial_fit(more[first : first + size], theirs[first : first + size])
        after = net.score(held, truth)
        assert after > before - FALL
        before = after


def test_one_more_row_weights_networks_and_leaves_them_as_they_are():
    table, labels = rows_of(0, 200, 2)
    net = BinaryNetClassifier(hidden=(7,), random_state=0).partial_fit(table, labels)
    networks = net.model_.networks.clone()
    net.partial_fit(table[:1], labels[:1])
    assert torch.equal(net.model_.networks, networks)
    wrong = net.model_.votes[:, 0] < net.model_.votes.max()
    said = net.model_.program.evaluate(
        networks[:, 0][None], net.model_.inputs(table[:1])[:, None].float()
    ).reshape(-1)
    assert torch.equal(wrong, (said > 0) != bool(labels[0] == net.classes_[1]))


def test_parts_that_double_the_rows_end_where_one_fit_ends():
    table, labels = rows_of(0, 300, 2)
    net = BinaryNetClassifier(hidden=(7,), random_state=0, inputs="binary")
    bits = (table > 0).astype(int)
    parts = net.partial_fit(bits[:100], labels[:100]).partial_fit(bits[100:], labels[100:])
    once = BinaryNetClassifier(hidden=(7,), random_state=0, inputs="binary").fit(bits, labels)
    assert torch.equal(parts.model_.networks, once.model_.networks)
    assert np.array_equal(parts.predict_proba(bits), once.predict_proba(bits))
    assert parts.model_.record["rows"] == 300


# --- six tables, batches of three sizes, of one class or mixed ------------------------------------

FIRST_ROWS = 200  # that the first call sees
BATCHES = {1: 8, 5: 8, 50: 4}  # how many of each size


class Table(NamedTuple):
    """Rows to learn from, and rows with the probability of each class to be judged by."""

    rows: np.ndarray
    labels: np.ndarray
    held: np.ndarray
    truth: np.ndarray  # (m, classes)
    weight: np.ndarray  # (m,), adding up to one


TABLES: dict[str, Callable[[], Table]] = {
    "titanic": lambda: of_problem("titanic"),
    "survey": lambda: of_problem("survey, 5000 rows"),
    "two numbers": lambda: of_problem("2 numbers, 25% flipped, 1000 rows"),
    "three classes": lambda: of_problem("3 classes, 1500 rows"),
    "breast cancer": lambda: of_scikit_learn(load_breast_cancer),
    "digits": lambda: of_scikit_learn(load_digits),
}


def of_problem(name: str) -> Table:
    one = problem(name, 0)
    return Table(one.rows, one.labels, one.test_rows, one.truth, one.weight)


def of_scikit_learn(load: Callable[..., Any]) -> Table:
    inputs, labels = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    seen, held = order[: len(order) // 2], order[len(order) // 2 :]
    truth = np.eye(labels.max() + 1)[labels[held]]
    return Table(inputs[seen], labels[seen], inputs[held], truth, np.full(len(held), 1 / len(held)))


def batches(table: Table, size: int, one_class: bool) -> list[np.ndarray]:
    """Rows after the first ones, by their numbers; of one class after the other."""
    later = np.arange(FIRST_ROWS, len(table.labels))
    parts = []
    for number in range(BATCHES[size]):
        mine = later[table.labels[later] == number % table.truth.shape[1]] if one_class else later
        parts.append(mine[number * size : (number + 1) * size])
    return [part for part in parts if len(part)]


@pytest.mark.long
@pytest.mark.parametrize("one_class", [False, True], ids=["mixed", "one class"])
@pytest.mark.parametrize("size", BATCHES)
@pytest.mark.parametrize("name", TABLES)
def test_no_batch_of_six_tables_does_harm(name, size, one_class):
    table = TABLES[name]()
    classes = np.arange(table.truth.shape[1])
    net = BinaryNetClassifier(random_state=0)
    net.partial_fit(table.rows[:FIRST_ROWS], table.labels[:FIRST_ROWS], classes)

    def accuracy() -> float:
        return figures(table.truth, table.weight, net.predict_proba(table.held)).accuracy

    begin = before = accuracy()
    assert begin > (table.weight @ table.truth).max()  # better than one answer for all
    parts = batches(table, size, one_class)
    assert parts
    for part in parts:
        net.partial_fit(table.rows[part], table.labels[part])
        after = accuracy()
        assert after > before - FALL
        before = after
    assert before > begin - FALL
