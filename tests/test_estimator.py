"""The classifier as people use it: tables, weights, going on, probabilities, company."""

import pickle
from itertools import pairwise
from typing import get_args

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch import nn

from vitrail import BinaryNetClassifier
from vitrail.datasets import mnist
from vitrail.errors import DataWarning
from vitrail.learning import SOLVERS
from vitrail.learning.examples import Examples
from vitrail.nn import BinaryConv2d, BinaryLinear, Threshold
from vitrail.solvers import Status, checkpoint
from vitrail.solvers.portfolio import NAMES

RNG = np.random.default_rng(1)
BITS = RNG.integers(0, 2, (200, 12))
TEACHER = np.array([1, -1, 1, 1, -1, -1, 1, -1, 1, 1, -1, -1])
RULE = (BITS @ TEACHER > 0).astype(int)  # what a linear net without bias can spell
XOR = BITS[:, 0] ^ BITS[:, 1]
PAIRED = np.hstack([BITS[:, :5], 1 - BITS[:, :5]])  # both values of a bit: others can be ignored
FRAME = pd.DataFrame(
    {
        "colour": np.array(["red", "green", "blue", None])[RNG.integers(0, 4, 200)],
        "size": np.where(RNG.random(200) < 0.1, np.nan, RNG.normal(size=200)),
        "flag": RNG.random(200) < 0.5,
    }
)
WORDS = np.where((FRAME["colour"] == "red") | (FRAME["size"] > 0), "good", "bad")


MESSAGES = {"random_state": 0, "predictor": "best", "hidden": (), "polish": 3}


def net(**settings) -> BinaryNetClassifier:
    """One network by messages, straight away: chains and choices have tests of their own."""
    return BinaryNetClassifier(**{**MESSAGES, **settings})


def test_folds_share_the_name_of_a_checkpoint(tmp_path):
    plain, saved = (
        net(solver="sbp", epochs=3, polish=0, checkpoint=place)
        for place in (None, tmp_path / "run")
    )
    scores = cross_val_score(saved, BITS[:60], RULE[:60], cv=2)
    assert list(scores) == list(cross_val_score(plain, BITS[:60], RULE[:60], cv=2))
    assert list(tmp_path.iterdir()) == []


def test_a_fit_that_was_cut_goes_on_beside_fits_of_other_rows(tmp_path, monkeypatch):
    plain, saved = (
        net(solver="sbp", epochs=52, polish=0, checkpoint=place)
        for place in (None, tmp_path / "run")
    )
    rows, rule, noise = BITS[:20], RULE[:20], XOR[:20]
    whole = plain.fit(rows, noise)
    write, read, written, found = checkpoint.write, checkpoint.read_latest, [], []

    def cut(path, *rest):
        write(path, *rest)
        written.append(path)
        raise EOFError

    def resumed(path):
        found.append(read(path))
        return found[-1]

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write", cut)
        with pytest.raises(EOFError):
            saved.fit(rows, noise)
    saved.fit(rows, rule)
    assert list(tmp_path.iterdir()) == written
    monkeypatch.setattr(checkpoint, "read_latest", resumed)
    assert torch.equal(saved.fit(rows, noise).model_.best, whole.model_.best)
    assert found[0] is not None
    assert list(tmp_path.iterdir()) == []


def test_the_constructor_only_stores():
    strange = object()
    stored = BinaryNetClassifier(hidden=strange, beta="?")  # pyright: ignore[reportArgumentType]
    assert stored.hidden is strange
    assert stored.beta == "?"


def test_a_rule_that_the_net_can_spell_is_found():
    fitted = net(bias=0).fit(BITS, RULE)
    assert fitted.score(BITS, RULE) == 1.0
    assert fitted.weights_.shape == (1, 12)
    assert fitted.marginals_.shape == (1, 12)
    assert fitted.status_ == (Status.SOLVED,)
    assert fitted.n_iter_ == len(fitted.history_)
    assert fitted.solver_ == fitted.plan_["solver"] == "messages"


