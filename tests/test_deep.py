"""Nets of depth under the classifier: streaming or straight-through, saved and loaded alike."""

import numpy as np
import pytest
import torch

from vitrail import BinaryNetClassifier
from vitrail.datasets import mnist
from vitrail.learning.select import suits
from vitrail.learning.table import Problem
from vitrail.model import load_model
from vitrail.nn import conv, mlp, program_of

DIGITS = 3


@pytest.fixture(scope="module")
def digits():
    """Three digits as rows of 196 bits: 300 to learn from, 200 to be asked about."""
    data = mnist(coding="binary")
    few = (data.labels < DIGITS).nonzero()[:, 0][:500]
    images, labels = data.inputs[few].numpy(), data.labels[few].numpy()
    return (images[:300], labels[:300]), (images[300:], labels[300:])


def as_images(rows):
    return 255 * rows.reshape(-1, 1, 14, 14).astype(np.uint8)


def test_two_hidden_layers_are_trained_by_the_better_of_two(digits, tmp_path):
    (rows, labels), (new, answers) = digits
    net = BinaryNetClassifier(hidden=(31, 31), epochs=10, networks=5, random_state=0)
    net.fit(rows, labels)
    assert net.score(new, answers) > 0.85
    tried = net.model_.record["held_out_accuracy"]
    assert set(tried) == {"streaming", "ste"}
    assert net.solver_ == "select"
    assert net.plan_["selected"] == max(tried, key=tried.get)
    assert net.model_.scheme == "argmax"
    net.model_.save(tmp_path / "deep.safetensors")
    again = load_model(tmp_path / "deep.safetensors")
    assert np.array_equal(again.probabilities(new), net.predict_proba(new))


def test_streaming_by_name_saves_networks_of_its_posterior(digits):
    (rows, labels), (new, answers) = digits
    net = BinaryNetClassifier(
        hidden=(31, 31), solver="streaming", epochs=10, networks=7, random_state=0
    )
    net.fit(rows, labels)
    assert net.model_.networks.shape[0] == 7
    assert net.model_.record["settings"]["predictor"] == "posterior"
    assert net.found_by_ == ("streaming",)
    assert net.score(new, answers) > 0.9


def test_more_rows_go_on_from_what_was_learned(digits):
    (rows, labels), (new, answers) = digits
    net = BinaryNetClassifier(
        hidden=(31, 31), solver="streaming", epochs=10, networks=7, random_state=0
    )
    net.partial_fit(rows[:280], labels[:280])
    before = net.marginals_
    net.set_params(epochs=1).partial_fit(rows[280:], labels[280:])
    assert net.found_by_ == ("streaming",)
    sure = np.abs(before - 0.5) > 0.49
    assert sure.mean() > 0.1
    assert ((net.marginals_ > 0.5) == (before > 0.5))[sure].mean() > 0.99
    assert net.score(new, answers) > 0.9


def test_images_are_read_by_convolutions(digits):
    (rows, labels), (new, answers) = digits
    module = conv((1, 14, 14), channels=(8, 8), num_outputs=DIGITS)
    net = BinaryNetClassifier(
        module=module, solver="streaming", epochs=10, networks=5, random_state=0
    )
    net.fit(as_images(rows), labels)
    assert net.model_.program.input_shape == (1, 14, 14)
    assert net.score(as_images(new), answers) > 0.85
    flat = as_images(new).reshape(len(new), -1)
    assert np.array_equal(net.predict(flat), net.predict(as_images(new)))
    with pytest.raises(ValueError, match=r"expected images of shape \(1, 14, 14\)"):
        net.predict(rows.reshape(-1, 1, 7, 28))


@pytest.mark.parametrize(
    ("module", "shape", "deep"),
    [
        (mlp(9, (3,)), (9,), False),
        (mlp(9, (3, 3)), (9,), True),
        (conv((1, 8, 8), (2, 2)), (1, 8, 8), True),
        (
            torch.nn.Sequential(torch.nn.Linear(9, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)),
            (9,),
            False,
        ),
    ],
    ids=["one hidden layer", "two hidden layers", "conv", "own"],
)
def test_which_nets_suit(module, shape, deep):
    assert suits(Problem(program_of(module, shape), 100, 100)) == deep


def test_rows_for_which_messages_have_no_room_are_streamed():
    linear = program_of(mlp(196), (196,))
    assert not suits(Problem(linear, 1000, 1000))
    assert suits(Problem(linear, 10**12, 10**12))
