"""Every learner keeps one protocol: its options configure it, its plan says what ran."""

import itertools
import json
import math
import signal

import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV

from vitrail import BinaryNetClassifier, load_model
from vitrail.learning import SOLVERS
from vitrail.learning.table import OPTIONS, parameter_of
from vitrail.random import Key
from vitrail.solvers import Status, journal
from vitrail.solvers.chains import Chains, Sample, random_starts
from vitrail.solvers.streaming import Streaming

RANDOM = np.random.default_rng(5)
ROWS = RANDOM.integers(0, 2, (24, 4))
LABELS = (ROWS[:, :3].sum(1) > 1) ^ (RANDOM.random(24) < 0.1)
CLASSES = ROWS[:, 0] + ROWS[:, 1]
SOME = {"update": "flip", "samples": 3, "beta": 2.0, "damping": 0.5, "batch_size": 8}
SOME |= {"epochs": 2, "restarts": 2, "polish": 1, "effort": "quick"}
RUNNING = [name for name in SOLVERS if name not in ("cpsat", "s3p")]  # these take long
LONG = ("select", "snmp")  # with their usual epochs
AUTO = {
    "chains": {},
    "messages": {"hidden": (), "polish": 2},
    "select": {"hidden": (3, 3), "epochs": 2},
    "best network": {"predictor": "best", "hidden": (), "polish": 1},
    "signs": {"inputs": "bipolar", "hidden": (3,), "polish": 1, "networks": 16},
}
PARAMETERS = set(BinaryNetClassifier().get_params()) - {"checkpoint", "verbose", "random_state"}


def hidden_of(solver: str) -> tuple[int, ...]:
    return (3, 3) if solver == "select" else (3,) if solver == "chains" else ()


def fit(**settings) -> BinaryNetClassifier:
    return BinaryNetClassifier(random_state=0, **settings).fit(ROWS, LABELS)


def same(one: BinaryNetClassifier, other: BinaryNetClassifier) -> bool:
    first, second = one.model_, other.model_
    return (
        torch.equal(first.networks, second.networks)
        and torch.equal(first.votes, second.votes)
        and torch.equal(first.best, second.best)
    )


def given(plan: dict) -> dict:
    """The part of a plan that can be set, as it can be set."""
    plain = {name: value for name, value in plan.items() if name in PARAMETERS}
    return {name: math.inf if value == "inf" else value for name, value in plain.items()}


@pytest.mark.parametrize("solver", SOLVERS)
def test_options_of_others_are_refused_before_anything_is_trained(solver, monkeypatch):
    for place in ("messages.train", "choice.train", "chains.Run.draw", "held_out.FoldChains.score"):
        monkeypatch.setattr(f"vitrail.learning.{place}", _never)
    settings = {"hidden": hidden_of(solver), "solver": solver}
    foreign = [name for name in OPTIONS if name not in SOLVERS[solver].options]
    for option in foreign:
        name = parameter_of(option)
        with pytest.raises(ValueError, match=f"^{name} is no option of '{solver}'; leave it out"):
            fit(**settings, **{name: SOME[name]})
    for option in SOLVERS[solver].options:
        name = parameter_of(option)
        with pytest.raises(AssertionError, match="trained"):
            fit(**settings, **{name: SOME[name]})


def _never(*data, **settings):
    raise AssertionError("trained")


@pytest.mark.parametrize(
    "option", [name for name in OPTIONS if name not in SOLVERS["chains"].options]
)
def test_no_option_switches_from_one_learner_to_another(option):
    name = parameter_of(option)
    with pytest.raises(ValueError, match=f"{name} is no option of 'chains', which solver='auto'"):
        fit(**{name: SOME[name]})
    for solver in ("sbp", "streaming"):
        if option in SOLVERS[solver].options:
            settings = {"hidden": (3,), "epochs": 2, "polish": 0, name: SOME[name]}
            assert fit(solver=solver, **settings).solver_ == solver


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beta": math.inf}, "chains sample at a finite beta"),
        ({"solver": "chains", "hidden": (3, 3)}, "at most one hidden layer"),
        ({"solver": "chains", "inputs": "bipolar"}, "inputs of 0/1"),
        ({"solver": "sbp", "networks": 8}, "answers with its best network"),
        ({"predictor": "best", "networks": 8}, "answers with its best network"),
        ({"solver": "chains", "predictor": "best", "networks": 8}, "leave networks out"),
        ({"solver": "chains", "beta": [[1.0, 2.0], 3.0]}, "beta must be positive"),
        ({"solver": "ste", "hidden": (3, 3), "predictor": "posterior"}, "has no posterior"),
        ({"solver": "messages", "beta": (1.0, 2.0)}, "one beta"),
        ({"solver": "select"}, "select trains one net"),
    ],
)
def test_what_a_learner_cannot_do_is_said_with_a_remedy(settings, words):
    with pytest.raises(ValueError, match=words):
        fit(**settings)


