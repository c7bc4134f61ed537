"""Model files: the same model comes back, nothing else ever does."""

import json
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save
from torch import nn

from vitrail import BinaryNetClassifier
from vitrail.model import Model, ModelError, load_model, model_from_bytes
from vitrail.nn import BinaryLinear, Sign

RNG = np.random.default_rng(0)
ROWS = 60
COLOURS = RNG.choice(["red", "green", "blue"], ROWS)
SIZES = RNG.normal(size=ROWS).round(3)
TABLE = {"colour": COLOURS, "size": SIZES}
TWO = np.where((COLOURS == "red") | (SIZES > 0.5), "001", "yes, é\n")
THREE = np.where(COLOURS == "red", 2, np.where(SIZES > 0, 0, 1))
BITS = RNG.integers(0, 2, (ROWS, 9))


def trained(labels=TWO, rows=None, **settings_) -> Model:
    import pandas as pd

    net = BinaryNetClassifier(**{"random_state": 0, "epochs": 3, "hidden": (), **settings_})
    return net.fit(pd.DataFrame(TABLE) if rows is None else rows, labels).model_


CASES = {
    "table": lambda: trained(),
    "hidden": lambda: trained(hidden=(3,)),
    "posterior": lambda: trained(predictor="posterior", networks=7),
    "pairs": lambda: trained(THREE, multiclass="ovo"),
    "argmax": lambda: trained(THREE, multiclass="argmax", hidden=(5,)),
    "bits": lambda: trained(BITS[:, 0] ^ BITS[:, 1], rows=BITS, hidden=(3,)),
}


def rows_for(model: Model):
    return TABLE if "colour" in model.encoder.bit_names[0] else BITS


@pytest.mark.parametrize("case", CASES)
def test_a_saved_model_comes_back_the_same(case, tmp_path):
    model = CASES[case]()
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = load_model(path)
    for name in ("best", "marginals", "networks", "votes", "calibration"):
        assert torch.equal(getattr(model, name), getattr(again, name)), name
    assert again.encoder == model.encoder
    assert again.labels == model.labels
    assert again.program == model.program
    assert (again.bias, again.coding) == (model.bias, model.coding)
    assert (again.clip, again.thresholds) == (model.clip, model.thresholds)
    rows = rows_for(model)
    assert np.array_equal(again.probabilities(rows), model.probabilities(rows))
    assert again.predict(rows).tolist() == model.predict(rows).tolist()
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("case", CASES)
def test_probabilities_add_up_and_lead_to_the_prediction(case):
    model = CASES[case]()
    rows = rows_for(model)
    chances = model.probabilities(rows)
    assert chances.shape == (ROWS, model.num_classes)
    np.testing.assert_allclose(chances.sum(1), 1, atol=1e-12)
    assert model.labels.decode(chances.argmax(1)).tolist() == model.predict(rows).tolist()


def test_another_process_predicts_the_same(tmp_path):
    model = trained(hidden=(3,), predictor="posterior", networks=9)
    model.save(tmp_path / "model.safetensors")
    np.savez(tmp_path / "rows.npz", colour=COLOURS, size=SIZES)
    script = """
import sys, numpy as np
from vitrail.model import load_model
model = load_model(sys.argv[1])
with np.load(sys.argv[2]) as rows:
    table = {"colour": rows["colour"], "size": rows["size"]}
np.save(sys.argv[3], model.probabilities(table))
"""
    arguments = [str(tmp_path / name) for name in ("model.safetensors", "rows.npz", "out.npy")]
    subprocess.run([sys.executable, "-c", script, *arguments], check=True)
    assert np.array_equal(np.load(tmp_path / "out.npy"), model.probabilities(TABLE))


