"""Students answer as their teacher of many networks does, in few bits."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from vitrail import BinaryNetClassifier, compress
from vitrail.learning import compression
from vitrail.learning.examples import crossed
from vitrail.learning.quantised_linear import (
    RIDGE,
    LinearSize,
    QuantisedLinear,
    TeacherOutputs,
    digits_of,
    elimination_order,
    fit_logistic,
)
from vitrail.learning.teacher import GreedySelection, Teacher
from vitrail.model import Model, model_from_bytes
from vitrail.model.explanation import max_margin
from vitrail.model.model import outputs_of
from vitrail.model.voting import clipped_margins, raw_margins, scores
from vitrail.nn import conv
from vitrail.tables.encoders import TableEncoder

RNG = np.random.default_rng(4)
TABLE = pd.DataFrame(RNG.normal(size=(150, 3)), columns=["a", "b", "c"])
TWO = np.where(TABLE["a"] + TABLE["b"] > 0, "yes", "no")
THREE = np.where(TABLE["c"] > 0.5, 2, (TABLE["a"] > 0).astype(int))


@pytest.fixture(autouse=True)
def few_crossed_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Students of a table of three columns learn the same from fewer rows, in less time."""
    monkeypatch.setattr(compression, "CROSSED_ROWS", 1000)


@cache
def fitted(kind: str) -> Model:
    labels = THREE if kind == "three" else TWO
    net = BinaryNetClassifier(random_state=0, networks=32)
    if kind == "linear":
        net.set_params(hidden=(), epochs=2, networks=12)
    return net.fit(TABLE, labels).model_


@pytest.mark.parametrize("kind", ["two", "three", "linear"])
def test_small_committees_agree_with_the_model(kind):
    model = fitted(kind)
    small = compress(model, TABLE, bits=2000 if kind == "three" else None)
    same = small.answers(TABLE).numbers == model.answers(TABLE).numbers
    assert float(same.double().mean()) > 0.93
    assert small.networks.numel() < model.networks.numel()
    assert len(small.networks) == small.record["compressed"]["chosen"]["members"]
    again = model_from_bytes(small.to_bytes(), "small")
    assert torch.equal(again.answers(TABLE).probabilities, small.answers(TABLE).probabilities)


@pytest.mark.parametrize("bits", [40, 200])
def test_a_small_model_leaves_out_the_share_that_it_reports(bits):
    """Within four standard errors of 150 held-out rows."""
    small = compress(fitted("two"), TABLE, bits=bits)
    unseen = pd.DataFrame(np.random.default_rng(5).normal(size=(4000, 3)), columns=["a", "b", "c"])
    confidence = small.answers(unseen).confidence
    for rate in (0.1, 0.3, 0.5):
        found = small.abstention(rate)
        left_out = float((confidence < found.threshold).double().mean())
        assert abs(left_out - found.rate) <= 4 * (rate * (1 - rate) / 150) ** 0.5


def test_bits_are_kept_to_and_labels_measured():
    model = fitted("three")
    small = compress(model, TABLE, THREE, bits=1000)
    notes = small.record["compressed"]
    assert small.networks.numel() == notes["chosen"]["bits"] <= 1000
    assert [point["bits"] for point in notes["curve"]] == sorted(
        point["bits"] for point in notes["curve"]
    )
    assert {point["way"] for point in notes["curve"]} == {"one net", "linear model"}
    assert notes["chosen"]["agreement"] == max(point["agreement"] for point in notes["curve"])
    truth = (small.predict(TABLE) == THREE).mean()
    assert notes["chosen"]["accuracy"] == pytest.approx(truth, abs=0.06)  # learned from fewer rows
    assert "train_accuracy" in model.record
    assert "train_accuracy" not in small.record
    with pytest.raises(ValueError, match=r"5 bits are too few: the smallest .* has 12; give"):
        compress(model, TABLE, bits=5)
    with pytest.raises(ValueError, match="one label for each of 150 rows, got 3"):
        compress(model, TABLE, THREE[:3], bits=1000)


