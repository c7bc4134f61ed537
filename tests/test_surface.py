"""What people call: decisions, log-probabilities, importances, export, report, public names."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel

import vitrail
from vitrail import BinaryNetClassifier
from vitrail.export import export_model
from vitrail.extras import MissingPackageError
from vitrail.model import model_from_bytes

RNG = np.random.default_rng(3)
BITS = RNG.integers(0, 2, (240, 8))
NUMBERS = RNG.normal(size=(240, 5))
NOISE = RNG.normal(size=240)
FRAME = pd.DataFrame(
    {
        "colour": RNG.choice(["red", "green", "blue"], 240),
        "size": NUMBERS[:, 0],
        "noise": NUMBERS[:, 1],
        "same": 1,
        "letter": RNG.choice(list("abcdefgh"), 240),
    }
)
KIND = np.where(FRAME["colour"] == "red", "r", np.where(FRAME["size"] > 0, "a", "b"))
SMALL = {"hidden": (3,), "networks": 64, "random_state": 0}


def net(X, y, **settings) -> BinaryNetClassifier:
    return BinaryNetClassifier(**{**SMALL, **settings}).fit(X, y)


@pytest.fixture(scope="module")
def two() -> BinaryNetClassifier:
    return net(NUMBERS, NUMBERS[:, 0] + 0.5 * NOISE > 0.3, networks=512)


@pytest.fixture(scope="module")
def three() -> BinaryNetClassifier:
    return net(FRAME, KIND)


NEW = RNG.normal(size=(2000, 5))
NEW_FRAME = FRAME.assign(size=RNG.permutation(FRAME["size"]), noise=RNG.normal(size=240))


def test_decisions_of_two_classes_are_positive_for_the_second(two):
    decisions = two.decision_function(NEW)
    assert decisions.shape == (len(NEW),)
    assert 0 < (decisions > 0).mean() < 1
    np.testing.assert_array_equal(two.classes_[(decisions > 0).astype(int)], two.predict(NEW))


def test_decisions_are_log_odds_finer_than_probabilities(two):
    decisions, probability = two.decision_function(NEW), two.predict_proba(NEW)[:, 1]
    order = np.argsort(decisions)
    assert (np.diff(probability[order]) >= 0).all()
    assert len(np.unique(decisions)) > len(np.unique(probability))
    np.testing.assert_allclose(1 / (1 + np.exp(-decisions)), probability, atol=2 / 65536)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"multiclass": "ovo"},
        {"multiclass": "argmax", "solver": "sbp", "predictor": "posterior"},
    ],
    ids=["one-vs-rest", "pairs", "argmax"],
)
def test_decisions_of_several_classes_follow_the_probabilities(settings):
    found = net(FRAME, KIND, **settings)
    decisions, probability = found.decision_function(NEW_FRAME), found.predict_proba(NEW_FRAME)
    assert decisions.shape == probability.shape == (len(NEW_FRAME), 3)
    np.testing.assert_array_equal(found.classes_[decisions.argmax(1)], found.predict(NEW_FRAME))
    for column, own in zip(decisions.T, probability.T, strict=True):
        assert (np.diff(own[np.argsort(column)]) >= 0).all()


def test_equal_scores_go_to_the_first_class_as_answers_do():
    """Coarse votes of few networks tie often; the answer has the largest decision even then."""
    random = np.random.default_rng(4)
    rows = random.integers(0, 2, (90, 3))
    found = net(rows, random.integers(0, 4, 90), networks=3)
    probabilities = found.model_.answers(rows).probabilities.numpy()
    assert (np.sort(probabilities, 1)[:, -1] - np.sort(probabilities, 1)[:, -2] <= 3).any()
    decisions = found.decision_function(rows)
    np.testing.assert_array_equal(found.classes_[decisions.argmax(1)], found.predict(rows))


def test_log_probabilities_are_those_of_the_probabilities(three):
    with np.errstate(divide="ignore"):
        wanted = np.log(three.predict_proba(NEW_FRAME))
    np.testing.assert_array_equal(three.predict_log_proba(NEW_FRAME), wanted)


def test_the_column_that_decides_has_nearly_all_importance():
    importance = net(BITS, BITS[:, 3], hidden="auto").feature_importances_
    assert importance.shape == (8,)
    assert (importance >= 0).all()
    assert importance.sum() == pytest.approx(1)
    assert importance[3] > 0.9


def test_columns_that_decide_together_are_both_important():
    importance = net(BITS, BITS[:, 1] ^ BITS[:, 5], hidden="auto").feature_importances_
    assert set(np.argsort(-importance)[:2]) == {1, 5}
    assert importance[[1, 5]].sum() > 0.5


def test_importances_of_words_and_numbers_leave_noise_out(three):
    importance = dict(zip(FRAME.columns, three.feature_importances_, strict=True))
    assert importance["same"] == 0
    assert min(importance["colour"], importance["size"]) > 0.2
    assert max(importance["noise"], importance["letter"]) < 0.1


@pytest.mark.filterwarnings("ignore:held-out rows show no relation")
def test_no_column_of_noise_has_most_of_the_importance():
    importance = net(BITS, np.random.default_rng(5).integers(0, 2, 240)).feature_importances_
    assert importance.sum() == pytest.approx(1)
    assert importance.max() < 0.5


def test_a_constant_bit_has_no_importance():
    rows = np.hstack([BITS[:, :4], np.ones((240, 1), int)])
    importance = net(rows, BITS[:, 0], hidden="auto").feature_importances_
    assert importance[4] == 0
    assert importance[0] > 0.9


def test_importances_are_those_of_the_saved_model(three):
    saved = model_from_bytes(three.model_.to_bytes())
    np.testing.assert_array_equal(saved.importances(), three.feature_importances_)


def test_scikit_learn_selects_columns_by_importance(two):
    chosen = SelectFromModel(two, prefit=True).transform(NUMBERS)
    np.testing.assert_array_equal(chosen, NUMBERS[:, :1])


@pytest.mark.parametrize(("to", "file"), [("c", "it.h"), ("js", "it.mjs"), ("numpy", "it.npz")])
def test_export_writes_what_the_command_writes(three, tmp_path, to, file):
    (written,) = three.export(tmp_path / "a", to, name="it", rows=FRAME)
    assert written == tmp_path / "a" / file
    (wanted,) = export_model(three.model_, to, tmp_path / "b", name="it", rows=FRAME)
    assert written.read_bytes() == wanted.read_bytes()


def test_export_says_what_to_install(three, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPackageError, match=r"needs onnx.*pip install 'vitrail\[export\]'"):
        three.export(tmp_path, to="onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("X", "y", "column"),
    [(FRAME, KIND, "colour"), (NUMBERS, NUMBERS[:, 0] > 0.3, "x0")],
    ids=["frame", "array"],
)
def test_a_report_is_about_the_rows_given(X, y, column, tmp_path):
    found = net(X, y, networks=4)
    path = found.report(tmp_path / "page.html", X[:100], y[:100])
    page = path.read_text(encoding="utf-8")
    assert f"{found.score(X[:100], y[:100]):.1%}" in page
    assert "Measured on 100 rows given." in page
    assert column in page


def test_results_need_a_fit(tmp_path):
    fresh = BinaryNetClassifier()
    for call in (
        lambda: fresh.decision_function(BITS),
        lambda: fresh.predict_log_proba(BITS),
        lambda: fresh.feature_importances_,
        lambda: fresh.export(tmp_path),
        lambda: fresh.report(tmp_path / "page.html", BITS, BITS[:, 0]),
    ):
        with pytest.raises(NotFittedError):
            call()
    assert not hasattr(fresh, "feature_importances_")


def test_public_names_load_on_first_use():
    heavy = {"numpy", "torch", "sklearn", "pyarrow", "vitrail.learning", "vitrail.tables"}
    script = f"import sys, vitrail; print(*({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")
    for name in vitrail.__all__:
        assert getattr(vitrail, name) is not None
    assert set(vitrail.__all__) <= set(dir(vitrail))
