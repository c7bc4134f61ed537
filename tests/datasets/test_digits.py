import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from vitrail.datasets import digits

PIXELS, TARGETS = (np.asarray(part) for part in load_digits(return_X_y=True))


def test_the_papers_setting_is_the_default():
    data = digits()
    assert data.inputs.shape == (250, 64)
    assert data.test_inputs.shape == (0, 64)
    assert data.shape == (1, 8, 8)
    assert data.name == "digits 3-vs-5"


def test_images_and_labels_are_scikit_learns():
    found = digits(100, pair=(8, 1), coding="binary")
    known: dict[tuple[int, ...], set[int]] = {}
    for row, target in zip((PIXELS > 8).astype(int).tolist(), TARGETS, strict=True):
        known.setdefault(tuple(row), set()).add(int(target))
    inputs = torch.cat([found.inputs, found.test_inputs])
    labels = torch.cat([found.labels, found.test_labels])
    for row, label in zip(inputs.tolist(), labels.tolist(), strict=True):
        assert (8, 1)[label] in known[tuple(row)]


def test_the_whole_pair_has_its_counts():
    counts = np.bincount(TARGETS)
    data = digits(pair=(3, 5), num_images=int(counts[3] + counts[5]))
    assert data.labels.bincount().tolist() == [counts[3], counts[5]]


def test_training_and_test_images_are_one_order_cut_in_two():
    few, many = digits(5, seed=9), digits(245, seed=9)
    assert torch.equal(few.inputs, many.inputs[:5])
    joined = torch.cat([many.inputs, many.test_inputs])
    assert torch.equal(torch.cat([few.inputs, few.test_inputs]), joined)
    assert not torch.equal(digits(245, seed=10).inputs, many.inputs)


def test_the_threshold_is_a_fraction_that_must_be_exceeded():
    counts = [digits(threshold=t, coding="binary").inputs.sum().item() for t in (0.0, 0.5, 0.75)]
    assert counts[0] > counts[1] > counts[2] > 0
    pixels = PIXELS[np.isin(TARGETS, (3, 5))]
    whole = digits(num_images=len(pixels), coding="binary")
    assert whole.inputs.sum().item() == (pixels > 8).sum()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pair": (3, 3)}, "two different classes out of"),
        ({"pair": (3, 10)}, r"got \(3, 10\)"),
        ({"num_images": 1000}, "num_images must be from 1 to 365, got 1000"),
        ({"num_examples": 251}, "num_examples must be from 1 to 250, got 251"),
        ({"threshold": 8}, "fraction of full intensity"),
    ],
)
def test_bad_arguments_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        digits(**options)
