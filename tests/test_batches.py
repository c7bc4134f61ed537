"""More rows do no harm: `partial_fit` with batches of any size and of any classes."""

import numpy as np
import pytest
import torch

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
