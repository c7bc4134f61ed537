"""Rows held out: parts are fair, nothing leaks, and noise makes chains warm."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail import BinaryNetClassifier
from vitrail.learning.effort import num_folds
from vitrail.learning.examples import Examples, split_rows, stratified_folds
from vitrail.model.calibration import Evidence, calibrate


def fitted(table: np.ndarray, labels: np.ndarray, **settings) -> BinaryNetClassifier:
    return BinaryNetClassifier(**{"random_state": 0, "hidden": (7,), **settings}).fit(table, labels)


@given(st.lists(st.integers(0, 3), min_size=8, max_size=60), st.integers(0, 5))
def test_every_class_is_divided_evenly(labels, seed):
    classes = torch.tensor(labels)
    ones = torch.ones(len(labels), dtype=torch.float64)
    rows = Examples(torch.zeros(len(labels), 1), classes, ones, ones)
    share = stratified_folds(rows, 4, seed)
    assert bool(((share == 0) | (share == 1)).all())
    for number in set(labels):
        counts = share[:, classes == number].sum(1)
        assert int(counts.max() - counts.min()) <= 1
    assert int(share.sum(1).min()) >= len(labels) // 4
    assert torch.equal(share, stratified_folds(rows, 4, seed))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 40)), min_size=1), st.integers(0, 5))
def test_repeated_rows_are_divided_among_folds(examples, seed):
    labels = torch.tensor([label for label, _ in examples])
    rows = torch.tensor([count for _, count in examples], dtype=torch.float64)
    share = stratified_folds(Examples(labels[:, None], labels, rows, rows), 4, seed)
    counts_of_folds = share * rows
    assert torch.allclose(counts_of_folds.sum(0), rows)
    assert bool((counts_of_folds - counts_of_folds.round()).abs().max() < 1e-9)
    assert bool((counts_of_folds.amax(0) - counts_of_folds.amin(0) <= 1 + 1e-9).all())
    for label in labels.unique():
        counts = counts_of_folds[:, labels == label].sum(1)
        assert float(counts.max() - counts.min()) <= 1 + 1e-9


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.floats(0, 0.9), st.integers(0, 5))
def test_a_split_takes_the_same_share_of_every_class(labels, share, seed):
    classes = np.array(labels)
    rows, held = split_rows(classes, share, seed)
    assert sorted([*rows, *held]) == list(range(len(labels)))
    for number in set(labels):
        assert (classes[held] == number).sum() == int(share * (classes == number).sum())


def test_a_split_does_not_follow_the_order_of_rows():
    _, held = split_rows(np.repeat(["a", "b"], 500), 0.2, 0)
    for first in (0, 500):
        mine = held[(held >= first) & (held < first + 500)]
        # the mean of 100 even draws without replacement: five standard errors
        assert abs(mine.mean() - first - 249.5) < 5 * 500 / np.sqrt(12 * 100)


@pytest.mark.filterwarnings("ignore:held-out rows show no relation")
def test_random_labels_give_low_confidence():
    """Networks fit 120 coins; chains that had seen the rows they score would be confident in them.

    Of a fair coin a log-loss below 0.6 on 120 rows has a probability below 1e-3.
    """
    made = np.random.default_rng(1)
    table, labels = made.normal(size=(120, 6)), made.integers(0, 2, 120)
    net = fitted(table, labels)
    assert net.model_.record["best_accuracy"] > 0.8
    assert net.model_.record["held_out_log_loss"] > 0.6
    assert net.predict_proba(made.normal(size=(200, 6))).max(1).mean() < 0.7


@pytest.mark.parametrize("seed", [3, 10])
def test_networks_that_say_nothing_of_new_rows_give_the_base_rate_and_a_warning(seed):
    made = np.random.default_rng(seed)
    table, labels = made.normal(size=(60, 2)), (made.random(60) < 0.3).astype(int)
    with pytest.warns(UserWarning, match="held-out rows show no relation"):
        net = fitted(table, labels)
    assert net.model_.record["calibrated_by"] == "base rate"
    assert np.abs(net.predict_proba(table)[:, 1] - labels.mean()).max() < 0.05


def test_noise_wants_warmer_chains_than_a_rule():
    made = np.random.default_rng(3)
    table = made.integers(0, 2, size=(300, 20))
    rule = table[:, 0] | table[:, 1]
    noisy = np.where(made.random(300) < 0.3, 1 - rule, rule)
    warm, cold = (
        max(fitted(table + 0.0, labels, hidden="auto").model_.record["settings"]["beta"])
        for labels in (noisy, rule)
    )
    assert warm <= 2 < cold


def test_a_beta_that_is_given_is_kept():
    made = np.random.default_rng(3)
    table = made.normal(size=(60, 2))
    net = fitted(table, table[:, 0] > 0, beta=3.0)
    assert net.model_.record["settings"]["beta"] == [3.0]
    assert net.model_.record["held_out_log_loss"] < 0.5


def test_too_few_rows_are_left_out_one_by_one():
    table = np.array([[0.0], [1.0]] * 3)
    net = fitted(table, np.array([0, 1] * 3))
    assert "held_out_log_loss" not in net.model_.record
    assert net.predict([[0.0], [1.0]]).tolist() == [0, 1]


@pytest.mark.parametrize(("rows", "folds"), [(20, 4), (1000, 4), (2000, 2), (48_000, 1)])
def test_many_rows_need_fewer_folds(rows, folds):
    assert num_folds(rows) == folds


def test_curves_of_few_networks_are_made_steeper_for_many():
    """What 400 noisy networks say in the mean is calibrated by what 16 of them show.

    Scores of 4,000 rows; the mean probability is right to 0.05, and is off by more without `count`.
    """
    made = torch.Generator().manual_seed(0)
    truth = torch.randn(4000, generator=made)
    labels = (torch.rand(4000, generator=made) < torch.sigmoid(4 * truth)).long()
    noise = 4 * torch.randn(4000, 416, generator=made)
    raw = (2 * truth[:, None] + noise).round().long()[..., None, None]
    weight = torch.ones(4000, dtype=torch.float64)
    few = Evidence(raw[:, :16], labels, weight)
    many = Evidence(raw[:, 16:], labels, weight)
    off = []
    for count in (None, 400):
        table = calibrate(few, 2, "argmax", clip=9, networks=count).table
        probability = many.probabilities(9, table, 2, "argmax") / 65535
        right = (probability.argmax(1) == labels).double()
        off.append(float((probability.amax(1) - right).mean()))
    assert abs(off[1]) < 0.03 < -off[0]


def test_probabilities_of_several_classes_are_calibrated():
    """One net per class and normalised probabilities: the mean is right to 0.05."""
    made = torch.Generator().manual_seed(1)
    classes, rows = 6, 3000
    truth = torch.randn(rows, classes, generator=made)
    labels = torch.multinomial(torch.softmax(2 * truth, 1), 1, generator=made)[:, 0]
    raw = (3 * truth).round().long()[:, None, :, None]
    evidence = Evidence(raw, labels, torch.ones(rows, dtype=torch.float64))
    table = calibrate(evidence, classes, "one-vs-rest", clip=15).table
    probability = evidence.probabilities(15, table, classes, "one-vs-rest") / 65535
    right = (probability.argmax(1) == labels).double().mean()
    assert abs(float(probability.amax(1).mean() - right)) < 0.05


def evidence_of(scores: torch.Tensor, labels: torch.Tensor, networks: int) -> Evidence:
    """Noisy margins of many networks around a score per row."""
    made = torch.Generator().manual_seed(5)
    noise = 6 * torch.randn(len(scores), networks, generator=made)
    raw = (scores[:, None] + noise).round().long()[..., None, None]
    return Evidence(raw, labels, torch.ones(len(scores), dtype=torch.float64))


def test_scores_without_relation_to_labels_give_the_base_rate():
    made = torch.Generator().manual_seed(3)
    labels = (torch.rand(1000, generator=made) < 0.2).long()
    scores = -3 * (2.0 * labels - 1)  # the curve would fall
    made_of = calibrate(evidence_of(scores, labels, 16), 2, "argmax", clip=9)
    assert made_of.source == "base rate"
    table = made_of.table[0] / 65535
    assert table.max() < 0.5  # every row gets the commoner class
    assert abs(float(table.median()) - 0.2) < 0.02
    assert bool((table.diff() >= 0).all())
    assert table[-1] > table[0]  # votes still decide between classes of one size


@pytest.mark.parametrize("slope", [0.02, 0.1, 0.3, 1.0])
def test_curves_for_more_networks_keep_the_mean_probability(slope):
    """A shift that was divided by slopes near zero answered 80 to 20 with the rare class."""
    made = torch.Generator().manual_seed(4)
    scores = torch.randn(1000, generator=made)
    labels = (torch.rand(1000, generator=made) < torch.sigmoid(slope * scores - 1.4)).long()
    few = evidence_of(scores, labels, 16)
    table = calibrate(few, 2, "argmax", clip=9, networks=400).table
    probability = few.probabilities(9, table, 2, "argmax")[:, 1] / 65535
    assert abs(float(probability.mean() - labels.double().mean())) < 0.02


def of_inputs(inputs: torch.Tensor, *widths: int) -> Examples:
    """Examples of columns that have so many bits."""
    ends = np.cumsum(widths).tolist()
    spans = [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
    labels = inputs[:, 0].long()
    ones = torch.ones(len(labels), dtype=torch.float64)
    return Examples.distinct(inputs, labels, ones).with_columns(spans)


def test_no_row_of_a_complete_table_is_held_out_whole():
    cells = torch.cartesian_prod(*[torch.tensor([0, 1])] * 3).to(torch.int8)
    complete = of_inputs(cells, 1, 1, 1)
    assert complete.complete
    assert torch.equal(stratified_folds(complete, 4, 0), torch.full((4, 8), 0.25).double())
    part = of_inputs(cells[1:], 1, 1, 1)
    assert not part.complete
    share = stratified_folds(part, 4, 0)
    assert bool((share * (1 - share) == 0).all())


def test_one_column_of_names_is_no_complete_table():
    names = torch.eye(6, dtype=torch.int8)
    assert not of_inputs(names, 6).complete
    assert of_inputs(torch.tensor([[0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1]]), 2, 1).complete


@given(st.integers(1, 30), st.integers(0, 5))
def test_a_sample_of_examples_stands_for_all_rows_of_each_class(most, seed):
    made = torch.Generator().manual_seed(seed)
    inputs = torch.randint(0, 2, (40, 8), generator=made, dtype=torch.int8)
    labels = torch.randint(0, 3, (40,), generator=made)
    rows = torch.rand(40, generator=made, dtype=torch.float64) * 5
    whole = Examples.distinct(inputs, labels, rows)
    some = whole.subsampled(most, seed)
    assert len(some) <= max(most, 3)
    for number in labels.unique():
        totals = [float(one.rows[one.labels == number].sum()) for one in (whole, some)]
        assert totals[0] == pytest.approx(totals[1])
