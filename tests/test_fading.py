"""`memory`: after so many rows earlier evidence weighs 1/e, for every learner that can go on."""

import math

import numpy as np
import pytest
import torch

from vitrail import BinaryNetClassifier, fit_stream
from vitrail.learning import learn, streams
from vitrail.learning.learn import weight_after
from vitrail.model.voting import ONE

RNG = np.random.default_rng(2)
ROWS = RNG.integers(0, 2, (120, 5))
LABELS = (ROWS[:, :3].sum(1) > 1).astype(int)
LEARNERS = [
    {"solver": "chains", "hidden": (2,), "effort": "quick", "networks": 16},
    {"solver": "streaming", "hidden": (2,), "epochs": 20},
]


def test_evidence_weighs_one_in_e_after_the_memory():
    """Counts of rows that arrive in parts, each with the weight of its age."""
    assert weight_after(50, 50.0) == pytest.approx(1 / math.e)
    assert weight_after(50, None) == 1
    counted = 0.0
    for rows in (10, 15, 25):
        counted = counted * weight_after(rows, 20.0) + rows
    assert counted == pytest.approx(10 * math.exp(-2) + 15 * math.exp(-1.25) + 25)


@pytest.mark.parametrize("settings", LEARNERS, ids=lambda one: one["solver"])
def test_rows_that_went_before_weigh_less_by_their_age(settings):
    net = BinaryNetClassifier(memory=30, random_state=0, **settings)
    first = 0
    for size in (40, 20, 60):
        net.partial_fit(ROWS[first : first + size], LABELS[first : first + size], classes=[0, 1])
        first += size
    expected = 40 * math.exp(-80 / 30) + 20 * math.exp(-60 / 30) + 60
    assert float(net._fitted.remembered.rows.sum()) == pytest.approx(expected)


@pytest.mark.parametrize("settings", LEARNERS, ids=lambda one: one["solver"])
def test_a_rule_that_has_changed_is_learned(settings):
    found = {}
    for memory in (None, 20):
        net = BinaryNetClassifier(memory=memory, random_state=0, **settings)
        net.fit(np.tile(ROWS, (2, 1)), np.tile(LABELS, 2)).partial_fit(ROWS, 1 - LABELS)
        found[memory] = net.score(ROWS, 1 - LABELS)
    assert found[None] < 0.5
    assert found[20] > 0.75


@pytest.mark.parametrize("turned", [False, True])
def test_auto_takes_the_memory_that_predicts_rows_before_they_are_learned(turned, monkeypatch):
    """Of a rule that changes the short one; its fit is the one with that memory from the start."""
    monkeypatch.setattr(learn, "MEMORIES", (None, 10.0))
    nets = [
        BinaryNetClassifier(memory=m, random_state=0, **LEARNERS[0]) for m in ("auto", None, 10)
    ]
    for net in nets:
        for first in range(0, 120, 24):
            rows = slice(first, first + 24)
            net.partial_fit(ROWS[rows], LABELS[rows] ^ (turned and first >= 48), classes=[0, 1])
    chosen = 10 if turned else None
    assert nets[0].model_.record["memory"] == chosen
    same = nets[1 + turned]
    assert np.array_equal(nets[0].predict_proba(ROWS), same.predict_proba(ROWS))


def test_learners_that_cannot_go_on_refuse_a_memory():
    for memory in (30, "auto"):
        with pytest.raises(ValueError, match=r"^memory is for .* not for sbp;"):
            BinaryNetClassifier(solver="sbp", memory=memory, random_state=0).fit(ROWS, LABELS)
    for wrong in (0, math.inf, math.nan, "long", True):
        with pytest.raises(ValueError, match="memory is a number of rows from 1, 'auto' or None"):
            BinaryNetClassifier(memory=wrong).fit(ROWS, LABELS)  # pyright: ignore[reportArgumentType]


def test_a_stream_records_its_memory():
    signs = 2 * RNG.integers(0, 2, (600, 15)) - 1
    labels = (signs[:, :9].sum(1) > 0).astype(int)
    found = [fit_stream(lambda: [(signs, labels)], memory=m, networks=9) for m in (None, 300)]
    assert [model.record["settings"]["memory"] for model in found] == [None, 300]
    assert not torch.equal(found[0].marginals, found[1].marginals)
    with pytest.raises(
        ValueError, match="memory is a number of rows from 1, 'auto' or None, got 0"
    ):
        fit_stream(lambda: [(signs, labels)], memory=0)


@pytest.mark.filterwarnings("ignore:held-out rows show no relation")  # half follow the old rule
def test_a_stream_settles_its_memory_by_predicting_batches(monkeypatch):
    monkeypatch.setattr(streams, "MEMORIES", (None, 1000.0))
    signs = 2 * RNG.integers(0, 2, (12_000, 15)) - 1
    above = signs[:, :9].sum(1) > 0
    found = []
    for labels in (above, above ^ (np.arange(12_000) >= 6000)):
        rows = (signs, labels.astype(int))
        model = fit_stream(lambda rows=rows: [rows], memory="auto", networks=9)
        found.append(model.record["settings"]["memory"])
        weights = model.marginals[0, :9] / ONE
        assert (weights < 0.5 if len(found) > 1 else weights > 0.5).all()
    assert found == [None, 1000.0]
