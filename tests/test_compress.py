"""Small committees: they say what many networks say, in few bits."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from vitrail import BinaryNetClassifier, compress
from vitrail.data.encoders import TableEncoder
from vitrail.fitting import picking
from vitrail.fitting.crossing import crossed
from vitrail.fitting.planes import Planes, Size, digits_of, most_margin
from vitrail.fitting.thinning import RIDGE, Said, least_missed
from vitrail.fitting.thinning import fitted as fitted_line
from vitrail.fitting.whole import View, Whole
from vitrail.model import Model, model_from_bytes, outputs_of
from vitrail.model.voting import leads, members, scores

RNG = np.random.default_rng(4)
TABLE = pd.DataFrame(RNG.normal(size=(150, 3)), columns=["a", "b", "c"])
TWO = np.where(TABLE["a"] + TABLE["b"] > 0, "yes", "no")
THREE = np.where(TABLE["c"] > 0.5, 2, (TABLE["a"] > 0).astype(int))


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
    assert torch.equal(again.answers(TABLE).chances, small.answers(TABLE).chances)


@pytest.mark.parametrize("bits", [40, 200])
def test_a_small_model_leaves_out_the_share_that_it_tells(bits):
    """Within four standard errors of 150 held-out rows."""
    small = compress(fitted("two"), TABLE, bits=bits)
    unseen = pd.DataFrame(np.random.default_rng(5).normal(size=(4000, 3)), columns=["a", "b", "c"])
    confidence = small.answers(unseen).sureness
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
    assert {point["way"] for point in notes["curve"]} == {"units", "one net", "line"}
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
    """A missing number is told apart only beside a threshold, and a line counts both."""
    rows = TABLE.copy()
    rows.loc[::3, "a"] = np.nan
    rows["flag"] = np.where(rows["b"] > 0, 1.0, np.nan)
    model = BinaryNetClassifier(random_state=0, networks=32).fit(rows, TWO).model_
    for bits in (5, 6, 9, 17, 40):
        small = compress(model, rows, bits=bits)
        assert small.networks.numel() == small.record["compressed"]["chosen"]["bits"] <= bits
        assert (small.predict(rows) == TWO).mean() > 0.5


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


def test_units_pick_up_what_they_are_to_say():
    """One vote after the other: the pool's own sum of three members is found again."""
    said = torch.from_numpy(RNG.choice([-1, 1], size=(200, 30, 1))).to(torch.int16)
    wanted = said[:, [3, 8, 21]].double().sum(1)
    found = picking.Picker(said, wanted, torch.full((200,), 1 / 200)).picked(3)
    assert found == {3: 4, 8: 4, 21: 4}


def test_flips_bring_the_sum_nearer():
    model = fitted("two")
    rows = model.inputs(TABLE).numpy()
    weight = np.full(len(rows), 1 / len(rows))
    units = RNG.random((5, rows.shape[1] + 1)) < 0.5
    votes = np.array([1, 2, 1, 3, 1])
    wanted = np.where(TWO == "yes", 1.0, -1.0)

    def likeness(bits: np.ndarray) -> float:
        program = picking.unit_net(rows.shape[1])
        outputs = torch.cat(
            list(outputs_of(program, torch.from_numpy(bits[:, None]), torch.from_numpy(rows)))
        )
        score = scores(leads(outputs), torch.from_numpy(votes)[:, None], 1)[:, 0, 0].numpy()
        assert set(np.unique(members(leads(outputs), 1))) <= {-1, 1}
        return float(np.corrcoef(score, wanted)[0, 1])

    found = picking.polished(rows, units, votes, wanted, weight)
    assert likeness(found) > likeness(units) + 0.1
    assert (found[:, -1] == units[:, -1]).all()


def whole_of(kind: str) -> Whole:
    model = fitted(kind)
    rows = model.inputs(TABLE)
    return Whole(model, rows, torch.ones(len(rows), dtype=torch.float64))


def test_units_read_through_a_coarse_view_what_is_left():
    whole = whole_of("two")
    full, coarse = View.all(whole.model, 4)
    through = whole.through(coarse)
    assert through.rows.shape[1] == len(coarse.left) < len(full.left)
    encoded = torch.from_numpy(coarse.encoder.transform(TABLE))
    assert torch.equal(through.rows[:, : encoded.shape[1]], encoded)
    units, fewer = whole.units(), through.units()
    assert units is not None
    assert fewer is not None
    assert fewer.shape == (*units.shape[:2], len(coarse.left) + 1)
    assert torch.equal(fewer[..., -1], units[..., -1])
    heirs = (torch.arange(len(full.left))[:, None] - coarse.left).abs().argmin(1)
    alone = torch.bincount(heirs) == 1  # whoever inherits nothing keeps its weight
    assert torch.equal(fewer[..., :-1][..., alone], units[..., :-1][..., coarse.left[alone]])


def test_a_line_has_weights_that_its_digits_make():
    """The score of all planes is the sum of odd weights, and they are near those wished for."""
    way = Planes.of(whole_of("two"))
    assert way is not None
    fits = way.fits(None)
    odd = 2 * digits_of(fits, 3)[0] - 7
    assert set(odd.tolist()) <= {-7, -5, -3, -1, 1, 3, 5, 7}
    small = way.made(Size(None, 3)).model
    assert small.votes[:, 0].tolist() == [1, 2, 4]
    rows = way.whole.rows
    outputs = torch.cat(list(outputs_of(small.program, small.networks, rows)))
    score = scores(leads(outputs), small.votes, small.clip)[:, 0, 0]
    assert torch.equal(score, 2 * (rows.long() @ odd) - 7)  # a member's margin is twice less one
    assert np.corrcoef(score, rows.double() @ fits[0].weights)[0, 1] > 0.98


