"""Small committees: they say what many networks say, in few bits."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

from vitrail import BinaryNetClassifier, compress
from vitrail.fitting import compression as room
from vitrail.model import Model, model_from_bytes
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
    assert len(small.networks) == small.record["compressed"]["chosen"]
    again = model_from_bytes(small.to_bytes(), "small")
    assert torch.equal(again.answers(TABLE).chances, small.answers(TABLE).chances)


def test_bits_are_kept_to_and_labels_measured():
    model = fitted("three")
    small = compress(model, TABLE, THREE, bits=1000)
    each = model.program.num_inputs + 1
    assert small.networks.numel() == 1000 // (3 * each) * 3 * each
    curve = small.record["compressed"]["curve"]
    assert [point["bits"] for point in curve] == sorted(point["bits"] for point in curve)
    truth = (small.predict(TABLE) == THREE).mean()
    assert curve[-1]["accuracy"] == pytest.approx(truth)
    assert "train_accuracy" in model.record
    assert "train_accuracy" not in small.record
    with pytest.raises(ValueError, match="5 bits are too few"):
        compress(model, TABLE, bits=5)
    with pytest.raises(ValueError, match="one label for each of 150 rows, got 3"):
        compress(model, TABLE, THREE[:3], bits=1000)


def test_one_network_is_not_compressed():
    net = BinaryNetClassifier(predictor="best", hidden=(), epochs=1, random_state=0)
    with pytest.raises(ValueError, match="single network"):
        compress(net.fit(TABLE, TWO).model_, TABLE)


def test_rows_are_crossed_column_by_column():
    model = fitted("two")
    rows = model.inputs(TABLE)
    made = room.crossed(rows, room.columns_of(model), 400, seed=3)
    taken = []
    for column in room.columns_of(model):
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
    found = room.Picker(said, wanted, torch.full((200,), 1 / 200)).picked(3)
    assert found == {3: 4, 8: 4, 21: 4}


def test_flips_bring_the_sum_nearer():
    model = fitted("two")
    rows = model.inputs(TABLE).numpy()
    weight = np.full(len(rows), 1 / len(rows))
    units = RNG.random((5, rows.shape[1] + 1)) < 0.5
    votes = np.array([1, 2, 1, 3, 1])
    wanted = np.where(TWO == "yes", 1.0, -1.0)

    def likeness(bits: np.ndarray) -> float:
        program = room._kinds(model.program)[0]
        outputs = torch.cat(list(room.outputs_of(program, torch.from_numpy(bits[:, None]),
                                                 torch.from_numpy(rows))))  # fmt: skip
        score = scores(leads(outputs), torch.from_numpy(votes)[:, None], 1)[:, 0, 0].numpy()
        assert set(np.unique(members(leads(outputs), 1))) <= {-1, 1}
        return float(np.corrcoef(score, wanted)[0, 1])

    found = room.polished(rows, units, votes, wanted, weight)
    assert likeness(found) > likeness(units) + 0.1
    assert (found[:, -1] == units[:, -1]).all()