def test_columns_that_bring_others_along_stay_within_the_bits():
    """A missing number is known only beside a threshold, and a linear model counts both."""
    rows = TABLE.copy()
    rows.loc[::3, "a"] = np.nan
    rows["flag"] = np.where(rows["b"] > 0, 1.0, np.nan)
    model = BinaryNetClassifier(random_state=0, networks=32).fit(rows, TWO).model_
    for bits, least in ((5, 0.6), (6, 0.65), (9, 0.75), (17, 0.8), (40, 0.9)):  # 0.54 by chance
        small = compress(model, rows, bits=bits)
        assert small.networks.numel() == small.record["compressed"]["chosen"]["bits"] <= bits
        assert (small.predict(rows) == TWO).mean() > least


def test_small_models_read_one_side_of_thresholds():
    """From 400 rows of two classes on, chains read both sides."""
    x = np.random.default_rng(0).normal(size=(400, 2))
    label = x[:, 0] * x[:, 1] > 0
    model = BinaryNetClassifier(random_state=0, effort="quick").fit(x, label).model_
    small = compress(model, x, bits=600)
    sides = [code.both for one in (model, small) for code in getattr(one.encoder, "columns", ())]
    assert sides == [True, True, False, False]
    assert (small.predict(x) == label).mean() > 0.9


def test_small_models_of_arrays_read_arrays():
    rows = RNG.integers(0, 2, (200, 9))
    model = (
        BinaryNetClassifier(random_state=0, networks=32).fit(rows, rows[:, 3] | rows[:, 7]).model_
    )
    small = compress(model, rows, bits=6)
    assert set(small.encoder.names) < set(model.encoder.names)
    again = model_from_bytes(small.to_bytes(), "small")
    assert (again.predict(rows) == (rows[:, 3] | rows[:, 7])).mean() > 0.9
    with pytest.raises(ValueError, match="9"):
        small.predict(rows[:, :2])


def test_one_network_is_not_compressed():
    net = BinaryNetClassifier(predictor="best", hidden=(), epochs=1, random_state=0)
    with pytest.raises(ValueError, match="single network"):
        compress(net.fit(TABLE, TWO).model_, TABLE)


def test_a_net_larger_than_any_committee_of_units_is_compressed_to_networks():
    images = RNG.integers(0, 2, (40, 1, 4, 4))
    module = conv((1, 4, 4), channels=(16, 8))
    net = BinaryNetClassifier(
        module=module, solver="streaming", epochs=1, networks=4, random_state=0
    )
    small = compress(net.fit(images, images[:, 0, 1, 1]).model_, images.reshape(40, 16))
    chosen = small.record["compressed"]["chosen"]
    assert chosen["way"] == "networks"
    assert chosen["bits"] == chosen["members"] * small.program.num_bits
    assert chosen["members"] <= 4


def test_few_rows_are_too_few_to_measure_agreement():
    for count in (0, 1, 19):
        with pytest.raises(ValueError, match=rf"at least 20 rows .* got {count}; give more"):
            compress(fitted("two"), TABLE[:count])
    assert compress(fitted("two"), TABLE[:20], bits=40).networks.numel() <= 40


def test_rows_are_crossed_column_by_column():
    model = fitted("two")
    rows = model.inputs(TABLE)
    made = crossed(rows, model.encoder.spans, 400, seed=3)
    taken = []
    for column in model.encoder.spans:
        known = {row.tobytes() for row in rows[:, column].numpy()}
        assert {row.tobytes() for row in made[:, column].numpy()} <= known
        taken.append(len({row.tobytes() for row in made[:, column].numpy()}))
    whole = {row.tobytes() for row in rows.numpy()}
    assert sum(row.tobytes() in whole for row in made.numpy()) < 300
    assert min(taken) > 1


def test_greedy_selection_finds_the_members_of_a_sum():
    """The target is the sum of three candidates: these are selected."""
    margins = torch.from_numpy(RNG.choice([-1, 1], size=(200, 30, 1))).to(torch.int16)
    target = margins[:, [3, 8, 21]].double().sum(1)
    found = GreedySelection(margins, target, torch.full((200,), 1 / 200)).select(3)
    assert found == {3: 4, 8: 4, 21: 4}


