"""The default learner: networks drawn by long chains, without message passing."""

import signal
import threading

import numpy as np
import pytest
import torch
from battery.problems import problem
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from thread_count import num_threads

from vitrail import BinaryNetClassifier
from vitrail.learning import effort, held_out, sampling
from vitrail.learning.chains import Run
from vitrail.learning.examples import Examples, label_factors, nets_of, with_rare_raised
from vitrail.model import model_from_bytes
from vitrail.model.model import outputs_of
from vitrail.solvers import Status
from vitrail.solvers.chains import CHECK_EVERY, Chains


def rows(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    made = np.random.default_rng(seed)
    table = made.normal(size=(count, 3))
    return table, (table[:, 0] + table[:, 1] > 0).astype(int)


def noisy(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same rule with a fifth of the labels wrong."""
    table, labels = rows(count, seed)
    return table, labels ^ (np.random.default_rng(seed + 1).random(count) < 0.2)


def small(**settings) -> BinaryNetClassifier:
    return BinaryNetClassifier(
        **{"hidden": (3,), "networks": 32, "predictor": "auto", "random_state": 1, **settings}
    )


def test_defaults_learn_and_report_how_chains_mixed():
    table, labels = rows(120)
    net = small().fit(table[:90], labels[:90])
    assert net.score(table[90:], labels[90:]) > 0.8
    record = net.model_.record
    assert record["settings"]["solver"] == "chains"
    assert record["mixing"]["chains"] == 16
    assert 1 <= record["mixing"]["effective_networks"] <= 16 * record["mixing"]["draws"]
    assert net.model_.networks.shape[0] == 32
    assert set(net.found_by_) == {"chains"}
    assert net.history_["best"].shape[0] == net.n_iter_


def test_three_classes_are_one_net_each_and_files_keep_them():
    table, labels = load_iris(return_X_y=True)
    net = small().fit(table[::2], labels[::2])
    model = net.model_
    assert (model.scheme, len(model.best)) == ("one-vs-rest", 3)
    assert net.score(table[1::2], labels[1::2]) > 0.85
    again = model_from_bytes(model.to_bytes(), "kept")
    found, kept = model.answers(table), again.answers(table)
    assert torch.equal(found.probabilities, kept.probabilities)
    assert bool((found.probabilities.sum(1) == 65535).all())
    lead = torch.cat(list(_leads(model, table)))  # (rows, K, N)
    share = (lead > 0).double().mean(1)
    against = 1 - share.gather(1, found.numbers[:, None])[:, 0]
    assert float((found.against / 65535 - against).abs().max()) < 1e-4


def _leads(model, table):
    for outputs in outputs_of(model.program, model.networks, model.inputs(table)):
        yield outputs[..., 0]


def test_the_rarer_side_of_a_net_counts_by_the_root_of_how_much_rarer_it_is():
    labels = torch.tensor([0] * 90 + [1] * 9 + [2])
    one = torch.ones(100, dtype=torch.float64)
    examples = Examples(torch.zeros(100, 1, dtype=torch.int8), labels, one, one)
    nets = nets_of(examples, 3, "one-vs-rest")
    factors = [label_factors(net, "one-vs-rest").tolist() for net in nets]
    assert factors == [[3, 1], [1, 3], [1, 10]]
    weights = [float(with_rare_raised(net, "one-vs-rest").weight.sum()) for net in nets]
    assert weights == [90 + 10 * 3, 91 + 9 * 3, 99 + 10]


def test_rows_are_counted_as_the_chains_count_them(monkeypatch):
    drawn = []

    def draw(run, *settings):
        drawn.append((run, original(run, *settings)))
        return drawn[-1][1]

    original = Run.draw
    monkeypatch.setattr(Run, "draw", draw)
    table, labels = rows(90)
    small(networks=16).fit(table, np.where(np.arange(90) % 9 == 0, 2, labels))
    ((run, state),) = drawn
    assert run._wrong(state.networks[0], run.data.examples).equal(state.wrong[0])


def test_threads_do_not_matter():
    table, labels = rows(80)
    found = []
    for threads in (1, 2):
        with num_threads(threads):
            found.append(small().fit(table, labels).model_)
    assert torch.equal(found[0].networks, found[1].networks)
    assert torch.equal(found[0].calibration, found[1].calibration)


def test_later_rows_do_not_undo_earlier_ones():
    """Earlier rows teach the first column, later ones hold no rows that would tell it."""
    made = np.random.default_rng(3)
    table = made.integers(0, 2, size=(400, 6))
    labels = table[:, 0]
    first = small(hidden=(7,), networks=64)
    first.partial_fit(table[:200], labels[:200], classes=[0, 1])
    few = first.partial_fit(table[200:206], labels[200:206])
    alone = small(hidden=(7,)).fit(table[200:206], labels[200:206])
    assert few.score(table[206:], labels[206:]) > 0.95 > alone.score(table[206:], labels[206:])


def test_one_network_of_the_chains_is_the_one_that_fits_best():
    table, labels = noisy(60, 0)
    many = small(solver="chains", networks="auto").fit(table, labels)
    one = small(solver="chains", predictor="best", networks="auto").fit(table, labels)
    assert one.plan_["predictor"] == "best"
    assert torch.equal(one.model_.networks, many.model_.best[None])
    assert one.model_.record["train_accuracy"] == one.model_.record["best_accuracy"]


def test_the_accuracy_on_training_rows_is_that_of_the_saved_model():
    """Of ten classes of noise single networks fit most rows against the rest, the model few."""
    made = np.random.default_rng(0)
    table, labels = made.normal(size=(200, 2)), np.arange(200) % 10
    net = small().fit(table, labels)
    accuracy = net.score(table, labels)
    assert net.model_.record["train_accuracy"] == pytest.approx(accuracy, abs=1e-6)
    assert accuracy < net.model_.record["best_accuracy"] - 0.2


def test_weights_and_copies_are_the_same():
    table, labels = rows(60)
    weight = np.where(np.arange(60) % 3 == 0, 3, 1)
    heavy = small().fit(table, labels, sample_weight=weight).model_
    repeated = small().fit(np.repeat(table, weight, 0), np.repeat(labels, weight)).model_
    assert torch.equal(heavy.networks, repeated.networks)


def test_weights_that_are_no_counts_are_relative():
    table, labels = rows(60)
    plain = small().fit(table, labels).model_
    for scale in (1 / 60, 0.3, 1e-300):
        scaled = small().fit(table, labels, sample_weight=np.full(60, scale)).model_
        assert torch.equal(scaled.networks, plain.networks)
        assert torch.equal(scaled.calibration, plain.calibration)
    counted = np.arange(60) % 2
    half = small().fit(table, labels, sample_weight=counted / 30).model_
    assert torch.equal(half.networks, small().fit(table[1::2], labels[1::2]).model_.networks)


def test_boosting_hands_weights_that_add_up_to_one():
    table, labels = rows(160)
    boosted = AdaBoostClassifier(small(networks=16), n_estimators=3, random_state=0)
    boosted.fit(table[:120], labels[:120])
    alone = small(networks=16).fit(table[:120], labels[:120])
    floor = alone.score(table[120:], labels[120:]) - 0.05
    for fitted in (boosted.estimators_[0], boosted):
        assert fitted.score(table[120:], labels[120:]) >= floor


@pytest.mark.parametrize("seed", [0, 2])
def test_new_rows_are_left_out_at_the_rate_that_is_reported(seed):
    """Within four standard errors of the held-out and the new rows: 6e-5 per rate by chance."""
    table, labels = noisy(1000, seed)
    model = small(networks=64, random_state=seed).fit(table, labels).model_
    confidence = model.answers(noisy(8000, 99)[0]).confidence
    for asked in (0.1, 0.3, 0.5):
        found = model.abstention(asked)
        assert asked / 2 < found.rate <= asked
        left_out = float((confidence < found.threshold).double().mean())
        variance = found.rate * (1 - found.rate) * (1 / 1000 + 1 / 8000)
        assert abs(left_out - found.rate) < 4 * variance**0.5


def test_the_rate_left_out_is_of_rows_not_of_class_weights():
    table, labels = noisy(400, 3)
    labels = np.where(np.arange(400) % 3 == 0, labels, 0)
    plain = small().fit(table, labels).model_
    heavy = small(class_weight={0: 1.0, 1: 50.0}).fit(table, labels).model_
    unseen = noisy(4000, 4)[0]
    for model in (plain, heavy):
        found = model.abstention(0.3)
        left_out = float((model.answers(unseen).confidence < found.threshold).double().mean())
        assert left_out == pytest.approx(found.rate, abs=0.12)


def test_rare_positives_are_ranked():
    """Four of 2,004 rows: networks that ignore them are nearly as likely, and rank at random."""
    asked = problem("4 of 2004", 0)
    made = np.random.default_rng([0, 77])
    truth = (made.random(4000) < 0.5).astype(int)
    unseen = made.normal(size=(len(truth), 2)) + np.stack([3.0 * truth, 0 * truth], 1)
    net = BinaryNetClassifier(random_state=0).fit(asked.rows, asked.labels)
    probability = net.predict_proba(unseen)[:, 1]
    assert roc_auc_score(truth, probability) > 0.95
    assert len(set(probability)) > 50
    assert net.predict_proba(asked.rows)[:, 1].mean() < 0.01  # calibrated on rows as they are


def test_interrupts_keep_what_the_chains_have(monkeypatch):
    table, labels = rows(60)
    calls, stops = [], []
    go_on = Chains.advance

    def advance(self, *given):
        go_on(self, *given)
        calls.append(given)
        if [len(calls)] == stops:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Chains, "advance", advance)
    assert threading.current_thread() is threading.main_thread()
    draws = held_out.DRAWS // effort.FOLD_CHAINS
    before = int(effort.FOLD_BURN_IN * effort.BURN_IN) // CHECK_EVERY + 1 + draws - 1
    whole = effort.BURN_IN // CHECK_EVERY
    # in chains on folds (four of each of five betas, two couplings and four folds); on all rows;
    # between two networks
    for after, kept in (
        (3, 160),
        (before + 3, 16),
        (before + whole + sampling.SWEEPS_PER_DRAW + 1, 32),
    ):
        calls.clear()
        stops[:] = [after]
        net = small(networks=64).fit(table, labels)
        assert len(net.model_.networks) == kept
        assert net.status_ == (Status.INTERRUPTED,)
        assert len(net.predict(table)) == 60


@pytest.mark.parametrize(
    ("count", "inputs", "nets", "width", "sweeps"),
    [
        (100, 200, 1, 7, 150),
        (200, 100, 1, 31, 150),
        (400, 200, 10, 7, 150),
        (4300, 160, 1, 63, 150),
        (48_000, 170, 1, 63, 71),
        (1350, 240, 10, 31, 72),
        (40, 16_000, 1, 3, 40),
    ],
)
def test_nets_are_as_wide_as_the_work_allows(count, inputs, nets, width, sweeps):
    ones = torch.ones(count)
    one = Examples(torch.zeros(count, inputs), torch.zeros(count), ones, ones)
    plans = [
        effort.plan_chains([one] * nets, "auto", effort=name)
        for name in ("quick", "normal", "best")
    ]
    assert (plans[1].program.hidden, plans[1].burn_in) == ((width,), sweeps)
    units = [sum(plan.program.hidden or ()) * plan.burn_in for plan in plans[::2]]
    assert units[0] <= width * sweeps <= units[1]


@pytest.mark.parametrize(
    ("classes", "each", "sweeps", "networks", "fold_chains"),
    [(200, 20, 88, 400, 1), (24, 20, 146, 560, 1), (10, 40, 121, 560, 4), (2, 40, 150, 560, 4)],
)
def test_many_classes_of_few_rows_have_shorter_chains(classes, each, sweeps, networks, fold_chains):
    ones = torch.ones(classes * each)
    one = Examples(torch.zeros(len(ones), 253), torch.zeros(len(ones)), ones, ones)
    plan = effort.plan_chains([one] * classes, "auto")
    assert (plan.burn_in, plan.networks, plan.fold_chains) == (sweeps, networks, fold_chains)


def test_mixing_detects_chains_that_disagree():
    made = torch.Generator().manual_seed(0)
    alike = torch.randn(50, 30, 4, 1, generator=made).double()
    apart = alike + 5 * torch.randn(50, 1, 1, 1, generator=made) * torch.arange(4)[:, None]
    one_beta = [1.0] * 4

    def of_one_beta(answers):
        return sampling.mixing(answers.unbind(1), one_beta)

    assert of_one_beta(alike)["spread"] < 1.1
    assert of_one_beta(alike)["effective_networks"] > 80
    assert sampling.mixing_warning(of_one_beta(alike)) is None
    assert of_one_beta(apart)["spread"] > 2
    assert of_one_beta(apart)["effective_networks"] < 8
    assert "not mixed" in str(sampling.mixing_warning(of_one_beta(apart)))
    still = apart.mean(1, keepdim=True).expand(-1, 30, -1, -1)
    assert of_one_beta(still)["spread"] == sampling.MAX_R_HAT
    one = of_one_beta(torch.ones(50, 30, 4, 1).double())
    assert (one["spread"], one["effective_networks"], one["error"]) == (1.0, 120.0, 0.0)
    # what colder chains say apart is no fault
    shifted = alike + torch.tensor([0.0, 5.0, 0.0, 5.0])[:, None]
    assert (
        sampling.mixing(shifted.unbind(1), [1.0, 2.0, 1.0, 2.0])["spread"]
        < 1.1
        < of_one_beta(shifted)["spread"]
    )


def test_chains_that_do_not_mix_are_warned_of(monkeypatch):
    table, labels = rows(60)
    usual = small(networks=128).fit(table, labels)
    monkeypatch.setattr(sampling, "MIN_EFFECTIVE_VOTES", 10**6)
    with pytest.warns(ConvergenceWarning, match="not mixed"):
        longer = small(networks=128).fit(table, labels)
    assert longer.n_iter_ > usual.n_iter_
