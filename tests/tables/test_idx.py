import gzip
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from idx_files import idx_bytes

from vitrail.errors import DataError
from vitrail.tables.sources import read_idx


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
def test_a_malformed_file_is_refused_with_its_name_and_fault(tmp_path, content, message):
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_idx(path, axes=3)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="nowhere not found; check the path"):
        read_idx(tmp_path / "nowhere", axes=3)