def test_auto_is_the_portfolio_and_records_which_stage_found_the_best():
    noise = np.random.default_rng(3).integers(0, 2, 200)
    fitted = net().fit(BITS, noise)
    assert fitted.found_by_ == ("polish",)
    assert fitted.model_.record["found_by"] == ["polish"]
    assert fitted.history_["stage"].unique().tolist() == [0, 1]
    alone = net(polish=0).fit(BITS, noise)
    assert alone.found_by_ == ("sbp",)
    assert alone.history_["stage"].unique().tolist() == [0]


def test_an_infinite_beta_goes_through_the_stages_that_commit():
    few, labels = BITS[:24], np.random.default_rng(3).integers(0, 2, 24)
    fitted = net(beta=np.inf, polish=1, restarts=2).fit(few, labels)
    assert fitted.history_["stage"].unique().tolist() == [0, 1, 2, 3, 4]
    assert fitted.found_by_[0] in NAMES


def test_each_of_several_nets_is_found_by_a_stage_of_its_own():
    labels = RNG.integers(0, 3, 200)
    fitted = net(restarts=2).fit(BITS, labels)
    assert len(fitted.found_by_) == 3
    assert set(fitted.found_by_) <= {"sbp", "polish"}
    fitted.partial_fit(BITS[:40], np.where(labels[:40] == 2, 1, labels[:40]))
    assert "" not in fitted.found_by_


def test_the_net_is_chosen_on_rows_held_out():
    chosen = BinaryNetClassifier(predictor="best", random_state=0).fit(PAIRED, XOR)
    assert chosen.model_.program.hidden != ()
    assert chosen.score(PAIRED, XOR) == 1.0
    noise = RNG.integers(0, 2, 200)
    assert BinaryNetClassifier(predictor="best", random_state=0).fit(BITS, noise).n_iter_ > 0


def test_hidden_units_learn_what_a_linear_net_cannot():
    assert net(hidden=(5,)).fit(PAIRED, XOR).score(PAIRED, XOR) == 1.0
    assert net().fit(PAIRED, XOR).score(PAIRED, XOR) < 0.8


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "cpsat"])
def test_every_solver_learns_by_its_name(solver):
    hidden = {"select": (3, 3)}.get(solver, (3,) if solver == "chains" else ())
    epochs = {"epochs": 10} if "epochs" in SOLVERS[solver].options else {}
    settings = {"hidden": hidden, "solver": solver, "bias": 0, "random_state": 0, **epochs}
    rows = BITS[:60] if solver == "chains" else 2 * BITS[:60] - 1
    fitted = BinaryNetClassifier(**settings).fit(rows, RULE[:60])
    assert fitted.score(rows, RULE[:60]) > 0.8  # 0.65 for one answer
    assert fitted.solver_ == fitted.plan_["solver"] == solver


