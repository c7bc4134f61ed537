"""Columns with a direction move the probability of the second class one way only, everywhere."""

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from export_runs import COMPILERS, expected_lines, run_all
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import need

from vitrail import BinaryNetClassifier, compress
from vitrail.cli import main
from vitrail.learning import compression
from vitrail.learning.compression import Candidate, Compression
from vitrail.model import Model, model_from_bytes
from vitrail.nn import mlp
from vitrail.solvers import belief_propagation
from vitrail.updates import flip

C_ROWS = 10_000
ORDER = {"income": 1, "age": -1, "debt": 0}


def planted(count: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Two classes by income up, age down, debt around a middle, and noise."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": rng.lognormal(3, 1, count).round(2),
            "age": rng.integers(18, 80, count),
            "debt": rng.normal(size=count).round(3),
            "city": rng.choice(["Bonn", "Lyon", "Turin"], count),
        }
    )
    score = np.log(table["income"]) - 3 - (table["age"] - 45) / 20 + (table["city"] == "Lyon")
    score = score + 1.5 * (table["debt"].abs() < 0.7) - 1
    return table, np.where(2 * score + rng.logistic(size=count) > 0, "yes", "no")


@cache
def fitted(**settings: object) -> BinaryNetClassifier:
    net = BinaryNetClassifier(random_state=0, monotonic_cst=ORDER, effort="quick", networks=32)
    return net.set_params(**settings).fit(*planted(300, 0))


def swept(rows: pd.DataFrame, column: str, values: np.ndarray) -> pd.DataFrame:
    """Every row once with each value of a column: values fastest."""
    table = rows.loc[rows.index.repeat(len(values))].reset_index(drop=True)
    table[column] = np.tile(values, len(rows))
    return table


def values_of(column: str) -> np.ndarray:
    whole = column == "age"
    values = {"income": np.geomspace(0.01, 5000, 25), "age": np.arange(0, 125, 5)}[column]
    return values if whole else values.round(4)