@pytest.mark.parametrize(
    ("solver", "settings"),
    [
        *((solver, {}) for solver in RUNNING if solver not in LONG),
        *((solver, {"epochs": 2}) for solver in LONG),
        *(pytest.param(solver, {}, marks=pytest.mark.long) for solver in LONG),
    ],
)
def test_the_plan_is_what_ran_and_at_these_values_nothing_changes(solver, settings, tmp_path):
    net = fit(solver=solver, hidden=hidden_of(solver), **settings)
    assert net.solver_ == net.plan_["solver"] == solver
    own = {parameter_of(option) for option in SOLVERS[solver].options}
    foreign = {parameter_of(option) for option in OPTIONS} - own
    assert not foreign & net.plan_.keys()
    assert same(net, fit(**given(net.plan_)))
    net.model_.save(tmp_path / "model.safetensors")
    kept = load_model(tmp_path / "model.safetensors").record["settings"]
    assert kept == json.loads(json.dumps(net.plan_))


@pytest.mark.parametrize("case", AUTO)
def test_each_option_alone_at_its_resolved_value_changes_no_bit(case):
    settings = AUTO[case]
    net = fit(**settings)
    assert case not in SOLVERS or net.solver_ == case
    for name, value in given(net.plan_).items():
        assert same(net, fit(**{**settings, name: value})), name


@pytest.mark.parametrize("multiclass", ["auto", "ovo", "ovr", "argmax"])
def test_the_scheme_of_the_plan_is_the_one_that_ran(multiclass):
    net = BinaryNetClassifier((3,), multiclass=multiclass, random_state=0, networks=8)
    net.set_params(predictor="posterior").fit(ROWS, CLASSES)
    assert net.plan_["multiclass"] == ("ovr" if multiclass == "auto" else multiclass)
    assert net.solver_ == ("messages" if multiclass == "argmax" else "chains")
    kept = net.predict_proba(ROWS)
    net.set_params(multiclass=net.plan_["multiclass"]).fit(ROWS, CLASSES)
    assert np.array_equal(net.predict_proba(ROWS), kept)


def test_a_grid_search_compares_values_of_one_learner():
    search = GridSearchCV(
        BinaryNetClassifier((3,), networks=16, random_state=0), {"beta": [1.0, 5.0]}, cv=2
    ).fit(ROWS, LABELS)
    assert search.best_estimator_.solver_ == "chains"
    assert search.best_estimator_.plan_["beta"] == [search.best_params_["beta"]]


def test_chains_that_were_cut_go_on_with_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "SECONDS", 0.0)
    whole = fit(hidden=(3,), networks=32)
    net = BinaryNetClassifier((3,), networks=32, random_state=0, checkpoint=tmp_path / "run")
    advance, calls = Chains.advance, itertools.count()

    def cut(self, *given):
        if next(calls) == 24:  # among those on all rows
            raise EOFError
        advance(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Chains, "advance", cut)
        with pytest.raises(EOFError):
            net.fit(ROWS, LABELS)
    assert len({path.suffix for path in tmp_path.iterdir()} - {".previous"}) == 2
    ran = []
    built = Chains._build_chains
    monkeypatch.setattr(
        Chains, "_build_chains", lambda *given: ran.append(given[2]) or built(*given)
    )
    assert same(net.fit(ROWS, LABELS), whole)
    assert np.array_equal(net.predict_proba(ROWS), whole.predict_proba(ROWS))
    assert len([first for first in ran if first]) == 1  # only chains on all rows went on
    assert not list(tmp_path.iterdir())


