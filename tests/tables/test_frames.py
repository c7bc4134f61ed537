"""Tables of all makers become the same bits."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from vitrail import BinaryNetClassifier
from vitrail.errors import DataError
from vitrail.tables.bits import (
    BITS,
    MOST_CUTS,
    SIGNS,
    WHOLE_PIXELS,
    BitColumns,
    bit_range,
    pixel_range,
)
from vitrail.tables.encoders import TableEncoder, fit_encoder
from vitrail.tables.frames import as_frame
from vitrail.tables.table import Table, read_table

COLUMNS: dict[str, Any] = {
    "n": [1, 2, 3, 40, 5, 60] * 5,
    "f": [0.5, None, 1.5, 2.5, 8.5, 9.5] * 5,
    "w": ["a", "b", None, "a", "b", "c"] * 5,
    "b": [True, False, True, True, False, False] * 5,
}
TEXTS = {name: ["" if x is None else str(x) for x in column] for name, column in COLUMNS.items()}
FRAMES = {
    "mapping": lambda: COLUMNS,
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas categorical": lambda: pd.DataFrame(COLUMNS).astype({"w": "category"}),
    "pandas arrow": lambda: pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars categorical": lambda: pl.DataFrame(COLUMNS).with_columns(
        pl.col("w").cast(pl.Categorical)
    ),
    "polars decimal": lambda: pl.DataFrame(COLUMNS).with_columns(
        pl.col("f").cast(pl.Decimal(5, 2))
    ),
    "arrow": lambda: pa.table(COLUMNS),
    "arrow batch": lambda: pa.table(COLUMNS).to_batches()[0],
    "polars lazy": lambda: pl.LazyFrame(COLUMNS),
    "text": lambda: Table(pa.table(TEXTS)),
}
MAKERS = pytest.mark.parametrize("maker", FRAMES.values(), ids=FRAMES)


@MAKERS
def test_frames_of_all_makers_give_the_same_bits(maker: Any):
    expected = TableEncoder.fit(COLUMNS)
    encoder = fit_encoder(maker())
    assert isinstance(encoder, TableEncoder)
    assert encoder.bit_names == expected.bit_names
    assert (encoder.transform(maker()) == expected.transform(COLUMNS)).all()
    assert (expected.transform(maker()) == expected.transform(COLUMNS)).all()


@MAKERS
def test_rows_can_be_taken_from_frames_of_all_makers(maker: Any):
    frame = as_frame(maker()).take(np.array([5, 0, 3]))
    assert len(frame) == 3
    encoder = TableEncoder.fit(COLUMNS)
    assert (encoder.transform(frame) == encoder.transform(COLUMNS)[[5, 0, 3]]).all()


@pytest.mark.parametrize("maker", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_a_classifier_takes_them(maker: Any):
    labels = [["no", "yes"][n > 2] for n in COLUMNS["n"]]
    net = BinaryNetClassifier(random_state=0, hidden=(), epochs=1)
    given = pl.Series(labels) if maker is pl.DataFrame else labels
    net.fit(maker(COLUMNS), given)
    assert list(net.feature_names_in_) == list(COLUMNS)
    assert (net.predict(maker(COLUMNS)) == net.predict(pd.DataFrame(COLUMNS))).all()


@pytest.mark.parametrize("maker", [pd.DataFrame, pl.LazyFrame, pa.table])
def test_a_classifier_fitted_without_names_reads_columns_by_place(maker: Any):
    rows = np.random.default_rng(0).normal(size=(40, 2))
    labels = np.where(rows[:, 0] > 0, "NA", "nan")
    net = BinaryNetClassifier(random_state=0, hidden=(), epochs=1).fit(rows, labels)
    frame, few = maker({"b": rows[:, 0], "a": rows[:, 1]}), maker({"b": rows[:, 0]})
    with pytest.warns(UserWarning, match="X has feature names, but .* without feature names"):
        answers = net.predict(frame)
    assert (answers == net.predict(rows)).all()
    assert (answers == labels).mean() > 0.9
    with (
        pytest.warns(UserWarning, match="without feature names"),
        pytest.raises(ValueError, match=r"expecting 2 features|expected 2 columns"),
    ):
        net.predict(few)


def test_categories_that_are_numbers_are_words():
    ratings = [1, 2, 30, 2, 1, 30]
    for column in (
        pd.DataFrame({"r": pd.Categorical(ratings)}),
        pa.table({"r": pa.array(ratings).dictionary_encode()}),
    ):
        encoder = TableEncoder.fit(column)
        assert encoder.bit_names == ("r=1", "r=2", "r=30")
        assert encoder.transform({"r": [30.0, 1.0]}).tolist() == [[0, 0, 1], [1, 0, 0]]
        assert encoder.transform({"r": ["30", "1"]}).tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_matrices_are_read_as_what_they_stand_for(form: Any):
    words = np.array([["a", "x"], ["b", "y"], ["a", "z"], ["c", "x"]] * 5)
    encoded: Any = OneHotEncoder().fit_transform(words)
    code = fit_encoder(form(encoded))
    assert isinstance(code, BitColumns)
    assert (code.transform(form(encoded)) == encoded.toarray()).all()
    numbers = sp.random(40, 6, density=0.3, rng=np.random.default_rng(0))
    dense = TableEncoder.fit(numbers.toarray())
    assert fit_encoder(form(numbers)) == dense
    assert (dense.transform(form(numbers)) == dense.transform(numbers.toarray())).all()


def test_a_classifier_takes_sparse_matrices():
    rows = (np.random.default_rng(0).random((60, 8)) < 0.3).astype(float)
    labels = rows[:, 0] + rows[:, 1] > 0
    net = BinaryNetClassifier(random_state=0, hidden=(), epochs=1).fit(sp.csr_matrix(rows), labels)
    same = BinaryNetClassifier(random_state=0, hidden=(), epochs=1).fit(rows, labels)
    assert (net.weights_ == same.weights_).all()
    assert (net.predict(sp.csr_matrix(rows)) == same.predict(rows)).all()


@pytest.mark.parametrize(
    ("column", "complaint"),
    [
        (pd.date_range("2020", periods=3), "type datetime64.* such as year, month, weekday"),
        (pd.period_range("2020", periods=3), "type Period.* such as year, month, weekday"),
        (pl.Series(pd.date_range("2020", periods=3).tolist()), "type datetime64.* such as year"),
        (pl.Series([[1], [2], [3]]), "'x' holds values of type"),
        (pa.array([b"a", b"b", b"c"]), "'x' holds values of type bytes"),
    ],
    ids=str,
)
def test_columns_that_are_neither_numbers_nor_text_are_refused_with_advice(
    column: Any, complaint: str
):
    maker: Any = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    frame = pa.table({"x": column}) if isinstance(column, pa.Array) else maker({"x": column})
    with pytest.raises(DataError, match=complaint):
        TableEncoder.fit(frame)


def test_padded_names_are_found():
    encoder = TableEncoder.fit({" kind ": ["a", "b"], "n": [0, 1]})
    assert (
        encoder.transform({"kind": ["b"], "n ": [1]})
        == encoder.transform({" kind ": ["b"], "n": [1]})
    ).all()


# Bits and pixels.


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[0, 1], [1, 1]], BITS),
        ([[-1, 1], [1, 1]], SIGNS),
        ([[True, False], [True, True]], BITS),
        ([[0.0, 1.0], [1.0, 1.0]], BITS),
        ([[0, 1], [1, 2]], None),
        ([[0, -1], [1, 1]], None),
        ([[0.0, np.nan], [1.0, 1.0]], None),
        ([["0", "1"], ["1", "1"]], None),
    ],
    ids=str,
)
def test_bits_are_known_in_every_frame(values: list, expected: Any):
    array = np.array(values)
    named = {f"x{i}": array[:, i] for i in range(2)}
    for table in (array, named, pd.DataFrame(named), as_frame(pl.DataFrame(named))):
        assert bit_range(table) == expected


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [
        (np.array([0.0, 0.25, 1.0]), (0, 1)),
        (np.array([-1.0, 0.25, 1.0]), (-1, 1)),
        (np.array([0, 1, 1], np.uint8), (0, 1)),
        (np.array([0, 3, 16]), (0, 16)),
        (np.array([0, 3, 200], np.uint8), (0, 255)),
        (np.array([0.0, 3.5, 254.5]), (0, 255)),
        (np.array([0, 300, 65535], np.uint16), (0, 65535)),
        (np.zeros(3), (0, 1)),
    ],
    ids=str,
)
def test_the_range_of_pixels_is_told_by_the_pixels(tmp_path: Any, pixels: Any, expected: tuple):
    images = np.stack([pixels, pixels[::-1]]).reshape(2, 1, 3)
    np.savez(tmp_path / "images.npz", X=images)
    encoder = fit_encoder(read_table(tmp_path / "images.npz"))
    assert isinstance(encoder, BitColumns)
    assert (encoder.low, encoder.high) == expected
    middle = sum(expected) / 2
    assert (encoder.transform(images.reshape(2, 3)) == (images.reshape(2, 3) > middle)).all()


@pytest.mark.parametrize("pixels", [[-2.5, 0.0, 2.5], [0.0, 1.5, 3.5], [0, 1, 70_000]], ids=str)
def test_pixels_of_no_known_range_are_refused(pixels: list):
    with pytest.raises(DataError, match=r"expected pixels of 0…1, −1…1, .* rescale the images"):
        pixel_range(np.array([pixels]))


def test_images_that_end_at_black_are_refused():
    bytes_as_signed = np.array([[0, 255], [255, 0]], np.uint8).view(np.int8)
    with pytest.raises(DataError, match=r"found -1…0; rescale the images, and give bytes as uint8"):
        pixel_range(bytes_as_signed)


GRAY = np.array([[0, 90, 200], [30, 0, 255], [17, 0, 0], [0, 0, 0]], np.uint8)


@pytest.mark.parametrize(
    ("trained", "later", "found"),
    [
        (GRAY, GRAY > 100, "0 to 1"),
        (GRAY, (GRAY > 100).astype(float), "0 to 1"),
        (GRAY, GRAY / 255, "0 to 1"),
        (GRAY, GRAY // 16, "0 to 15"),
        (GRAY * 257.0, GRAY, "0 to 255"),
        (GRAY / 127.5 - 1, GRAY / 255, "0 to 1"),
    ],
    ids=["booleans", "0 and 1", "shares", "0 to 16", "bytes for 16 bits", "shares for signs"],
)
def test_images_on_another_scale_than_in_training_are_refused(trained, later, found):
    encoder = BitColumns.fit_images(trained)
    for made in (encoder, BitColumns.from_dict(encoder.to_dict())):
        assert (made.transform(trained) == (GRAY > 127)).all()
        with pytest.raises(DataError, match=f"as in training, found all of them from {found}; "):
            made.transform(later)


def test_dark_images_are_read_where_training_had_some_and_where_they_are_black():
    assert not BitColumns.fit_images(GRAY).transform(GRAY[3:]).any()
    assert not BitColumns.fit_images(GRAY).transform([[0, 0, 17]]).any()
    faint = np.array([[0, 0, 1], [0, 90, 200]], np.uint8)
    assert not BitColumns.fit_images(faint).transform([[1, 0, 1]]).any()


def test_columns_of_bits_may_be_all_alike():
    signs = BitColumns.fit([[-1, 1], [1, -1]], *SIGNS)
    assert signs.transform([[1, 1], [1, 1]]).all()


def test_constant_bits_are_named_and_kept():
    encoder = fit_encoder(np.array([[0, 1, 1], [1, 1, 0]]))
    assert isinstance(encoder, BitColumns)
    assert [str(note) for note in encoder.account] == [
        "x0 to x2: bits, 3 bits; the same in every row: 'x1'"
    ]
    assert BitColumns.from_dict(encoder.to_dict()) == encoder
    with pytest.raises(DataError, match="'x1', row 2: expected a number from 0 to 1 as in tr"):
        encoder.transform([[0, 1, 1], [0, 3, 1]])


@given(
    ends=st.sampled_from(WHOLE_PIXELS),
    cuts=st.integers(1, MOST_CUTS),
    columns=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_column_has_a_bit_for_every_cut_at_equal_steps(ends, cuts, columns, seed):
    low, high = map(int, ends)
    pixels = np.random.default_rng(seed).integers(low, high + 1, (9, columns))
    encoder = BitColumns.fit(pixels, low, high, cuts)
    assert BitColumns.from_dict(encoder.to_dict()) == encoder
    bits = encoder.transform(pixels)
    assert bits.shape == (9, len(encoder.bit_names)) == (9, cuts * columns)
    for column in range(columns):
        mine = bits[:, encoder.spans[column]]
        above = [
            [(cuts + 1) * (x - low) > (high - low) * cut for cut in range(1, cuts + 1)]
            for x in pixels[:, column].tolist()
        ]
        assert mine.tolist() == np.array(above, int).tolist()
        same = bool((mine == mine[:1]).all())
        assert (encoder.names[column] in encoder.constant) == same


def test_bits_of_gray_pixels_are_named_by_their_cuts():
    encoder = BitColumns.fit([[0, 10], [255, 20]], 0, 255, 3)
    assert [str(note) for note in encoder.account] == [
        "x0 to x1: bits, 6 bits; 3 per column, every 63.75 from 0 to 255; "
        "the same in every row: 'x1'"
    ]
    assert encoder.bit_names[:4] == ("x0>63.75", "x1>63.75", "x0>127.5", "x1>127.5")
    older = {key: value for key, value in encoder.to_dict().items() if key != "cuts"}
    assert BitColumns.from_dict(older).cuts == 1
    for cuts in (0, MOST_CUTS + 1):
        with pytest.raises(DataError, match="malformed bit columns"):
            BitColumns.from_dict({**older, "cuts": cuts})
        with pytest.raises(ValueError, match="cuts must be from 1 to 255"):
            BitColumns.fit([[0, 10]], 0, 255, cuts)


def test_rows_without_weight_do_not_count():
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [9.0, 9.0]])
    weight = np.array([1.0, 2.0, 1.0, 0.0])
    assert fit_encoder(rows, weight) == TableEncoder.fit(rows[:3], weight=weight[:3])


def test_text_in_columns_of_bits_is_read_as_any_text():
    code = BitColumns(("x",), 0.0, 1.0)
    cells = np.array([" 1\t", "0.4", "true", "FALSE", True, 0], object)
    assert code.transform({"x": cells})[:, 0].tolist() == [1, 0, 1, 0, 1, 0]
    for text in ("\u00a01", "1\n", "0_1", "١", "yes"):
        with pytest.raises(DataError, match=r"column 'x': expected numbers as in training, found"):
            code.transform({"x": [text]})
