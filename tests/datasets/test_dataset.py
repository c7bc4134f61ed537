import numpy as np
import pytest
import torch

from vitrail.datasets import digits, glass, mnist, stained_glass
from vitrail.datasets.dataset import class_indices

MAKERS = {
    "glass": lambda **options: glass(20, 10, num_test=5, **options),
    "stained_glass": lambda **options: stained_glass(20, 10, num_test=5, **options),
    "digits": lambda **options: digits(20, **options),
    "mnist": lambda **options: mnist(pair=(4, 9), **options),
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_every_maker_returns_flat_bits_and_numbered_labels(maker):
    data = maker()
    size = int(np.prod(data.shape))
    for inputs, labels in [(data.inputs, data.labels), (data.test_inputs, data.test_labels)]:
        assert inputs.dtype == torch.int8
        assert inputs.shape == (len(labels), size)
        assert inputs.unique().tolist() == [-1, 1]
        assert labels.dtype == torch.int64
        assert set(labels.tolist()) <= {0, 1}
    assert len(data.classes) == 2


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_the_coding_changes_how_bits_are_written_and_nothing_else(maker):
    bipolar, binary = maker(), maker(coding="binary")
    assert binary.inputs.dtype == torch.int8
    assert torch.equal(bipolar.inputs, 2 * binary.inputs - 1)
    assert torch.equal(bipolar.test_inputs, 2 * binary.test_inputs - 1)
    assert torch.equal(bipolar.labels, binary.labels)
    assert torch.equal(bipolar.test_labels, binary.test_labels)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_an_unknown_coding_is_refused_with_the_choices(maker):
    with pytest.raises(ValueError, match="'bipolar' or 'binary', got 'onehot'"):
        maker(coding="onehot")


def test_shaped_gives_images_that_flatten_back():
    data = mnist(pair=(0, 1))
    images = data.shaped()
    assert images.inputs.shape == (len(data.labels), 1, 14, 14)
    assert images.test_inputs.shape == (len(data.test_labels), 1, 14, 14)
    assert torch.equal(images.inputs.flatten(1), data.inputs)


def test_take_draws_that_many_examples_and_more_only_adds():
    data = mnist(pair=(3, 5))
    few, more = data.take(10, seed=4), data.take(100, seed=4)
    assert few.inputs.shape == (10, 196)
    assert torch.equal(few.inputs, more.inputs[:10])
    assert torch.equal(few.labels, more.labels[:10])
    assert torch.equal(more.test_inputs, data.test_inputs)
    assert not torch.equal(data.take(100, seed=5).inputs, more.inputs)


def test_take_of_everything_is_the_same_examples_in_another_order():
    data = glass(30, 8)
    taken = data.take(30)
    rows = torch.cat([data.inputs, data.labels[:, None]], dim=1).tolist()
    drawn = torch.cat([taken.inputs, taken.labels[:, None]], dim=1).tolist()
    assert drawn != rows
    assert sorted(rows) == sorted(drawn)


@pytest.mark.parametrize("count", [0, 31])
def test_take_refuses_a_count_there_is_not(count):
    with pytest.raises(ValueError, match=f"count must be from 1 to 30, got {count}"):
        glass(30, 8).take(count)


def test_labels_are_their_place_in_the_classes_whatever_the_order():
    assert class_indices(np.array([7, 2, 5, 7]), (5, 7, 2)).tolist() == [1, 2, 0, 1]