@pytest.mark.parametrize("columns", ["answers", "number"])
def test_more_rows_of_noisy_labels_do_not_make_messages_worse(columns):
    """Few distinct rows repeat, with right labels and wrong ones."""

    def sample(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        made = np.random.default_rng(seed)
        table = made.integers(0, 3, (count, 4)) if columns == "answers" else made.normal(size=count)
        table = table.reshape(count, -1)
        truth = table.sum(1) > (4 if columns == "answers" else 0.3)
        return table, truth ^ (made.random(count) < 0.15)

    unseen, truth = sample(5000, 1)
    scores = [
        np.mean(
            [
                net(solver="sbp", polish=0).fit(*sample(count, s)).score(unseen, truth)
                for s in (0, 2, 3)
            ]
        )
        for count in (200, 2000, 40_000)
    ]
    for fewer, more in pairwise(scores):
        assert more > fewer - 0.04
    assert scores[-1] > 0.75


def test_tables_of_words_numbers_and_holes_are_encoded():
    fitted = net(hidden=(3,)).fit(FRAME, WORDS)
    assert fitted.score(FRAME, WORDS) > 0.9
    assert fitted.feature_names_in_.tolist() == ["colour", "size", "flag"]
    assert set(fitted.predict(FRAME)) == {"good", "bad"}
    unseen = pd.DataFrame({"colour": ["mauve"], "size": [1e9], "flag": [None]})
    assert fitted.predict(unseen)[0] in ("good", "bad")


def test_signs_are_read_as_signs_and_bits_as_bits():
    assert net(epochs=1).fit(2 * BITS - 1, RULE).model_.coding == "bipolar"
    assert net(epochs=1).fit(BITS, RULE).model_.coding == "binary"
    assert net(epochs=1).fit(BITS.astype(bool), RULE).model_.coding == "binary"
    forced = net(epochs=1, inputs="bipolar", bias=2).fit(BITS, RULE).model_
    assert (forced.coding, forced.bias) == ("bipolar", 2)
    assert set(np.unique(forced.inputs(BITS))) == {-1, 1}


@pytest.mark.parametrize("multiclass", ["argmax", "ovo"])
def test_several_classes(multiclass):
    labels = np.array(["low", "middle", "top"])[np.clip(BITS[:, :6].sum(1) - 2, 0, 2)]
    fitted = net(hidden=(7,), multiclass=multiclass).fit(BITS, labels)
    assert fitted.weights_.shape[0] == (1 if multiclass == "argmax" else 3)
    assert fitted.score(BITS, labels) > 0.85
    assert fitted.predict_proba(BITS).shape == (200, 3)


@pytest.mark.parametrize("predictor", ["best", "posterior"])
@pytest.mark.parametrize("labels", [RULE, np.clip(BITS[:, :6].sum(1) - 2, 0, 2)])
def test_predict_is_the_argmax_of_the_probabilities(predictor, labels):
    fitted = net(predictor=predictor, epochs=3).fit(BITS, labels)
    probabilities = fitted.predict_proba(BITS)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-12)
    assert np.array_equal(fitted.predict(BITS), fitted.classes_[probabilities.argmax(1)])


def test_the_best_predictor_answers_as_the_saved_bits_do():
    fitted = net(hidden=(3,), epochs=3).fit(BITS, XOR)
    model = fitted.model_
    from vitrail.nn import mlp, set_bits

    module = set_bits(mlp(model.program.num_inputs, (3,)), model.best[0])
    with torch.no_grad():
        margin = module(model.inputs(BITS).float())[:, 0]
    assert np.array_equal(fitted.predict(BITS), (margin > 0).int().numpy())


def test_repeating_a_row_and_weighting_it_are_the_same_graph():
    inputs = torch.tensor([[1, 0], [0, 1], [1, 0], [1, 0]], dtype=torch.int8)
    labels = torch.tensor([1, 0, 1, 0])
    merged = Examples.distinct(inputs, labels, torch.tensor([1.0, 2.0, 1.0, 0.0]))
    assert merged.inputs.tolist() == [[0, 1], [1, 0]]
    assert merged.labels.tolist() == [0, 1]
    assert merged.weight.tolist() == [2.0, 2.0]


def test_the_order_of_rows_does_not_matter():
    order = RNG.permutation(200)
    first = net(hidden=(3,), epochs=2).fit(BITS, XOR)
    again = net(hidden=(3,), epochs=2).fit(BITS[order], XOR[order])
    assert np.array_equal(first.weights_, again.weights_)


def test_weights_decide_between_rows_that_contradict_each_other():
    rows, labels = np.array([[0, 1], [0, 1], [1, 0]]), [0, 1, 1]
    for favoured in (0, 1):
        weight = np.where(np.array(labels) == favoured, 5.0, 1.0)
        assert net().fit(rows, labels, sample_weight=weight).predict(rows)[0] == favoured
        by_class = net(class_weight={favoured: 9.0, 1 - favoured: 1.0}).fit(rows, labels)
        assert by_class.predict(rows)[0] == favoured


def test_going_on_keeps_what_was_learned():
    fitted = net(polish=0, bias=0, beta=2.0)
    for start in range(0, 200, 50):
        part = slice(start, start + 50)
        fitted.partial_fit(BITS[part], RULE[part], classes=[0, 1])
    assert fitted.score(BITS, RULE) > 0.85
    before = fitted.marginals_.copy()
    fitted.partial_fit(BITS[:1], RULE[:1])
    assert np.abs(fitted.marginals_ - before).max() < 0.5


