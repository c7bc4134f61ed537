"""Nets with activations of a few bits are learned through their modules, from images and bits."""

import numpy as np
import pytest
import torch
from torch import nn

from vitrail import BinaryNetClassifier, load_model
from vitrail.nn import (
    BinaryConv2d,
    BinaryLinear,
    Levels,
    RandomLevel,
    RandomWarp,
    get_bits,
    program_of,
)
from vitrail.tables.bits import BitColumns


def bars(count: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Gray images of a bright row, column or diagonal on noise, (count, 1, 8, 8) uint8."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    images = random.integers(0, 90, (count, 8, 8))
    for image, label, place in zip(images, labels, random.integers(0, 8, count), strict=True):
        line = (
            (place, slice(None)),
            (slice(None), place),
            (np.arange(8), (np.arange(8) + place) % 8),
        )
        image[line[label]] += 120
    return images[:, None].astype(np.uint8), np.array(["row", "column", "diagonal"])[labels]


def net(outputs: int = 3, channels: int = 1) -> nn.Sequential:
    return nn.Sequential(
        RandomWarp(rotate=0.0, shear=0.0, elastic=0.0),
        BinaryConv2d(channels, 6, 3, digits=2),
        Levels(6),
        nn.MaxPool2d(2),
        nn.Flatten(),
        BinaryLinear(54, 12),
        Levels(12, bits=2),
        BinaryLinear(12, outputs),
    )


def fit(rows, labels, **settings) -> BinaryNetClassifier:
    chosen = {"module": net(len(set(labels))), "epochs": 50, "batch_size": 50, "random_state": 0}
    return BinaryNetClassifier(**{**chosen, **settings}).fit(rows, labels)


@pytest.fixture(scope="module")
def learned() -> BinaryNetClassifier:
    return fit(*bars(400), solver="ste", epochs=100)


def test_gray_images_are_learned_as_whole_numbers(learned, tmp_path):
    found, rows = learned, bars(400)[0]
    new, truth = bars(300, seed=4)
    assert found.score(new, truth) > 0.7  # 0.33 by chance
    assert found.solver_ == "ste"
    assert found.plan_["epochs"] == 100
    assert isinstance(found.model_.encoder, BitColumns)
    assert found.model_.encoder.whole
    model = found.model_
    assert torch.equal(model.inputs(rows.reshape(400, 64)), torch.from_numpy(rows.reshape(400, 64)))
    model.save(tmp_path / "bars.safetensors")
    loaded = load_model(tmp_path / "bars.safetensors")
    assert (loaded.predict(new.reshape(300, 64)) == found.predict(new)).all()
    assert loaded.program == model.program


def test_what_is_learned_depends_on_the_seed_alone():
    rows, labels = bars(200)
    one, same, other = (
        fit(rows, labels, epochs=20, random_state=seed).model_.networks for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_probabilities_are_calibrated_on_rows_that_a_net_has_not_seen(learned):
    assert "calibrated_by" not in learned.model_.record
    new, truth = bars(600, seed=4)
    proba = learned.predict_proba(new)
    right, confidence = learned.classes_[proba.argmax(1)] == truth, proba.max(1)
    # four standard errors, of 600 answers and of the 80 rows that calibrated
    error = np.sqrt((confidence * (1 - confidence)).mean() * (1 / 600 + 1 / 80))
    assert abs(right.mean() - confidence.mean()) < 4 * error


def test_auto_is_ste_and_two_classes_have_one_output():
    rows, labels = bars(300)
    two = labels != "diagonal"
    found = fit(rows[two], labels[two], module=net(1), epochs=120)
    assert found.solver_ == "ste"
    assert found.score(rows[two], labels[two]) > 0.8


def test_training_goes_on_from_where_it_was():
    rows, labels = bars(300)
    found = fit(rows, labels, warm_start=True)
    first = found.score(rows, labels)
    found.set_params(epochs=5).fit(rows, labels)
    assert found.score(rows, labels) > first - 0.1
    found.partial_fit(*bars(60, seed=4))
    assert found.model_.record["rows"] == 360


def test_tables_of_bits_are_read_as_before():
    bits = np.random.default_rng(3).integers(0, 2, (400, 10))
    labels = bits[:, :5].sum(1) > 2
    module = nn.Sequential(BinaryLinear(10, 8), Levels(8, bits=2), BinaryLinear(8, 1))
    found = fit(bits, labels, module=module, bias=0, epochs=120)
    assert found.score(bits, labels) > 0.9


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"predictor": "posterior"}, "answer with one network"),
        ({"networks": 8}, "answers with its best network"),
        ({"restarts": 3}, "restarts is no option of nets with activations"),
        ({"module": net(2)}, "has 2 outputs"),
        ({"solver": "streaming"}, "moments need weights of one digit"),
        ({"module": program_of(net().eval(), (1, 8, 8))}, "give the module"),
    ],
)
def test_an_unsuitable_setting_is_refused(settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fit(*bars(30), **settings)


def test_augmentations_act_in_training_alone():
    images = torch.from_numpy(bars(30)[0]).float()
    for layer in (RandomWarp(), RandomLevel(), RandomWarp(shift=(0.2, 0.0), edge=True)):
        changed = layer(images)
        assert changed.shape == images.shape
        assert torch.equal(changed, changed.round().clamp(0, 255))
        assert not torch.equal(changed, images)
        assert torch.equal(layer.eval()(images), images)
    still = RandomWarp(shift=0.0, scale=0.0, rotate=0.0, shear=0.0, elastic=0.0)
    assert torch.equal(still(images), images)
    with pytest.raises(ValueError, match="one for each axis"):
        RandomWarp(shift=-1.0)


def test_a_shift_moves_images_along_its_axis_alone():
    image = torch.zeros(200, 1, 9, 9)
    image[:, :, 4, 4] = 200.0
    down = RandomWarp(shift=(0.5, 0.0), scale=0.0, rotate=0.0, shear=0.0, elastic=0.0)(image)
    assert (down[..., :4].sum() + down[..., 5:].sum()) == 0
    assert (down.sum((0, 1))[:, 4] > 0).sum() > 4


def test_programs_leave_augmentations_out():
    module = net().eval()
    assert next(type(node).__name__ for node in program_of(module, (1, 8, 8)).nodes) == "Conv"
    assert get_bits(module).numel() == program_of(module, (1, 8, 8)).num_bits