def test_equal_training_gives_equal_tensors_and_only_the_record_differs():
    first, again = (load(CASES["posterior"]().to_bytes()) for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    other = load(trained(predictor="posterior", networks=8).to_bytes())
    assert first["networks"].shape != other["networks"].shape


def test_labels_are_written_back_verbatim():
    assert set(trained().predict(TABLE).tolist()) <= {"001", "yes, é\n"}


def test_a_net_of_ones_own_needs_its_module_again(tmp_path):
    def module() -> nn.Module:
        return nn.Sequential(BinaryLinear(9, 3), Sign(), BinaryLinear(3, 1))

    model = trained(BITS[:, 0], rows=BITS, module=module())
    model.save(tmp_path / "own.safetensors")
    with pytest.raises(ModelError, match="pass the module again"):
        load_model(tmp_path / "own.safetensors")
    with pytest.raises(ModelError, match="30 weights and the module 9"):
        load_model(tmp_path / "own.safetensors", module=BinaryLinear(9, 1))
    again = load_model(tmp_path / "own.safetensors", module=module())
    assert np.array_equal(again.probabilities(BITS), model.probabilities(BITS))


def test_the_first_format_can_still_be_read():
    """The file of format 1, spelled out: whoever changes the format keeps this readable."""
    state = {
        "encoder_kind": "bits",
        "encoder": {"names": ["a", "b"], "low": 0.0, "high": 1.0},
        "labels": {"classes": ["no", "yes"], "kind": "object"},
        "coding": "binary",
        "bias": 1,
        "num_inputs": 3,
        "hidden": [],
        "num_outputs": 1,
        "num_weights": 3,
        "pairs": False,
        "scale": 1.0,
    }
    weights = torch.tensor([[0b011]], dtype=torch.uint8)  # +1 +1 −1: at least two of two
    tensors = {
        "best": weights,
        "marginals": torch.tensor([[0.9, 0.8, 0.1]]),
        "networks": weights[None].clone(),
        "shares": torch.ones(1, 1, dtype=torch.float64),
    }
    metadata = {"format": "vitrail-model", "version": "1", "model": json.dumps(state)}
    model = model_from_bytes(save(tensors, metadata=metadata), "old")
    assert model.predict([[0, 0], [0, 1], [1, 0], [1, 1]]).tolist() == ["no", "no", "no", "yes"]


def edited(change) -> bytes:
    """A sound model's file with its description or tensors changed."""
    content = trained().to_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    metadata, tensors = header["__metadata__"], load(content)
    state = json.loads(metadata["model"])
    change(metadata, state, tensors)
    metadata["model"] = json.dumps(state)
    return save(tensors, metadata=metadata)


FAULTS = {
    "no vitrail model": lambda m, s, t: m.update(format="other"),
    "model format 99": lambda m, s, t: m.update(version="99"),
    "unknown kind 'pickle'": lambda m, s, t: s.update(encoder_kind="pickle"),
    "other inputs than its net": lambda m, s, t: s.update(bias=7),
    "another number of weights": lambda m, s, t: s.update(hidden=[3]),
    "other outputs than classes": lambda m, s, t: s.update(num_outputs=4),
    "scale that is not positive": lambda m, s, t: s.update(scale=-1.0),
    "unknown coding": lambda m, s, t: s.update(coding="ternary"),
    "lacks the field 'labels'": lambda m, s, t: s.pop("labels"),
    "unknown field 'more'": lambda m, s, t: s.update(more=1),
    "whole number": lambda m, s, t: s.update(bias=1e30),
    "out of range": lambda m, s, t: t.update(marginals=t["marginals"] + 7),
    "out of range; train": lambda m, s, t: t.update(shares=t["shares"] / 3),
    "are not those": lambda m, s, t: t.pop("best"),
    "marginals are torch.float64": lambda m, s, t: t.update(marginals=t["marginals"].double()),
    "malformed training record": lambda m, s, t: m.update(record="[]"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_field_is_named(fault):
    with pytest.raises(ModelError, match=fault):
        model_from_bytes(edited(FAULTS[fault]), "file")


SOUND = trained().to_bytes()


@settings(max_examples=300)
@given(data=st.data())
def test_a_damaged_file_is_a_model_or_a_model_error(data):
    content = bytearray(SOUND)
    places = st.integers(0, len(content) - 1)
    for place in data.draw(st.lists(places, max_size=8)):
        content[place] ^= data.draw(st.integers(1, 255))
    content = bytes(content[: data.draw(st.one_of(st.just(len(content)), places))])
    with suppress(ModelError):
        model = model_from_bytes(content, "file")
        assert model.marginals.shape == model.best.shape


@given(content=st.binary(max_size=200))
def test_any_bytes_are_refused_in_a_sentence(content):
    with pytest.raises(ModelError, match="file"):
        model_from_bytes(content, "file")


@pytest.mark.parametrize("name", ["absent.safetensors", "."])
def test_a_file_that_cannot_be_read_is_named(name, tmp_path):
    with pytest.raises(ModelError, match="cannot read the model"):
        load_model(tmp_path / name)


def test_an_output_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"):
        trained().save(tmp_path / "absent" / "model.safetensors")
    assert list(tmp_path.iterdir()) == []