@pytest.mark.parametrize("multiclass", ["ovo", "argmax"])
def test_going_on_without_a_class_does_not_forget_it(multiclass):
    labels = np.clip(BITS[:, :6].sum(1) - 2, 0, 2)
    fitted = net(hidden=(3,), epochs=5, multiclass=multiclass).partial_fit(BITS, labels)

    def recall() -> float:
        return float((fitted.predict(BITS)[labels == 2] == 2).mean())

    before = recall()
    assert before > 0.7
    some = np.flatnonzero(labels < 2)[:30]
    fitted.partial_fit(BITS[some], labels[some])
    assert recall() > before - 0.2


def test_going_on_with_one_class_alone_keeps_the_other():
    fitted = net(bias=0).partial_fit(BITS, RULE)
    one = RULE == 1
    fitted.partial_fit(BITS[one], RULE[one])
    assert fitted.score(BITS, RULE) > 0.8


def test_a_failed_fit_leaves_everything_as_it_was():
    fitted = net(epochs=2).fit(BITS, RULE)
    before = {name: value for name, value in vars(fitted).items() if name.endswith("_")}
    answers = fitted.predict(BITS).tolist()
    fitted.set_params(beta=-1.0)
    with pytest.raises(ValueError, match="beta must be positive"):
        fitted.fit(FRAME, WORDS)
    after = {name: value for name, value in vars(fitted).items() if name.endswith("_")}
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)
    assert fitted.predict(BITS).tolist() == answers
    unfitted = net(beta=-1.0)
    with pytest.raises(ValueError, match="beta must be positive"):
        unfitted.fit(FRAME, WORDS)
    assert not hasattr(unfitted, "n_features_in_")


def test_a_warm_start_takes_changed_settings_or_refuses_them():
    warm = net(epochs=1, polish=0, warm_start=True).fit(BITS, RULE)
    warm.set_params(epochs=4, beta=2.0).fit(BITS, RULE)
    assert (warm.plan_["epochs"], warm.plan_["beta"]) == (4, 2.0)
    assert warm.model_.record["settings"]["epochs"] == 4
    warm.set_params(hidden=(3,))
    with pytest.raises(ValueError, match="hidden was changed"):
        warm.fit(BITS, RULE)


def test_a_solver_or_stages_may_be_passed():
    from vitrail.solvers import Stage, belief_propagation
    from vitrail.updates import flip

    solver = belief_propagation(flip(5), damping=0.8, batch=32)
    named = net(solver="sbp", update="flip", samples=5, damping=0.8, batch_size=32, polish=0)
    passed = net(solver=solver, polish=0, epochs=5)
    assert np.array_equal(
        named.set_params(epochs=5).fit(BITS, RULE).weights_, passed.fit(BITS, RULE).weights_
    )
    assert passed.plan_["stages"] == ["BeliefPropagation"]
    assert passed.n_iter_ == named.n_iter_ > 5
    staged = net(solver=[Stage("first", solver, 7)], polish=1).fit(BITS, RULE)
    assert staged.history_["stage"].unique().tolist() in ([0], [0, 1])
    copied = clone(passed)
    assert isinstance(copied, BinaryNetClassifier)
    assert np.array_equal(copied.fit(BITS, RULE).weights_, passed.weights_)
    with pytest.raises(ValueError, match="damping belongs to the solver"):
        net(solver=solver, damping=0.5).fit(BITS, RULE)
    with pytest.raises(ValueError, match="solver must be a name"):
        net(solver=3).fit(BITS, RULE)


def test_names_of_solvers_have_one_table():
    from vitrail.lab.experiments import capacity, methods
    from vitrail.learning.table import IN_FIGURES, canonical

    assert capacity.SOLVERS.keys() - {"amp"} <= SOLVERS.keys()  # it is for random inputs alone
    assert IN_FIGURES.keys() <= SOLVERS.keys()
    assert {kind().name for kind in get_args(methods.Method)} == set(IN_FIGURES.values())
    assert canonical("straight_through") == "ste"


