"""Gray images under the classifier: bits per pixel, channels of ones, and the same in exports."""

import numpy as np
import pyarrow as pa
import pytest
from export_runs import COMPILERS, expected_lines, run_all, run_onnx
from parts import need
from torch import nn

from vitrail import BinaryNetClassifier
from vitrail.learning.preprocessing import ImageInputs, image_inputs
from vitrail.model import Model, load_model
from vitrail.nn import BinaryConv2d, BinaryLinear, Flatten, conv, program_of
from vitrail.report.measures import measure
from vitrail.tables.bits import BitColumns
from vitrail.tables.table import Table

SHAPE = (1, 7, 6)
KINDS = 3


def pictures(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bands of light, lower for every kind, on a background that is brighter than the cut."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % KINDS
    images = rng.integers(0, 100, (rows, *SHAPE))
    for image, kind in zip(images, labels, strict=True):
        image[0, 2 * kind : 2 * kind + 2] += rng.integers(60, 150, (2, SHAPE[-1]))
    return images.astype(np.uint8), labels


@pytest.fixture(scope="module")
def gray() -> Model:
    images, labels = pictures(300, 0)
    module = conv((4, *SHAPE[1:]), channels=(6, 5), num_outputs=KINDS)
    net = BinaryNetClassifier(
        module=module, solver="streaming", predictor="best", epochs=20, random_state=0
    )
    net.fit(images, labels)
    new, answers = pictures(200, 1)
    assert net.score(new, answers) > 0.9
    return net.model_


def table_of(images: np.ndarray) -> dict[str, list[int]]:
    """Images as the table that C reads."""
    return {f"x{i}": column.tolist() for i, column in enumerate(images.reshape(len(images), -1).T)}


def test_a_net_of_gray_images_is_saved_loaded_and_exported_alike(gray, tmp_path):
    need("gcc")
    new, _ = pictures(200, 2)
    rows = table_of(new)
    gray.save(tmp_path / "gray.safetensors")
    again = load_model(tmp_path / "gray.safetensors")
    assert isinstance(again.encoder, BitColumns)
    assert again.encoder == gray.encoder
    assert (again.encoder.cuts, again.bias) == (3, 42)
    assert np.array_equal(again.probabilities(rows), gray.probabilities(rows))
    for bits in (8, 32):
        (lines,) = run_all([(again, rows)], tmp_path, COMPILERS["gcc"], word_bits=bits)
        assert lines == expected_lines(gray, rows)
    found = run_onnx(again, rows)
    assert found["number"].tolist() == gray.answers(rows).numbers.tolist()


def test_the_net_reads_cuts_as_channels_and_ones_last(gray):
    new, _ = pictures(5, 3)
    seen = gray.inputs(table_of(new)).reshape(5, 4, *SHAPE[1:]).numpy()
    for channel, level in enumerate([63, 127, 191]):
        assert np.array_equal(seen[:, channel], new[:, 0] > level)
    assert (seen[:, 3] == 1).all()


def test_a_column_is_all_bits_of_a_pixel(gray):
    places = np.arange(3 * 42)
    for pixel, span in enumerate(gray.encoder.spans):
        assert places[span].tolist() == [pixel, pixel + 42, pixel + 84]


def test_a_report_of_gray_images_shows_pixels(gray):
    images, labels = pictures(30, 4)
    gray.record["image_shape"] = list(SHAPE[1:])
    table = Table(pa.table(table_of(images)), image_shape=SHAPE[1:])
    found = measure(gray, table, labels)
    assert found.picture is not None
    assert found.picture.shape == (KINDS, *SHAPE[1:])
    bands = found.picture.reshape(KINDS, 7, 6)[:, :6].reshape(KINDS, 3, 12).mean(2)
    assert (bands.argmax(1) == np.arange(KINDS)).all()


@pytest.mark.parametrize(
    ("given", "wanted", "bias", "cuts", "constant"),
    [
        (1, 1, None, 1, 0),
        (1, 2, None, 1, 1),
        (1, 4, None, 3, 1),
        (1, 3, 0, 3, 0),
        (1, 4, 84, 2, 2),
        (3, 3, None, 1, 0),
        (3, 4, None, 1, 1),
        (3, 7, None, 2, 1),
        (3, 6, 0, 2, 0),
        (2, 2, None, 1, 0),
        (2, 5, 42, 2, 1),
    ],
)
def test_the_number_of_channels_gives_the_bits_per_pixel(given, wanted, bias, cuts, constant):
    net = nn.Sequential(BinaryConv2d(wanted, 2, 3), Flatten(), BinaryLinear(40, 1))
    shape = (wanted, *SHAPE[1:])
    for module in (net, nn.Sequential(net), program_of(net, shape)):
        found = image_inputs((given, *SHAPE[1:]), module, bias)
        assert found == ImageInputs(shape, cuts, 42 * constant)


@pytest.mark.parametrize(
    ("given", "wanted", "bias", "complaint"),
    [
        (3, 6, "auto", "images of 3 channels are read as k·3 \\+ 1, .* reads 6; give it 7, or"),
        (3, 2, "auto", "reads 2; give it 4, or another bias"),
        (3, 4, 0, "are read as k·3 \\+ 0, k bits per pixel and 0 channels of ones, .* give it 3"),
        (1, 300, "auto", "reads 300; give it 256, or"),
        (
            1,
            2,
            5,
            "bias counts ones after the pixels of images, 42 per channel, got 5; give 0 or 42",
        ),
    ],
)
def test_channels_that_images_do_not_become_are_refused(given, wanted, bias, complaint):
    images = np.random.default_rng(0).integers(0, 256, (20, given, *SHAPE[1:]))
    module = nn.Sequential(BinaryConv2d(wanted, 2, 3), Flatten(), BinaryLinear(40, 1))
    with pytest.raises(ValueError, match=complaint):
        BinaryNetClassifier(module=module, bias=bias).fit(images, np.arange(20) % 2)


def test_modules_that_make_their_own_channels_are_given_pixels_as_they_are():
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = conv((2, *SHAPE[1:]), channels=(2,), num_outputs=1)

        def forward(self, x):
            return self.layers(nn.functional.pad(x, (0, 0, 0, 0, 0, 1)))

    assert image_inputs(SHAPE, Both(), None) == ImageInputs(SHAPE)
