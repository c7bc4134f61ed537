import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis.extra import numpy as npst
from idx_files import idx_bytes

from vitrail.datasets import load_idx, mnist
from vitrail.datasets.mnist import EMBEDDED, pack, unpack

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


@given(
    npst.arrays(
        bool,
        npst.array_shapes(min_dims=1, max_dims=1, min_side=0, max_side=6).map(
            lambda shape: (*shape, 14, 14)
        ),
    )
)
def test_packing_loses_nothing(images):
    packed = pack(images)
    assert packed.shape == (len(images), 25)
    np.testing.assert_array_equal(unpack(packed), images)


def test_the_build_script_pools_and_packs_as_load_idx_does(tmp_path):
    draw = np.random.default_rng(1)
    for part, count in (("train", 30), ("t10k", 10)):
        pixels = draw.integers(0, 256, (count, 28, 28))
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx_bytes(pixels))
        labels = np.arange(count) % 10
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
    out = tmp_path / "built.npz"
    subprocess.run([sys.executable, SCRIPT, tmp_path, "-o", out], check=True, capture_output=True)
    own = load_idx(
        tmp_path / "train-images-idx3-ubyte",
        tmp_path / "train-labels-idx1-ubyte",
        pool=2,
        coding="binary",
    ).shaped()
    with np.load(out) as built:
        assert len(built["images"]) == 40
        np.testing.assert_array_equal(unpack(built["images"])[:30], own.inputs[:, 0].numpy())
        np.testing.assert_array_equal(built["labels"][:30], own.labels.numpy())