def falls(model: Model, rows: pd.DataFrame, order: dict[str, int]) -> int:
    """How often a probability or log-odds moves against a direction."""
    found = 0
    for column, direction in order.items():
        if direction:
            values = values_of(column)
            table = swept(rows, column, values)
            shares = model.answers(table).probabilities[:, 1].numpy()
            for one in (shares, model.decisions(table)[:, 1]):
                found += int((direction * np.diff(one.reshape(-1, len(values))) < 0).sum())
    return found


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    directions=st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3),
    hidden=st.sampled_from(["auto", (), (2,)]),
    predictor=st.sampled_from(["auto", "best"]),
    holes=st.booleans(),
)
def test_directions_hold_whatever_the_rows_say(seed, directions, hidden, predictor, holes):
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.normal(size=60), rng.integers(0, 4, 60), rng.integers(0, 2, 60)], 1)
    if holes:
        rows[rng.random(60) < 0.2, 0] = np.nan
    net = BinaryNetClassifier(
        hidden, "chains", predictor, random_state=0, monotonic_cst=directions, effort="quick"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.fit(rows, rng.integers(0, 2, 60))
    others = np.stack([rng.normal(size=40), rng.integers(-1, 6, 40), rng.integers(0, 3, 40)], 1)
    others[:10, 1] = np.nan
    for column, direction in enumerate(directions):
        table = np.repeat(others[:, None], 20, 1)
        table[:, :, column] = np.linspace(-4, 6, 20)
        shares = net.predict_proba(table.reshape(-1, 3))[:, 1].reshape(40, 20)
        assert not direction or (direction * np.diff(shares) >= 0).all()


def test_every_network_of_a_fit_keeps_them_also_on_the_log_odds():
    rows, _ = planted(200, 1)
    model = fitted().model_
    assert falls(model, rows, ORDER) == 0
    free = BinaryNetClassifier(random_state=0, effort="quick").fit(*planted(300, 0)).model_
    assert falls(free, rows, ORDER) > 0


def test_c_is_monotone_on_ten_thousand_rows(tmp_path):
    need("gcc")
    rows, _ = planted(C_ROWS // 50, 2)
    model = fitted(networks=16).model_
    tables = [swept(rows, column, values_of(column)) for column in ("income", "age")]
    table = pd.concat(tables, ignore_index=True)
    assert len(table) == C_ROWS
    columns = {name: table[name].tolist() for name in table.columns}
    (lines,) = run_all([(model, columns)], tmp_path, COMPILERS["gcc"])
    assert lines == expected_lines(model, columns)
    shares = np.array([int(line.split(",")[-1]) for line in lines]).reshape(2, -1, 25)
    assert (np.diff(shares[0]) >= 0).all()
    assert (np.diff(shares[1]) <= 0).all()
    assert len(np.unique(shares)) > 20


def test_every_student_keeps_them(monkeypatch):
    monkeypatch.setattr(compression, "CROSSED_ROWS", 1000)
    table, _ = planted(300, 0)
    rows, model = planted(60, 3)[0], fitted().model_
    students = Compression(model, model.inputs(table))
    for way, compressor in students.compressors.items():
        sizes = compressor.sizes(3000)
        for size in {0: sizes[0], 1: sizes[len(sizes) // 2], 2: sizes[-1]}.values():
            assert falls(students.build(Candidate(way, size)), rows, ORDER) == 0, (way, size)
    largest = students.compressors["linear model"].sizes(3000)[-1]
    small = students.build(Candidate("linear model", largest))
    again = compress(small, table)
    assert falls(again, rows, ORDER) == 0
    assert again.directions.get("age", -1) == -1


def test_a_planted_order_costs_no_accuracy():
    """Against the same fit without it, on new rows, by three standard errors of the difference."""
    test, labels = planted(3000, 9)
    right = []
    for order in (None, ORDER):
        net = BinaryNetClassifier(random_state=0, monotonic_cst=order).fit(*planted(300, 8))
        right.append((net.predict(test) == labels).astype(float))
    change = right[1] - right[0]
    assert change.mean() > -3 * change.std() / len(change) ** 0.5


def test_a_column_that_says_the_opposite_is_ignored():
    rows = np.random.default_rng(0).normal(size=(300, 1))
    net = BinaryNetClassifier(random_state=0, monotonic_cst=[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.fit(rows, rows[:, 0] > 0)
    shares = net.predict_proba(np.linspace(-3, 3, 50)[:, None])[:, 1]
    assert (np.diff(shares) <= 0).all()
    assert np.ptp(shares) < 0.3


def test_a_missing_value_is_outside_the_order():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 1))
    labels = rows[:, 0] > 0
    rows[rng.random(400) < 0.3] = np.nan
    labels = labels | np.isnan(rows[:, 0])
    net = BinaryNetClassifier(random_state=0, monotonic_cst=[1]).fit(rows, labels)
    low, missing, high = net.predict_proba([[-2.0], [np.nan], [2.0]])[:, 1]
    assert low < 0.3
    assert min(missing, high) > 0.7


def test_names_and_places_are_the_same_and_zeros_are_none():
    table, labels = planted(80, 4)
    usual = {"random_state": 0, "effort": "quick", "networks": 8}
    named, placed, zeros, none = (
        BinaryNetClassifier(monotonic_cst=order, **usual).fit(table, labels).model_
        for order in (ORDER, [1, -1, 0, 0], [0, 0, 0, 0], None)
    )
    assert torch.equal(named.networks, placed.networks)
    assert torch.equal(zeros.networks, none.networks)
    assert named.record["settings"]["monotonic_cst"] == {"income": 1, "age": -1}
    assert "monotonic_cst" not in zeros.record["settings"]


def test_files_and_later_rows_keep_them():
    rows, net = planted(100, 5)[0], BinaryNetClassifier(random_state=0, monotonic_cst=ORDER)
    net.set_params(effort="quick", networks=16, warm_start=True).fit(*planted(100, 6))
    for seed in (7, 8):
        net.partial_fit(*planted(60, seed))
        assert falls(net.model_, rows, ORDER) == 0
    net.fit(*planted(100, 6))
    again = model_from_bytes(net.model_.to_bytes(), "again")
    assert falls(again, rows, ORDER) == 0
    assert again.encoder == net.model_.encoder
    with pytest.raises(ValueError, match="monotonic_cst was changed"):
        net.set_params(monotonic_cst={"age": -1}).fit(*planted(100, 6))


REFUSED = {
    "names 'wage', which is none of the columns": {"monotonic_cst": {"wage": 1}},
    "one number for each of 4 columns": {"monotonic_cst": [1, 0]},
    "of 'age' is −1, 0 or 1, got 2": {"monotonic_cst": {"age": 2}},
    "of 'age' is −1, 0 or 1, got 'up'": {"monotonic_cst": {"age": "up"}},
    "'city' holds words, which have no order; leave it out": {"monotonic_cst": {"city": 1}},
    "by chains alone, not by 'ste'; leave it out, or take": {"solver": "ste"},
    "not by 'messages', which solver='auto' takes": {"predictor": "best"},
    "not by 'select', which solver='auto' takes": {"hidden": (3, 3)},
    "leave it or module out": {"module": mlp(9)},
    "by chains alone": {"solver": belief_propagation(flip(3))},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_keep_them_is_refused(message):
    settings = {"monotonic_cst": {"age": 1}, **REFUSED[message]}
    with pytest.raises(ValueError, match=re.escape(message)):
        BinaryNetClassifier(**settings).fit(*planted(40, 0))


def test_more_classes_are_refused():
    table, _ = planted(30, 0)
    with pytest.raises(ValueError, match="one of two classes, and there are 3; leave it out"):
        BinaryNetClassifier(monotonic_cst={"age": 1}).fit(table, np.arange(30) % 3)
    images = np.random.default_rng(0).integers(0, 2, (10, 1, 4, 4))
    with pytest.raises(ValueError, match="for columns of tables"):
        BinaryNetClassifier(monotonic_cst=[1] * 16).fit(images, np.arange(10) % 2)


def command(*arguments: object) -> int:
    """The exit code of a command in this process."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_the_commands_take_and_tell_directions(tmp_path, capsys):
    table, labels = planted(80, 11)
    data, path = tmp_path / "credit.csv", tmp_path / "m.safetensors"
    table.assign(outcome=labels).to_csv(data, index=False)
    how = ("--target", "outcome", "--effort", "quick", "-o", path)
    assert command("fit", data, "--monotonic", "income=1", "--monotonic", "age=-1", *how) == 0
    assert command("info", path) == 0
    assert command("explain", path, data, "-o", tmp_path / "page.html", "--quiet") == 0
    told = capsys.readouterr().out
    assert told.count("monotone, rising") == 2  # before training, and by info
    assert "monotone columns: income rising, age falling" in told
    assert "age: log-odds of yes; monotone, falling" in (tmp_path / "page.html").read_text()
    for wrong in ("income", "income=2", "=1", "wage=1", "city=1"):
        assert command("fit", data, "--monotonic", wrong, *how) == 2, wrong
    assert command("fit", data, "--memory", "1GB", "--monotonic", "age=1", *how[:2]) == 2
    assert "does not take --monotonic" in capsys.readouterr().err