def test_a_warm_start_begins_where_the_last_fit_ended():
    warm = net(epochs=1, polish=0, warm_start=True).fit(BITS, RULE)
    before = np.abs(warm.marginals_ - 0.5).mean()
    assert np.abs(warm.fit(BITS, RULE).marginals_ - 0.5).mean() > before


def test_works_in_company(tmp_path):
    pipeline = make_pipeline(FunctionTransformer(), net(epochs=2))
    assert pipeline.fit(BITS, RULE).score(BITS, RULE) > 0.8
    search = GridSearchCV(net(epochs=1), {"beta": [1.0, 4.0]}, cv=2).fit(BITS, RULE)
    assert search.best_params_["beta"] in (1.0, 4.0)
    fitted = net(epochs=1, hidden=(3,)).fit(BITS, RULE)
    copied = clone(fitted)
    assert isinstance(copied, BinaryNetClassifier)
    assert copied.get_params() == fitted.get_params()
    joblib.dump(fitted, tmp_path / "net.joblib")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "net.joblib")):
        assert np.array_equal(copy.predict_proba(BITS), fitted.predict_proba(BITS))


def test_any_module_can_be_trained():
    pair = mnist(pair=(0, 1), coding="binary").take(60)
    module = nn.Sequential(
        nn.Unflatten(1, (1, 14, 14)),
        BinaryConv2d(1, 2, 3, stride=3),
        Threshold(),
        nn.Flatten(),
        BinaryLinear(32, 1),
    )
    fitted = net(module=module, epochs=2, inputs="binary", polish=0).fit(pair.inputs, pair.labels)
    assert fitted.weights_.shape == (1, 50)
    assert fitted.score(pair.inputs, pair.labels) > 0.8


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    from vitrail.solvers import bp

    original, calls = bp.BeliefPropagation.step, []

    def step(self, *arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(bp.BeliefPropagation, "step", step)
    fitted = net(hidden=(3,)).fit(BITS, XOR)
    assert fitted.status_ == (Status.INTERRUPTED,)
    assert fitted.n_iter_ == 3
    best = float(fitted.history_["best"].max())
    assert fitted.model_.record["best_accuracy"] == pytest.approx(best, abs=1e-6)


def test_ctrl_c_while_the_net_is_chosen_keeps_the_best_candidate(monkeypatch):
    from vitrail.solvers.polish import Polish

    original, calls = Polish.step, []

    def step(self, *arguments):
        calls.append(1)
        if len(calls) == 25:  # the second candidate is being searched on
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(Polish, "step", step)
    noisy = np.where(np.random.default_rng(4).random(200) < 0.1, 1 - RULE, RULE)
    fitted = BinaryNetClassifier(predictor="best", random_state=0, bias=0).fit(BITS, noisy)
    assert fitted.status_ == (Status.INTERRUPTED,)
    assert fitted.score(BITS, noisy) > 0.85


def test_ctrl_c_in_the_chains_of_the_posterior_keeps_what_was_drawn(monkeypatch):
    from vitrail.learning import messages
    from vitrail.solvers import sampling

    original, calls = sampling.posterior_samples, []

    def samples(*arguments, **settings):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments, **settings)

    monkeypatch.setattr(messages, "posterior_samples", samples)
    fitted = net(predictor="posterior", networks=10, bias=0).fit(BITS, RULE)
    assert fitted.status_ == (Status.INTERRUPTED,)
    assert len(fitted.model_.networks) == 5
    assert fitted.score(BITS, RULE) > 0.9