def test_lines_of_several_classes_share_one_curve():
    way = Planes.of(whole_of("three"))
    assert way is not None
    small = way.made(Size(None, 4)).model
    assert (small.calibration == small.calibration[:1]).all()
    same = small.answers_of(way.whole.rows).numbers == fitted("three").answers(TABLE).numbers
    assert float(same.double().mean()) > 0.9


@pytest.mark.parametrize("kind", ["two", "three"])
def test_lines_of_few_bits_read_only_these(kind):
    way = Planes.of(whole_of(kind))
    assert way is not None
    for count in (1, 4, 9):
        small = way.made(way.size(count, 3))
        assert len(small.model.encoder.bit_names) == count
        rows = small.model.inputs(TABLE)
        assert torch.equal(rows, way.whole.rows[:, small.view.left])
        said = outputs_of(small.model.program, small.model.networks, rows)
        margins = members(leads(torch.cat(list(said))), 10**6)
        assert int(margins.abs().max()) <= small.model.clip  # no row is cut off
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
    view = View(encoder, torch.arange(len(encoder.bit_names)))
    networks = torch.from_numpy(RNG.random((3, 2, len(view.left))) < 0.5)
    values = [
        [0, 2, 3, 4, 9], [-1, 0, 1, 2, 3], [0, 1], [None, 0, 1, 2, 3],
        ["a", "b", "c", "d"], ["a", "b", None, "d"], ["far", "0", "1.5", "3", "9"],
    ]  # fmt: skip
    every = pd.DataFrame(list(product(*values)), columns=table.columns)
    bits, weights = torch.from_numpy(encoder.transform(every)).long(), 2 * networks.long() - 1
    margin = 2 * bits @ weights.flatten(0, 1).T - 1
    assert most_margin(networks, view, False) == int(margin.abs().max())


def test_inputs_that_say_nothing_go_first():
    rows = torch.from_numpy(RNG.integers(0, 2, (400, 8))).double()
    rows[:, 7] = 1
    wish = torch.tensor([0.0, 3.0, 0.0, -2.0, 0.0, 1.0, 0.0, -1.0]).double()
    chance = torch.sigmoid(rows @ wish)[:, None]
    said = Said(rows, chance, torch.full((400,), 1 / 400).double())
    assert least_missed(said, range(7), [7])[-3:] == [5, 3, 1]


def test_what_goes_is_what_costs_least_by_trying_all():
    """Of five inputs one after the other, against new fits without each."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        rows = torch.from_numpy(rng.integers(0, 2, (300, 5))).double()
        chance = torch.sigmoid(rows @ torch.from_numpy(rng.normal(size=(5, 2))))
        said = Said(rows, chance, torch.full((300,), 1 / 300).double())

        def loss(places: list[int], said=said) -> float:
            total = 0.0
            for net, fit in enumerate(said.fits(places)):
                z = said.inputs[:, places] @ fit.weights
                wanted = said.chance[:, net]
                each = torch.nn.functional.binary_cross_entropy_with_logits(z, wanted)
                total += float(each + RIDGE / 2 * fit.weights.square().sum())
            return total

        left = list(range(5))
        for gone in least_missed(said, left, [])[:-1]:
            without = {i: loss([j for j in left if j != i]) for i in left}
            rise = {i: cost - loss(left) for i, cost in without.items()}
            assert rise[gone] <= 1.3 * min(rise.values()) + 1e-6
            left.remove(gone)


def test_rounding_is_no_worse_than_by_trying_all():
    """Up to a tenth of what rounding costs at best, among all numbers and the scales tried."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        inputs = torch.from_numpy(rng.integers(0, 2, (60, 5))).double()
        chance = torch.sigmoid(inputs @ torch.from_numpy(rng.normal(size=5)))
        fit = fitted_line(inputs, chance, torch.full((60,), 1 / 60).double())
        weights, curve = fit.weights, fit.curve

        def loss(odd: torch.Tensor, weights=weights, curve=curve) -> float:
            best = float(odd @ curve @ weights) / float(odd @ curve @ odd)
            return float((best * odd - weights) @ curve @ (best * odd - weights))

        all_odd = torch.tensor(list(product((-3, -1, 1, 3), repeat=5))).double()
        least = min(loss(odd) for odd in all_odd)
        found = loss((2 * digits_of([fit], 2)[0] - 3).double())
        assert found <= least + 0.1 * float(weights @ curve @ weights)


def test_logistic_regression_ends_where_nothing_pulls():
    inputs = torch.from_numpy(RNG.integers(0, 2, (200, 6))).double()
    chance = torch.from_numpy(RNG.random(200))
    weight = torch.full((200,), 1 / 200, dtype=torch.float64)
    weights = fitted_line(inputs, chance, weight).weights
    pull = inputs.T @ (weight * (torch.sigmoid(inputs @ weights) - chance)) + RIDGE * weights
    assert float(pull.abs().max()) < 1e-6


def test_one_net_learns_the_rule_that_a_model_knows():
    """Exactly two of six bits: no line, and no few units of others, say that."""
    rows = pd.DataFrame(np.array(list(product((0, 1), repeat=6))), columns=list("abcdef"))
    model = BinaryNetClassifier(random_state=0).fit(rows, rows.sum(axis=1) == 2).model_
    assert (model.predict(rows) == (rows.sum(axis=1) == 2)).all()
    small = compress(model, rows, bits=model.program.num_bits)
    assert (small.predict(rows) == (rows.sum(axis=1) == 2)).all()
