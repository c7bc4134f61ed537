import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from idx_files import idx_bytes

from vitrail.datasets import load_idx
from vitrail.datasets.idx import max_pool, read_idx
from vitrail.errors import DataError


@pytest.fixture
def pixels() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, (12, 6, 4), dtype=np.uint8)


@pytest.fixture
def classes() -> np.ndarray:
    return np.array([2, 7, 4] * 4)


@pytest.fixture
def files(tmp_path: Path, pixels: np.ndarray, classes: np.ndarray) -> tuple[Path, Path]:
    images, labels = tmp_path / "own-images-idx3-ubyte", tmp_path / "own-labels.gz"
    images.write_bytes(idx_bytes(pixels))
    labels.write_bytes(gzip.compress(idx_bytes(classes)))
    return images, labels


def test_plain_and_gzipped_files_load_as_bits_above_half_intensity(files, pixels):
    data = load_idx(*files, coding="binary")
    assert torch.equal(
        data.inputs, torch.from_numpy((pixels >= 128).reshape(12, 24).astype(np.int8))
    )
    assert data.labels.tolist() == [0, 2, 1] * 4
    assert data.classes == (2, 4, 7)
    assert data.shape == (1, 6, 4)
    assert data.name == "own-images-idx3-ubyte"
    assert data.test_inputs.shape == (0, 24)


def test_pooling_keeps_the_brightest_of_each_block(files, pixels):
    data = load_idx(*files, pool=2, coding="binary").shaped()
    assert data.shape == (1, 3, 2)
    for example, image in zip(data.inputs[:, 0].tolist(), pixels, strict=True):
        for row in range(3):
            for column in range(2):
                block = image[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
                assert example[row][column] == int(block.max() > 127)


def test_a_pair_keeps_two_classes_in_the_order_given(files, pixels, classes):
    data = load_idx(*files, *files, pair=(7, 2), coding="binary")
    keep = classes != 4
    expected = (pixels[keep] > 127).reshape(8, 24).astype(np.int8)
    assert torch.equal(data.inputs, torch.from_numpy(expected))
    assert torch.equal(data.test_inputs, data.inputs)
    assert data.labels.tolist() == [1, 0] * 4
    assert data.classes == (7, 2)
    assert data.name == "own-images-idx3-ubyte 7-vs-2"


@given(
    array=npst.arrays(np.uint8, npst.array_shapes(min_dims=3, max_dims=3, min_side=0, max_side=6)),
    zipped=st.booleans(),
)
def test_reading_gives_back_what_was_written(tmp_path_factory, array, zipped):
    path = tmp_path_factory.mktemp("idx") / "images"
    content = idx_bytes(array)
    path.write_bytes(gzip.compress(content) if zipped else content)
    np.testing.assert_array_equal(read_idx(path, axes=3), array)


@given(content=st.binary(max_size=40), start=st.sampled_from([b"", b"\0\0\x08\x03", b"\x1f\x8b"]))
def test_bytes_that_are_no_idx_file_give_a_value_error_or_an_array(
    tmp_path_factory, content, start
):
    path = tmp_path_factory.mktemp("idx") / "images"
    path.write_bytes(start + content)
    try:
        fault = "" if read_idx(path, axes=3).ndim == 3 else "an array of other axes came back"
    except ValueError as error:
        fault = "" if str(path) in str(error) else f"the message does not name the file: {error}"
    assert fault == ""


GOOD = idx_bytes(np.zeros((2, 3, 3)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not start like an idx file"),
        (b"PK\x03\x04 a zip file", "does not start like an idx file"),
        (GOOD[:7], "ends inside its header"),
        (GOOD[:-1], r"announces 18 values of shape \(2, 3, 3\) but holds 17"),
        (GOOD + b"\0", "but holds 19"),
        (gzip.compress(GOOD + b"\0", mtime=0), "but holds more"),
        (idx_bytes(np.zeros((2, 3, 3)), kind=0x0D), "idx type 0x0d, expected unsigned bytes"),
        (idx_bytes(np.zeros(2)), r"has 1 axes, expected images .* swapped"),
        (gzip.compress(GOOD, mtime=0)[:-9], "damaged gzip file"),
        (struct.pack(">BBBB3I", 0, 0, 8, 3, 2**32 - 1, 2**32 - 1, 9), "but holds 0"),
    ],
)
def test_a_malformed_file_is_refused_with_its_name_and_fault(tmp_path, files, content, message):
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_idx(path, files[1])
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path, files):
    with pytest.raises(DataError, match="nowhere not found; check the path"):
        load_idx(tmp_path / "nowhere", files[1])


def test_files_that_do_not_belong_together_are_refused(tmp_path, files, pixels):
    images, labels = files
    short, fresh, wide = tmp_path / "short", tmp_path / "fresh", tmp_path / "wide"
    short.write_bytes(idx_bytes(np.zeros(11)))
    fresh.write_bytes(idx_bytes(np.full(12, 9)))
    wide.write_bytes(idx_bytes(pixels.transpose(0, 2, 1)))
    with pytest.raises(ValueError, match=r"got 12 images in .* and 11 labels"):
        load_idx(images, short)
    with pytest.raises(ValueError, match="give both or none"):
        load_idx(images, labels, test_images=images)
    with pytest.raises(ValueError, match="has the label 9"):
        load_idx(images, labels, images, fresh)
    with pytest.raises(ValueError, match="images of the size of the training images"):
        load_idx(images, labels, wide, labels)


def test_an_empty_set_is_refused(tmp_path):
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(idx_bytes(np.zeros((0, 3, 3))))
    labels.write_bytes(idx_bytes(np.zeros(0)))
    with pytest.raises(ValueError, match="got 0 images"):
        load_idx(images, labels)


@pytest.mark.parametrize("size", [0, 4])
def test_a_pool_that_does_not_divide_the_image_is_refused(size):
    with pytest.raises(ValueError, match=f"pool must divide the image size 6×4, got {size}"):
        max_pool(np.zeros((1, 6, 4)), size)
