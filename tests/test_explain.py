"""Reasons add up, are exact for linear scores, and name the columns of a planted rule."""

import json
from dataclasses import replace
from itertools import product
from math import factorial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from vitrail import BinaryNetClassifier
from vitrail.cli import main
from vitrail.model import Explanation, explain
from vitrail.model.explanation import is_linear, max_margin

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "noise": RNG.normal(size=300),
        "size": RNG.normal(size=300),
        "letter": RNG.choice(list("abc"), 300),
        "colour": RNG.choice(["red", "blue"], 300),
    }
)
PLANTED = (FRAME["size"] > 0) | (FRAME["colour"] == "red")
BITS = RNG.integers(0, 2, (300, 7))
SETTINGS: dict[str, Any] = {"networks": 64, "random_state": 0}


@pytest.fixture(scope="module")
def net() -> BinaryNetClassifier:
    return BinaryNetClassifier(hidden=(3,), **SETTINGS).fit(FRAME, PLANTED)


@pytest.fixture(scope="module")
def xor() -> BinaryNetClassifier:
    return BinaryNetClassifier(hidden=(5,), **SETTINGS).fit(BITS, BITS[:, 1] ^ BITS[:, 4])


def total(found: Explanation) -> np.ndarray:
    return found.base + found.reasons.sum(1)


@pytest.mark.parametrize("background", [None, FRAME], ids=["drawn", "given"])
def test_sampled_reasons_add_up_to_the_log_odds(net, background):
    found = net.explain(FRAME[:20], background=background)
    np.testing.assert_allclose(total(found), net.decision_function(FRAME[:20]), atol=1e-6)
    assert not found.exact
    assert (found.errors.max(0) > 0).any()


@pytest.mark.parametrize("networks", [1, 3])
def test_reasons_of_a_linear_model_are_exact_and_add_up(networks):
    model = BinaryNetClassifier(hidden=(), networks=8, random_state=0).fit(FRAME, PLANTED).model_
    networks, votes = model.networks[:networks], model.votes[:networks]
    clip = max_margin(networks, model.encoder, model.coding == "bipolar")
    assert not is_linear(replace(model, networks=networks, votes=votes, clip=clip - 2))
    model = replace(model, networks=networks, votes=votes, clip=clip)
    assert is_linear(model)
    found = explain(model, FRAME[:50], background=FRAME)
    np.testing.assert_allclose(total(found), model.decisions(FRAME[:50])[:, 1], atol=1e-6)
    assert found.exact
    assert not found.errors.any()
    assert {found.columns[i] for i in found.order[:2]} == {"size", "colour"}


def test_reasons_of_several_classes_explain_the_answer():
    kind = np.where(FRAME["colour"] == "red", "r", np.where(FRAME["size"] > 0, "a", "b"))
    net = BinaryNetClassifier(hidden=(3,), **SETTINGS).fit(FRAME, kind)
    found = net.explain(FRAME[:10])
    assert list(found.classes) == net.predict(FRAME[:10]).tolist()
    np.testing.assert_allclose(total(found), net.decision_function(FRAME[:10]).max(1), atol=1e-6)
    assert found.curves[0].log_odds.shape[1] == 3


def test_a_planted_rule_comes_first(net, xor):
    found = net.explain(FRAME[:60], background=FRAME)
    assert {found.columns[i] for i in found.order[:2]} == {"size", "colour"}
    assert {found.curves[0].column, found.curves[1].column} == {"size", "colour"}
    crossed = xor.explain(BITS[:60])
    assert {crossed.columns[i] for i in crossed.order[:2]} == {"x1", "x4"}
    assert set(crossed.interactions[0].columns) == {"x1", "x4"}


def test_sampled_reasons_agree_with_enumeration(xor):
    """Exact Shapley values against one background row, over all sets of columns."""
    rows, other = BITS[:3], BITS[10]
    sets = np.array(list(product([False, True], repeat=7)))
    mixed = np.where(sets[:, None], rows, other).reshape(-1, 7)
    values = xor.decision_function(mixed).reshape(len(sets), len(rows))
    size, place = sets.sum(1), 2 ** np.arange(7)[::-1]
    wanted = np.zeros((3, 7))
    for column in range(7):
        without = np.flatnonzero(~sets[:, column])
        share = np.array([factorial(n) * factorial(6 - n) / factorial(7) for n in size[without]])
        wanted[:, column] = share @ (values[without + place[column]] - values[without])
    found = xor.explain(rows, background=other[None])
    np.testing.assert_allclose(total(found), values[-1], atol=1e-6)
    assert (np.abs(found.reasons - wanted) <= 5 * found.errors + 0.02).all()


def test_a_seed_gives_the_same_reasons(net):
    first, again, other = (explain(net.model_, FRAME[:5], seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.reasons, again.reasons)
    assert (first.reasons != other.reasons).any()


def test_curves_rise_with_the_rule_and_show_the_spread(net):
    curves = {curve.column: curve for curve in net.explain(FRAME[:20]).curves}
    size = curves["size"].log_odds[:, 0]
    assert size[-1] > size[0] + 0.5
    assert (curves["size"].spread >= 0).all()
    assert curves["size"].spread.any()
    assert curves["colour"].values == ("blue", "red")
    assert curves["colour"].log_odds[1, 0] > curves["colour"].log_odds[0, 0]


def test_no_rows_are_refused(net):
    with pytest.raises(ValueError, match="rows to explain, got none"):
        explain(net.model_, FRAME[:0])


def test_the_command_prints_json_and_a_page(net, tmp_path, capsys):
    net.model_.save(tmp_path / "m.safetensors")
    FRAME[:30].to_csv(tmp_path / "rows.csv", index=False)
    call = ["explain", str(tmp_path / "m.safetensors"), str(tmp_path / "rows.csv")]
    with pytest.raises(SystemExit) as ended:
        main([*call, "--json"])
    assert not ended.value.code
    facts = json.loads(capsys.readouterr().out)
    sums = np.array(facts["base"]) + np.sum(facts["reasons"], 1)
    np.testing.assert_allclose(sums, facts["log_odds"], atol=1e-6)
    with pytest.raises(SystemExit) as ended:
        main([*call, "-o", str(tmp_path / "page.html")])
    assert not ended.value.code
    assert "largest reasons" in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Shape curves" in page
    assert "Interactions" in page