def test_linear_chains_sample_the_posterior_of_linear_nets():
    """4·10⁴ draws of 8 configurations, two sweeps apart: off by 0.03 in less than 1 of 10⁶ runs."""
    inputs = torch.tensor([[1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 1]], dtype=torch.int8)
    labels, weight = torch.tensor([1, 0, 1, 0]), torch.tensor([1.0, 1.0, 2.0, 0.5]).double()
    beta, chains = 0.8, 400
    states = torch.tensor(list(itertools.product([False, True], repeat=3)))
    lead = (inputs.double() @ torch.where(states, 1.0, -1.0).double().T) > 0
    energy = (weight[:, None] * (lead != (labels == 1)[:, None])).sum(0)
    exact = torch.softmax(-beta * energy, 0)
    running = Chains(
        Key(3),
        [Sample(inputs, labels, weight)],
        random_starts(Key(3), chains, 1, 3),
        partner=torch.full((3,), -1),
    )
    running.advance(20, [beta] * chains, [beta] * chains)
    counts = torch.zeros(8, dtype=torch.float64)
    for _ in range(100):
        running.advance(2, [beta] * chains, [beta] * chains)
        number = (running.bits[:, 0].long() * torch.tensor([4, 2, 1])).sum(1)
        counts += torch.bincount(number, minlength=8)
    assert float((counts / counts.sum() - exact).abs().max()) < 0.03


def test_chains_that_would_take_minutes_are_not_begun(monkeypatch):
    monkeypatch.setattr("vitrail.learning.messages.MAX_CHAIN_EVALUATIONS", 0)
    monkeypatch.setattr("vitrail.learning.messages.posterior_samples", _never)
    net = fit(solver="messages", hidden=(3,), networks=8, polish=0)
    assert net.model_.networks.shape[0] == 8


@pytest.mark.parametrize("solver", ["chains", "sbp"])
def test_options_stay_when_a_fit_goes_on(solver):
    net = BinaryNetClassifier((3,), solver, beta=3.0, warm_start=True, random_state=0)
    first = net.fit(ROWS, LABELS).plan_
    assert net.fit(ROWS, LABELS).plan_["beta"] == first["beta"]
    net.partial_fit(ROWS, LABELS)
    assert net.plan_["beta"] == first["beta"]
    opened = net.set_params(beta="auto").fit(ROWS, LABELS).plan_["beta"]
    assert opened != first["beta"]


def test_another_solver_refuses_what_the_first_took():
    net = BinaryNetClassifier((3,), "sbp", damping=0.4, epochs=1, warm_start=True, random_state=0)
    net.fit(ROWS, LABELS).set_params(solver="streaming")
    with pytest.raises(ValueError, match="damping is no option of 'streaming'; leave it out"):
        net.fit(ROWS, LABELS)
    net.set_params(damping="auto").fit(ROWS, LABELS)
    assert net.solver_ == "streaming"


@pytest.mark.parametrize("change", [{"beta": 8.0}, {"networks": 64}, {"class_weight": {1: 20.0}}])
def test_rows_that_are_added_after_a_change_count_by_it(change):
    settings = {"hidden": (3,), "networks": 32, "beta": 1.0, "random_state": 0}
    net = BinaryNetClassifier(**settings).partial_fit(ROWS, LABELS)
    net.set_params(**change).partial_fit(ROWS[:1], LABELS[:1])
    rows, labels = np.concatenate([ROWS, ROWS[:1]]), np.concatenate([LABELS, LABELS[:1]])
    fresh = BinaryNetClassifier(**{**settings, **change}).fit(rows, labels)
    assert same(net, fresh)


def test_added_rows_count_in_the_accuracy_of_the_best_network():
    net = BinaryNetClassifier((3,), "chains", predictor="best", random_state=0)
    net.partial_fit(ROWS, LABELS)
    wrong = ROWS[:3], ~net.predict(ROWS[:3])
    record = net.partial_fit(*wrong).model_.record
    assert record["best_accuracy"] == pytest.approx(record["train_accuracy"], abs=1e-6)


def test_as_many_betas_as_chains_may_be_given():
    betas = [float(beta) for beta in range(1, 10)]
    net = fit(hidden=(3,), networks=32, beta=betas)
    assert net.plan_["beta"] == betas
    assert same(net, fit(**given(net.plan_)))
    turned = fit(hidden=(3,), networks=32, beta=(8.0, 2.0))
    assert same(turned, fit(**given(turned.plan_)))


def test_a_stop_in_a_trial_of_select_ends_the_fit(monkeypatch):
    calls = []
    absorb = Streaming.step

    def step(self, *arguments):
        calls.append(1)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return absorb(self, *arguments)

    monkeypatch.setattr(Streaming, "step", step)
    net = fit(solver="select", hidden=(3, 3))
    assert net.status_ == (Status.INTERRUPTED,)
    assert net.model_.record["held_out_accuracy"].keys() == {"streaming"}