def teacher_of(kind: str) -> Teacher:
    model = fitted(kind)
    rows = model.inputs(TABLE)
    return Teacher(model, rows, torch.ones(len(rows), dtype=torch.float64))


def test_the_weights_of_a_linear_model_are_sums_of_its_digits():
    """The score of all digits is the sum of odd weights, which are near the real ones."""
    linear = QuantisedLinear(teacher_of("two"))
    fits = linear.fits(None)
    odd = 2 * digits_of(fits, 3)[0] - 7
    assert set(odd.tolist()) <= {-7, -5, -3, -1, 1, 3, 5, 7}
    small = linear.build(LinearSize(None, 3)).model
    assert small.votes[:, 0].tolist() == [1, 2, 4]
    rows = linear.teacher.rows
    outputs = torch.cat(list(outputs_of(small.program, small.networks, rows)))
    score = scores(raw_margins(outputs), small.votes, small.clip)[:, 0, 0]
    assert torch.equal(score, 2 * (rows.long() @ odd) - 7)  # a margin is 2·lead − 1
    assert np.corrcoef(score, rows.double() @ fits[0].weights)[0, 1] > 0.98


def test_linear_models_of_several_classes_share_one_calibration():
    linear = QuantisedLinear(teacher_of("three"))
    small = linear.build(LinearSize(None, 4)).model
    assert (small.calibration == small.calibration[:1]).all()
    same = small.answers_of(linear.teacher.rows).numbers == fitted("three").answers(TABLE).numbers
    assert float(same.double().mean()) > 0.9


@pytest.mark.parametrize("kind", ["two", "three"])
def test_linear_models_of_few_bits_read_only_these(kind):
    linear = QuantisedLinear(teacher_of(kind))
    for count in (1, 4, 16):
        small = linear.build(linear.size(count, 3))
        assert len(small.model.encoder.bit_names) == count
        rows = small.model.inputs(TABLE)
        assert torch.equal(rows, linear.teacher.rows[:, small.places])
        said = outputs_of(small.model.program, small.model.networks, rows)
        margins = clipped_margins(raw_margins(torch.cat(list(said))), 10**6)
        assert int(margins.abs().max()) <= small.model.clip  # no margin is clipped
        assert (small.model.calibration.diff() > 0).all()
    same = small.model.answers_of(rows).numbers == fitted(kind).answers(TABLE).numbers
    assert float(same.double().mean()) > 0.85


def test_the_largest_margin_is_that_of_some_row():
    """Of numbers, words, words among numbers and missing ones, beside all rows there can be."""
    table = pd.DataFrame({
        "number": [1.5, 2.5, 3.5, 4.5] * 12,
        "few": [0, 1, 2, 2] * 12,
        "two": [0, 1] * 24,
        "hole": [0.5, None, 1.5, 2.5] * 12,
        "word": ["a", "b", "c"] * 16,
        "gap": ["a", "b", None] * 16,
        "both": [*["far"] * 8, *(f"{i / 8}" for i in range(40))],
    })  # fmt: skip
    encoder = TableEncoder.fit(table, thresholds=3)
    assert {"both=far", "hole missing", "few=1", "few>0.5"} <= {*encoder.bit_names}
    networks = torch.from_numpy(RNG.random((3, 2, len(encoder.bit_names))) < 0.5)
    values = [
        [0, 2, 3, 4, 9], [-1, 0, 1, 2, 3], [0, 1], [None, 0, 1, 2, 3],
        ["a", "b", "c", "d"], ["a", "b", None, "d"], ["far", "0", "1.5", "3", "9"],
    ]  # fmt: skip
    every = pd.DataFrame(list(product(*values)), columns=table.columns)
    bits, weights = torch.from_numpy(encoder.transform(every)).long(), 2 * networks.long() - 1
    margin = 2 * bits @ weights.flatten(0, 1).T - 1
    assert max_margin(networks, encoder, False) == int(margin.abs().max())


