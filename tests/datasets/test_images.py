import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from idx_files import idx_bytes
from sklearn.datasets import load_digits

from vitrail.datasets import digits, mnist
from vitrail.datasets.images import EMBEDDED, unpack

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_mnist14.py"

# from the originals: np.bincount of the two label files
TRAIN_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
TEST_COUNTS = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


FIRST_IMAGE = [
    "..............",
    "..............",
    "........####..",
    "....########..",
    "....#####.....",
    ".....##.......",
    "......##......",
    ".......###....",
    "........##....",
    "......####....",
    ".....####.....",
    "..#####.......",
    "..####........",
    "..............",
]


def test_the_embedded_arrays_are_those_recorded_beside_them():
    record = EMBEDDED.with_suffix(".md").read_text(encoding="utf-8")
    with np.load(EMBEDDED, allow_pickle=False) as stored:
        assert sorted(stored.files) == ["images", "labels"]
        for name in stored.files:
            assert f"{name} {hashlib.sha256(stored[name].tobytes()).hexdigest()}" in record
    assert EMBEDDED.stat().st_size < 800_000


def test_all_ten_classes_have_their_counts():
    data = mnist()
    assert data.labels.bincount().tolist() == TRAIN_COUNTS
    assert data.test_labels.bincount().tolist() == TEST_COUNTS
    assert data.classes == tuple(range(10))
    assert data.shape == (1, 14, 14)


def test_three_against_five_has_11552_examples_and_five_is_one():
    data = mnist(pair=(3, 5))
    assert data.labels.bincount().tolist() == [6131, 5421]
    assert data.test_labels.bincount().tolist() == [1010, 892]
    assert data.classes == (3, 5)
    assert data.name == "mnist 3-vs-5"
    whole = mnist()
    keep = (whole.labels == 3) | (whole.labels == 5)
    assert torch.equal(data.inputs, whole.inputs[keep])
    assert torch.equal(data.labels == 1, whole.labels[keep] == 5)


def test_the_first_training_image_is_the_well_known_five():
    picture = mnist(coding="binary").shaped().inputs[0, 0]
    drawn = ["".join(".#"[bit] for bit in row) for row in picture.tolist()]
    assert drawn == FIRST_IMAGE
    assert mnist().labels[0] == 5


@pytest.mark.parametrize("pair", [(3, 3), (3, 12), (1, 2, 3)])
def test_a_pair_that_is_none_is_refused(pair):
    with pytest.raises(ValueError, match="pair must name two different classes"):
        mnist(pair=pair)


def test_the_build_script_keeps_the_brightest_of_four_pixels(tmp_path):
    draw = np.random.default_rng(1)
    for part, count in (("train", 30), ("t10k", 10)):
        pixels = draw.integers(0, 256, (count, 28, 28))
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx_bytes(pixels))
        labels = np.arange(count) % 10
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
    out = tmp_path / "built.npz"
    subprocess.run([sys.executable, SCRIPT, tmp_path, "-o", out], check=True, capture_output=True)
    with np.load(out) as built:
        images, labels = unpack(built["images"]), built["labels"]
    assert len(images) == 40
    np.testing.assert_array_equal(labels, [*np.arange(30) % 10, *np.arange(10)])
    pixels = np.random.default_rng(1).integers(0, 256, (30, 28, 28))
    for image, picture in zip(images, pixels, strict=False):
        for row, column in np.ndindex(14, 14):
            block = picture[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            assert image[row, column] == (block.max() > 127)


PIXELS, TARGETS = (np.asarray(part) for part in load_digits(return_X_y=True))


def test_the_papers_setting_of_digits_is_the_default():
    data = digits()
    assert data.inputs.shape == (250, 64)
    assert data.test_inputs.shape == (0, 64)
    assert data.shape == (1, 8, 8)
    assert data.name == "digits 3-vs-5"


def test_images_and_labels_are_scikit_learns():
    found = digits(100, pair=(8, 1), coding="binary")
    known: dict[tuple[int, ...], set[int]] = {}
    for row, target in zip((PIXELS > 8).astype(int).tolist(), TARGETS, strict=True):
        known.setdefault(tuple(row), set()).add(int(target))
    inputs = torch.cat([found.inputs, found.test_inputs])
    labels = torch.cat([found.labels, found.test_labels])
    for row, label in zip(inputs.tolist(), labels.tolist(), strict=True):
        assert (8, 1)[label] in known[tuple(row)]


def test_the_whole_pair_has_its_counts():
    counts = np.bincount(TARGETS)
    data = digits(pair=(3, 5), num_images=int(counts[3] + counts[5]))
    assert data.labels.bincount().tolist() == [counts[3], counts[5]]


def test_training_and_test_images_are_one_order_cut_in_two():
    few, many = digits(5, seed=9), digits(245, seed=9)
    assert torch.equal(few.inputs, many.inputs[:5])
    joined = torch.cat([many.inputs, many.test_inputs])
    assert torch.equal(torch.cat([few.inputs, few.test_inputs]), joined)
    assert not torch.equal(digits(245, seed=10).inputs, many.inputs)


def test_the_threshold_is_a_fraction_that_must_be_exceeded():
    counts = [digits(threshold=t, coding="binary").inputs.sum().item() for t in (0.0, 0.5, 0.75)]
    assert counts[0] > counts[1] > counts[2] > 0
    pixels = PIXELS[np.isin(TARGETS, (3, 5))]
    whole = digits(num_images=len(pixels), coding="binary")
    assert whole.inputs.sum().item() == (pixels > 8).sum()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pair": (3, 3)}, "two different classes out of"),
        ({"pair": (3, 10)}, r"got \(3, 10\)"),
        ({"num_images": 1000}, "num_images must be from 1 to 365, got 1000"),
        ({"num_examples": 251}, "num_examples must be from 1 to 250, got 251"),
        ({"threshold": 8}, "fraction of full intensity"),
    ],
)
def test_bad_arguments_of_digits_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        digits(**options)
