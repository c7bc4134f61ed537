"""Nets of depth under the classifier: streaming or straight-through, saved and loaded alike."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from vitrail import BinaryNetClassifier
from vitrail.datasets import mnist
from vitrail.learning import table
from vitrail.learning.select import needs_select
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


def test_one_network_is_finished_by_gradients_where_held_out_rows_say_so(digits):
    (rows, labels), (new, answers) = digits
    one = {"hidden": (31, 31), "predictor": "best", "epochs": 10, "random_state": 0}
    decoded, finished = (
        BinaryNetClassifier(solver="streaming", polish=polish, **one).fit(rows, labels)
        for polish in (0, 2)
    )
    assert decoded.plan_["stages"] == ["streaming"]
    assert finished.plan_["stages"] == ["streaming", "polish"]
    assert np.array_equal(finished.marginals_, decoded.marginals_)  # gradients leave beliefs alone
    for solver, named in (("streaming", {"streaming"}), ("auto", {"streaming", "ste"})):
        chosen = BinaryNetClassifier(solver=solver, **one).fit(rows, labels)
        tried = chosen.model_.record["held_out_accuracy"]
        assert set(tried) == {"polished"} | named
        best = max(tried, key=tried.get)
        stages = {"polished": ["streaming", "polish"], "streaming": ["streaming"], "ste": ["ste"]}
        assert chosen.plan_["stages"] == stages[best]
        assert chosen.plan_.get("selected", "streaming") == stages[best][0]
        assert chosen.score(new, answers) > 0.85


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


def test_rows_in_parts_do_not_lower_the_accuracy():
    """Five parts of 400 digits: each is as good as the one before, and the last better."""
    data = mnist(coding="binary").take(3000, seed=0)
    rows, labels = data.inputs.numpy(), data.labels.numpy()
    net = BinaryNetClassifier(
        hidden=(31, 31), solver="streaming", epochs=10, networks=8, random_state=0
    )
    scores = []
    for first in range(0, 2000, 400):
        part = slice(first, first + 400)
        net.partial_fit(rows[part], labels[part], classes=np.arange(10))
        scores.append(net.score(rows[2000:], labels[2000:]))
    # 0.03 is three standard errors of a difference between nets on the same 1,000 rows
    assert min(np.diff(scores)) > -0.03
    assert scores[-1] > scores[0] + 0.03


def test_divergence_is_reported_and_kept_in_the_record(digits, monkeypatch):
    (rows, labels), (new, answers) = digits
    monkeypatch.setattr(table, "falling", lambda first, steps: sudden(first, steps // 2))
    net = BinaryNetClassifier(
        hidden=(31, 31), solver="streaming", epochs=60, networks=7, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="training diverged .* last good beliefs"):
        net.fit(rows, labels)
    assert net.model_.record["undone"] >= 1
    assert net.score(new, answers) > 0.9


def sudden(rate, at):
    """A rate that is a million times too large for two steps."""
    return lambda step: 1e6 * rate if at <= step < at + 2 else rate


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
    assert needs_select(Problem(program_of(module, shape), 100, 100)) == deep


def test_rows_for_which_messages_have_no_room_are_streamed():
    linear = program_of(mlp(196), (196,))
    assert not needs_select(Problem(linear, 1000, 1000))
    assert needs_select(Problem(linear, 10**12, 10**12))