def test_irrelevant_inputs_are_eliminated_first():
    rows = torch.from_numpy(RNG.integers(0, 2, (400, 8))).double()
    rows[:, 7] = 1
    wish = torch.tensor([0.0, 3.0, 0.0, -2.0, 0.0, 1.0, 0.0, -1.0]).double()
    probability = torch.sigmoid(rows @ wish)[:, None]
    outputs = TeacherOutputs(rows, probability, torch.full((400,), 1 / 400).double())
    assert elimination_order(outputs, range(7), [7])[-3:] == [5, 3, 1]


def test_the_input_eliminated_is_the_cheapest_by_exhaustive_search():
    """Five inputs are eliminated one by one, against new fits without each."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        rows = torch.from_numpy(rng.integers(0, 2, (300, 5))).double()
        probability = torch.sigmoid(rows @ torch.from_numpy(rng.normal(size=(5, 2))))
        outputs = TeacherOutputs(rows, probability, torch.full((300,), 1 / 300).double())

        def loss(places: list[int], outputs=outputs) -> float:
            total = 0.0
            for net, fit in enumerate(outputs.fits(places)):
                z = outputs.inputs[:, places] @ fit.weights
                target = outputs.probability[:, net]
                each = torch.nn.functional.binary_cross_entropy_with_logits(z, target)
                total += float(each + RIDGE / 2 * fit.weights.square().sum())
            return total

        left = list(range(5))
        for gone in elimination_order(outputs, left, [])[:-1]:
            without = {i: loss([j for j in left if j != i]) for i in left}
            rise = {i: cost - loss(left) for i, cost in without.items()}
            assert rise[gone] <= 1.3 * min(rise.values()) + 1e-6
            left.remove(gone)


def test_rounding_is_near_the_best_by_exhaustive_search():
    """Up to a tenth of what rounding costs at best, among all numbers and the scales tried."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        inputs = torch.from_numpy(rng.integers(0, 2, (60, 5))).double()
        probability = torch.sigmoid(inputs @ torch.from_numpy(rng.normal(size=5)))
        fit = fit_logistic(inputs, probability, torch.full((60,), 1 / 60).double())
        weights, curve = fit.weights, fit.curve

        def loss(odd: torch.Tensor, weights=weights, curve=curve) -> float:
            best = float(odd @ curve @ weights) / float(odd @ curve @ odd)
            return float((best * odd - weights) @ curve @ (best * odd - weights))

        all_odd = torch.tensor(list(product((-3, -1, 1, 3), repeat=5))).double()
        least = min(loss(odd) for odd in all_odd)
        found = loss((2 * digits_of([fit], 2)[0] - 3).double())
        assert found <= least + 0.1 * float(weights @ curve @ weights)


def test_logistic_regression_ends_where_the_gradient_is_zero():
    inputs = torch.from_numpy(RNG.integers(0, 2, (200, 6))).double()
    probability = torch.from_numpy(RNG.random(200))
    weight = torch.full((200,), 1 / 200, dtype=torch.float64)
    weights = fit_logistic(inputs, probability, weight).weights
    gradient = (
        inputs.T @ (weight * (torch.sigmoid(inputs @ weights) - probability)) + RIDGE * weights
    )
    assert float(gradient.abs().max()) < 1e-6


def test_a_distilled_net_learns_the_rule_of_its_teacher():
    """Exactly two of six bits: no linear model and no few units compute that."""
    rows = pd.DataFrame(np.array(list(product((0, 1), repeat=6))), columns=list("abcdef"))
    often = pd.concat([rows] * 4)
    model = BinaryNetClassifier(random_state=0).fit(often, often.sum(axis=1) == 2).model_
    assert (model.predict(rows) == (rows.sum(axis=1) == 2)).all()
    small = compress(model, rows, bits=model.program.num_bits)
    assert (small.predict(rows) == (rows.sum(axis=1) == 2)).all()