FAULTS = {
    "hidden is 'auto' or the units": {"hidden": "autoo"},
    "class weight of 1 must be a positive number, got nan": {"class_weight": {1: np.nan}},
    "class weight of 0 must be a positive number, got 0": {"class_weight": {0: 0}},
    "class weight of 0 must be a positive number, got -2": {"class_weight": {0: -2}},
    "class_weight is None, 'balanced'": {"class_weight": "even"},
    "unknown solver 'sgd'; choose one of: auto, chains, messages": {"solver": "sgd"},
    "unknown update 'magic'": {"update": "magic"},
    "unknown predictor 'worst'": {"predictor": "worst"},
    "unknown multiclass 'ova'": {"multiclass": "ova"},
    "unknown inputs 'ternary'": {"inputs": "ternary"},
    "beta must be positive": {"beta": -1.0},
    "damping is the share": {"damping": 3.0},
    "epochs must be at least 1, got 0": {"epochs": 0},
    "bias must be from 0 to": {"bias": -1},
    "a hidden layer must be at least 1": {"hidden": (0,)},
    "hidden layers or a module": {"hidden": (2,), "module": BinaryLinear(12, 1)},
    "device 'tpu' is not here": {"device": "tpu"},
    "the module has 3 outputs": {"module": BinaryLinear(12, 3)},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_setting_is_named(fault):
    with pytest.raises(ValueError, match=fault):
        net(**FAULTS[fault]).fit(BITS, RULE)


NO_SETTING = {
    "hidden": ["8", 8, (0,), (2.0,), ("a",)],
    "solver": ["sgd", 3, []],
    "predictor": ["worst", None, 1],
    "multiclass": ["ova", True],
    "inputs": ["ternary", 2],
    "bias": [-1, True, 1.0, "few"],
    "update": ["magic", None],
    "beta": ["x", "inf", 0, -1.0, np.nan, True, None, [], [5.0, "x"]],
    "module": ["net", BinaryLinear],
    "samples": [0, 2.0, True, "many"],
    "damping": [1.0, -0.1, np.nan, "x", None],
    "batch_size": [0, 2.0, True, "all"],
    "epochs": [0, 2.0, True, None],
    "restarts": [0, 2.0, True, None],
    "polish": [-1, 2.0, False, None],
    "networks": [0, 2.0, True, None],
    "warm_start": ["yes", None],
    "device": ["tpu", "gpu0", "cudax", "cuda:99", 0, None],
    "verbose": ["yes", None],
    "checkpoint": ["", 3],
}


@pytest.mark.parametrize("setting", NO_SETTING)
def test_every_path_refuses_what_is_no_setting_before_it_looks_at_rows(setting):
    paths = [{}, MESSAGES, {"hidden": (5, 3)}, {"module": BinaryLinear(12, 1)}]
    for value in NO_SETTING[setting]:
        for path in paths:
            with pytest.raises((ValueError, TypeError), match=rf"{setting}|hidden layer"):
                BinaryNetClassifier(**{**path, setting: value}).fit(None, None)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device is here")
def test_a_gpu_that_is_not_here_is_refused_on_the_default_path():
    with pytest.raises(ValueError, match="device 'cuda' is not here"):
        BinaryNetClassifier(device="cuda").fit(BITS, RULE)


def test_numbers_of_numpy_are_settings():
    given = {"epochs": np.int64(1), "restarts": np.int32(2), "beta": np.float32(2)}
    assert net(**given).fit(BITS[:20], RULE[:20]).plan_["restarts"] == 2


def test_later_calls_name_the_same_classes_or_none():
    fitted = net(epochs=1).partial_fit(BITS[:50], RULE[:50], classes=[0, 1])
    fitted.partial_fit(BITS[50:60], RULE[50:60], classes=np.array([1, 0, 1]))
    with pytest.raises(
        ValueError, match="must stay those of the first training, 0, 1, got 0, 1, 2"
    ):
        fitted.partial_fit(BITS[60:], RULE[60:], classes=[0, 1, 2])


def test_training_beyond_memory_is_refused_before_it_starts(monkeypatch):
    from vitrail.learning import training

    monkeypatch.setattr(training, "available_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"of memory for messages.*solver='streaming'"):
        net(solver="sbp").fit(BITS, RULE)


def test_bad_rows_are_named():
    with pytest.raises(ValueError, match="at least two classes"):
        net().fit(BITS, np.zeros(200))
    fitted = net(epochs=1).fit(BITS, RULE)
    with pytest.raises(ValueError, match="expected a number from 0 to 1 as in training, found 7"):
        fitted.predict(np.full((1, 12), 7))
    table = net(epochs=1).fit(FRAME, WORDS)
    with pytest.warns(DataWarning, match="'size', row 1: expected a number, found 'large'"):
        table.predict(pd.DataFrame({"colour": ["red"], "size": ["large"], "flag": [True]}))
