"""Arguments that make no sense are refused in a sentence, and never read as something else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from vitrail import (
    belief_propagation,
    blackbox,
    compress,
    factor_graph,
    graph,
    join,
    network,
    perceptron,
    run,
)
from vitrail.cli import main
from vitrail.datasets import glass
from vitrail.estimator import BinaryNetClassifier
from vitrail.factors import table
from vitrail.graph import indexed
from vitrail.solvers.s4p import s4p
from vitrail.tables.columns import ColumnAccount, column_lines
from vitrail.updates import counting, flip, pinned

NAN, INF = float("nan"), float("inf")
DATA = glass(5, 11, seed=0)
GRAPH = factor_graph(perceptron(DATA.inputs, DATA.labels))
SMALL = factor_graph(perceptron(DATA.inputs[:, :3], DATA.labels))
ROWS = np.arange(40).reshape(20, 2) % 7
LABELS = np.arange(20) % 2


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_steps", 1.5),
        ("max_steps", "3"),
        ("max_steps", -1),
        ("score_every", 1.5),
        ("score_every", 0),
        ("checkpoint_every", 0),
        ("seed", 1.5),
        ("seed", -1),
        ("seed", 2**70),
        ("max_evaluations", -1),
        ("max_seconds", NAN),
        ("tolerance", NAN),
        ("tolerance", -1.0),
    ],
)
def test_a_run_takes_numbers_that_make_sense(setting, value):
    with pytest.raises((ValueError, TypeError), match=f"{setting} must be"):
        run(belief_propagation(flip(5)), GRAPH, **{"max_steps": 2, setting: value})


SOLVER = belief_propagation(flip(2))
WRONG: dict[str, Callable[[], Any]] = {
    "what belief_propagation": lambda: run(any_("bp"), GRAPH),
    "what factor_graph": lambda: run(SOLVER, any_(None)),
    "got FactorGraph": lambda: run(any_(GRAPH), any_(SOLVER)),
    "solution of 3 variables": lambda: run(SOLVER, GRAPH, after=run(SOLVER, SMALL, max_steps=1)),
    "what perceptron": lambda: factor_graph(any_("x")),
    "what factor_graph.* makes, got str": lambda: join(any_("x")),
    "a torch module, not a class": lambda: network(any_("x"), DATA.inputs, DATA.labels),
    "what `load_model`": lambda: compress(any_(BinaryNetClassifier()), ROWS),
    "beta must be positive": lambda: BinaryNetClassifier(beta=10**400).fit(ROWS, LABELS),
    "beta must be positive .math.inf for hard rows": lambda: BinaryNetClassifier(
        beta=10**400, hidden=()
    ).fit(ROWS, LABELS),
    "choose 'cpu', 'auto', or 'cuda' with a GPU": lambda: BinaryNetClassifier(
        device=any_(np.zeros(2)), hidden=(), epochs=1
    ).fit(ROWS, LABELS),
    "checkpoint must be a path": lambda: BinaryNetClassifier(checkpoint=any_(3)).fit(ROWS, LABELS),
    "checkpoint must be a path, got ''": lambda: run(SOLVER, GRAPH, checkpoint=""),
    "add up to .* at most": lambda: BinaryNetClassifier().fit(ROWS, LABELS, LABELS * 1e300),
}


def any_(value: Any) -> Any:
    return value


@pytest.mark.parametrize("sentence", WRONG)
def test_what_is_something_else_is_named(sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        WRONG[sentence]()


@pytest.mark.parametrize("scope", [[[0, -1]], [[0.5, 1]], torch.tensor([[0, 1.5]])])
def test_variables_are_numbered_from_zero_on(scope):
    with pytest.raises(ValueError, match="whole numbers from 0 on"):
        table(torch.ones(1, 2, 2), indexed(scope))


def test_variables_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr(graph, "available_memory", lambda: 10**9)
    with pytest.raises(ValueError, match=r"1,000,000,001 variables need .* without gaps"):
        factor_graph(table(torch.ones(1, 2, 2), indexed([[0, 10**9]])))


@pytest.mark.parametrize("update", [flip, pinned, counting])
@pytest.mark.parametrize("samples", [0, -1, 1.5, 10**12])
def test_draws_are_counted_in_whole_numbers(update, samples):
    with pytest.raises((ValueError, TypeError), match="samples must be"):
        update(samples)


def test_unsupported_numbers_of_bins_are_refused():
    with pytest.raises(ValueError, match="bins must be an odd number from 3 to 1025, got 0"):
        s4p(flip(5), bins=0)


def test_a_factor_function_may_return_numpy():
    def numpy_parity(states, which):
        return states.numpy().sum(-1) % 2 == 1

    parity = blackbox(numpy_parity, num_factors=1, arity=3)
    assert run(belief_propagation(flip(5)), factor_graph(parity), max_steps=2).steps <= 2


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [(None, "returned NoneType; return a tensor"), ("yes", "returned str"), (1.0, "shape")],
)
def test_a_factor_function_that_returns_something_else_is_named(returned, sentence):
    box = blackbox(lambda states, which: returned, num_factors=1, arity=3)
    with pytest.raises((ValueError, TypeError), match=sentence):
        run(belief_propagation(flip(5)), factor_graph(box), max_steps=1)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"device": 3}, "device 3 is not here"),
        ({"module": 3}, "module is a torch module"),
        ({"module": torch.nn.Linear}, "module is a torch module, not a class"),
        ({"bias": 10**9}, "bias must be from 0 to"),
        ({"networks": 10**9, "predictor": "posterior"}, "networks must be from 1 to"),
        ({"samples": 10**9}, "samples must be"),
    ],
)
def test_a_classifier_refuses_what_would_take_all_memory_or_is_nothing(settings, sentence):
    net = BinaryNetClassifier(**{"hidden": (), "predictor": "best", **settings})
    with pytest.raises((ValueError, TypeError), match=sentence):
        net.fit(ROWS, LABELS)


def test_a_missing_label_among_numbers_is_counted_and_placed():
    labels = LABELS.astype(float)
    labels[6] = NAN
    with pytest.raises(ValueError, match="missing in 1 of 20 rows, first in row 7"):
        BinaryNetClassifier().fit(ROWS, labels)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--alpha", "inf"], "alpha must be above 0 and finite"),
        (["--alpha", "nan"], "alpha must be above 0 and finite"),
        (["--alpha", "0.5:inf:0.1"], "cannot read '0.5:inf:0.1'"),
        (["--alpha", "0.5:0.8:1e-300"], "at most 10000 values of alpha"),
        (["--alpha", "0.8:0.5:0.1"], "cannot read"),
        (["--alpha", "0.001"], "gives no example; raise one of them"),
        (["--alpha", "1e300"], "of memory"),
        (["--alpha", "1e308"], "of memory"),
        (["--alpha", "0.5", "--n", "999999999"], "of memory"),
        (["--alpha", "0.5", "--device", "cuda"], "device 'cuda' is not here"),
    ],
)
def test_capacity_refuses_before_any_work(arguments, sentence, tmp_path, capsys):
    if "cuda" in arguments and torch.cuda.is_available():
        pytest.skip("the device is here")
    with pytest.raises(SystemExit) as ended:
        main(["capacity", "--n", "11", "--out", str(tmp_path / "c"), *arguments])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert not (tmp_path / "c").exists()


def test_many_columns_are_listed_in_few_lines():
    accounts = [ColumnAccount(f"c{i}", "numbers", 4, 0) for i in range(2340)]
    accounts[7] = ColumnAccount("note", "dropped", 0, 3, "every row has a word of its own")
    assert list(column_lines(accounts)) == [
        "note: dropped, 3 missing; every row has a word of its own",
        "c0, c1, c2 and 2,336 more: numbers, 4 bits each",
    ]
    odd = [ColumnAccount(f"c{i}", "numbers", 1 + i, 0) for i in range(50)]
    assert len(list(column_lines(odd))) == 21
    assert list(column_lines(accounts[:2])) == ["c0: numbers, 4 bits", "c1: numbers, 4 bits"]
