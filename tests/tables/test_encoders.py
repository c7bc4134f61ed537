import json
import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.errors import DataError, DataWarning
from vitrail.tables.cells import as_category, is_missing
from vitrail.tables.columns import ColumnCode
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.spelling import as_number, numeral


def named_bits(encoder: TableEncoder, table: object) -> list[set[str]]:
    """The names of the bits that are on, a set for each row."""
    bits = encoder.transform(table)
    return [{encoder.bit_names[i] for i in np.flatnonzero(row)} for row in bits]


def through_json(encoder: TableEncoder) -> TableEncoder:
    return TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict(), allow_nan=False)))


# What columns become.


def test_words_become_one_bit_per_category():
    encoder = TableEncoder.fit({"odor": ["n", "a", "f", "n"]})
    assert encoder.bit_names == ("odor=a", "odor=f", "odor=n")
    assert encoder.transform({"odor": ["n", "a", "f"]}).tolist() == [
        [0, 0, 1],
        [1, 0, 0],
        [0, 1, 0],
    ]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([0, 1, 1], ("x=0", "x=1")),
        ([-1, 1, 1], ("x=-1", "x=1")),
        ([False, True, True], ("x=0", "x=1")),
        (["False", "true", "TRUE"], ("x=0", "x=1")),
        (["0", "1", "1.0"], ("x=0", "x=1")),
        ([2.5, 7.25, 7.25], ("x=2.5", "x=7.25")),
        (["n", "y", "y"], ("x=n", "x=y")),
    ],
    ids=str,
)
def test_two_values_become_a_pair_of_bits(values: list, names: tuple):
    encoder = TableEncoder.fit({"x": values})
    assert encoder.bit_names == names
    assert encoder.transform({"x": values}).tolist() == [[1, 0], [0, 1], [0, 1]]
    single = TableEncoder.fit({"x": values}, pairs=False)
    assert single.transform({"x": values}).tolist() == [[0], [1], [1]]


def test_few_whole_numbers_are_read_as_codes_and_as_an_order():
    encoder = TableEncoder.fit({"chest": ["1", "2", "4"]})
    assert encoder.bit_names == ("chest=1", "chest=2", "chest=4", "chest>1.5", "chest>3")
    assert named_bits(encoder, {"chest": [4, 2, 1]}) == [
        {"chest=4", "chest>1.5", "chest>3"},
        {"chest=2", "chest>1.5"},
        {"chest=1"},
    ]


def test_many_numbers_become_a_thermometer_at_the_quantiles():
    encoder = TableEncoder.fit({"age": np.arange(80)}, thresholds=3)
    assert encoder.bit_names == ("age>19.5", "age>39.5", "age>59.5")
    rising = encoder.transform({"age": [19, 20, 40, 60]})
    assert rising.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_thresholds_of_two_bits_and_what_is_left_without_the_second():
    table = {"age": [*range(80), "", *["far"] * 9], "chest": [1, 2, 4] * 30}
    encoder = TableEncoder.fit(table, thresholds=2, both=True)
    rows = {"age": [10, 30, "far", ""], "chest": [1, 1, 1, 1]}
    ages = ("age=far", "age>19.5", "age>39.5", "age<=19.5", "age<=39.5", "age missing")
    assert encoder.bit_names[:6] == ages
    bits = encoder.transform(rows)
    assert bits[:, 1:5].tolist() == [[0, 0, 1, 1], [1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    fewer, left = encoder.one_sided()
    assert fewer.columns == TableEncoder.fit(table, thresholds=2).columns
    assert (fewer.transform(rows) == bits[:, left]).all()


def test_a_value_that_fills_many_quantiles_leaves_its_thresholds_to_the_rest():
    gains = np.concatenate([np.zeros(60), np.arange(1, 41)])
    encoder = TableEncoder.fit({"gain": gains}, thresholds=4)
    assert encoder.bit_names == ("gain>0.5", "gain>10.5", "gain>20.5", "gain>30.5")


def test_thresholds_are_short_decimals_between_the_values():
    encoder = TableEncoder.fit({"x": ["0.1", "0.2", "0.3000001", "0.3000002"]})
    assert encoder.bit_names == ("x>0.15", "x>0.25", "x>0.30000015")


def test_columns_without_information_become_no_bits_and_are_named():
    table = {
        "": list(range(40)),
        "same": ["p"] * 40,
        "one": [7] * 40,
        "none": ["", "?"] * 20,
        "id": [f"row{i}" for i in range(40)],
        "x": [0, 1] * 20,
    }
    with pytest.warns(DataWarning, match="^column 1 has no name and is left out; name it to learn"):
        encoder = TableEncoder.fit(table)
    assert encoder.bit_names == ("x=0", "x=1")
    assert tuple(one.name for one in encoder.account if not one.bits) == (
        "",
        "same",
        "one",
        "none",
        "id",
    )
    assert [str(account) for account in encoder.account] == [
        ": dropped; it has no name",
        "same: dropped; 'p' in every row",
        "one: dropped; 7 in every row",
        "none: dropped, 40 missing; it is empty in every row",
        "id: dropped; 40 different words, hardly one twice",
        "x: numbers, 2 bits",
    ]


def test_the_account_says_what_columns_became():
    table = {
        "few": ["a", "b", "?", "a"] * 30,
        "many": ["a"] * 30 + [f"w{i // 2}" for i in range(90)],
        "cost": [f"{i},5" for i in range(120)],
        "near": np.arange(120) * 1e-9 + 1,
    }
    account = TableEncoder.fit(table, thresholds=3).account
    assert [str(note) for note in account] == [
        "few: words, 3 bits, 30 missing",
        "many: words, 33 bits; 14 rare words share one bit",
        "cost: numbers, 3 bits; decimal commas",
        "near: numbers, 3 bits; held as float64: float32 would merge values that differ",
    ]


def test_a_column_with_very_many_words_keeps_the_frequent_ones():
    words = ["a"] * 5 + ["b"] * 4 + ["c"] * 3 + list("defgh")
    encoder = TableEncoder.fit({"w": words}, max_categories=2)
    assert encoder.bit_names == ("w=a", "w=b", "w other")
    assert named_bits(encoder, {"w": ["a", "c", "never"]}) == [{"w=a"}, {"w other"}, {"w other"}]


def test_frequent_words_among_numbers_get_bits_of_their_own():
    encoder = TableEncoder.fit({"x": [*range(99), *["unknown"] * 30]}, thresholds=1)
    assert encoder.bit_names == ("x=unknown", "x>48.5")
    assert named_bits(encoder, {"x": ["unknown", 98, 0]}) == [{"x=unknown"}, {"x>48.5"}, set()]


def test_a_stray_word_among_numbers_counts_as_missing_and_is_told():
    table = {"x": [*range(199), "five", *range(100)], "y": [0, 1] * 150}
    encoder = TableEncoder.fit(table, thresholds=1)
    assert encoder.bit_names[:2] == ("x>74.5", "x missing")
    assert named_bits(encoder, {"x": ["five", 98], "y": [0, 1]}) == [
        {"x missing", "y=0"},
        {"x>74.5", "y=1"},
    ]
    assert str(encoder.account[0]) == ("x: numbers, 2 bits; words read as missing in 1 row: 'five'")
    few = TableEncoder.fit({"x": [*[1, 2, 3] * 99, "five"]})
    assert few.bit_names == ("x=1", "x=2", "x=3", "x>1.5", "x>2.5", "x missing")


def test_numbers_among_mostly_words_are_words():
    encoder = TableEncoder.fit({"x": ["1", "A1", "B4", "1"]})
    assert encoder.bit_names == ("x=1", "x=A1", "x=B4")
    assert named_bits(encoder, {"x": [1.0]}) == [{"x=1"}]


# Missing values.


@pytest.mark.parametrize("nothing", ["", "  ", "?", "NA", "n/a", "NaN", "null", "None", None])
def test_missing_in_training_is_a_bit_of_its_own(nothing: str | None):
    table = {"n": ["1", "2", nothing], "w": ["u", nothing, "v"]}
    encoder = TableEncoder.fit(table)
    assert encoder.bit_names == ("n=1", "n=2", "n missing", "w=u", "w=v", "w missing")
    assert named_bits(encoder, table) == [
        {"n=1", "w=u"},
        {"n=2", "w missing"},
        {"n missing", "w=v"},
    ]


def test_nan_and_pandas_na_are_missing():
    frame = pd.DataFrame(
        {
            "float": [0.0, 1.0, math.nan],
            "integer": pd.array([0, 1, None], dtype="Int64"),
            "text": pd.array(["a", "b", None], dtype="string"),
        }
    )
    last = named_bits(TableEncoder.fit(frame), frame)[-1]
    assert last == {"float missing", "integer missing", "text missing"}


def test_missing_only_at_predict_time_is_the_median_or_an_unknown_word():
    encoder = TableEncoder.fit({"n": [1, 2, 2, 3], "w": ["a", "b", "a", "b"]})
    assert named_bits(encoder, {"n": ["?"], "w": ["?"]}) == named_bits(
        encoder, {"n": [2], "w": ["never seen"]}
    )


def test_one_value_and_missing_make_two_bits():
    encoder = TableEncoder.fit({"x": ["5", "", "5"], "y": ["a", "", "a"]})
    assert encoder.bit_names == ("x=5", "x missing", "y=a", "y missing")


# Values not seen in training.


def test_an_unseen_category_sets_no_bit():
    encoder = TableEncoder.fit({"w": ["a", "b"]})
    assert encoder.transform({"w": ["c", "7", 7.5]}).sum() == 0


def test_numbers_out_of_range_saturate():
    encoder = TableEncoder.fit(
        {"x": np.arange(50), "bit": [0, 1] * 25, "few": [1, 2, 3, 4, 5] * 10}
    )
    low, high = encoder.transform({"x": [0, 49], "bit": [0, 1], "few": [1, 5]})
    below, above = encoder.transform({"x": [-1e9, "inf"], "bit": [-1, 9], "few": [-3, 7]})
    assert below.tolist() == low.tolist()
    assert above.tolist() == high.tolist()


def test_a_new_word_among_numbers_counts_as_missing_with_a_warning_that_names_the_cell():
    encoder = TableEncoder.fit({"age": [30, 40, 50], "size": [1, "?", 3]})
    told = r"column 'age', row 2: expected a number, found 'forty' \(and 2 cells like it\); read as"
    with pytest.warns(DataWarning, match=told) as caught:
        found = named_bits(encoder, {"age": ["30", "forty", "forty"], "size": [3, "big", 1]})
    assert len(caught) == 1
    assert found[1] == {*named_bits(encoder, {"age": [40], "size": ["?"]})[0]}


# Which tables are taken.


def test_columns_are_found_by_name_and_further_ones_ignored():
    table = {"a": [0, 1, 2], "b": ["u", "v", "w"]}
    encoder = TableEncoder.fit(table)
    shuffled = {"extra": [[], [], []], "b": table["b"], "a": table["a"]}
    assert (encoder.transform(shuffled) == encoder.transform(table)).all()


def test_arrays_frames_and_mappings_give_the_same_bits():
    array = np.array([[0, 1.5, 3], [1, 2.5, 3], [1, 9.5, 4]])
    frame = pd.DataFrame(array, columns=["x0", "x1", "x2"])
    encoder = TableEncoder.fit(array)
    assert encoder == TableEncoder.fit(frame) == TableEncoder.fit(frame.to_dict("list"))
    assert (encoder.transform(array) == encoder.transform(frame)).all()


def test_an_array_is_matched_by_place_past_dropped_columns():
    frame = pd.DataFrame({"same": [1, 1], "name": [0, 1]})
    encoder = TableEncoder.fit(frame)
    assert (encoder.transform(frame.to_numpy()) == encoder.transform(frame)).all()


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({}, "has no columns to learn from; add some beside the labels"),
        ({"a": []}, "at least two rows to learn from, got 0"),
        ({"a": ["x"]}, "at least two rows to learn from, got 1"),
        ({"a": [0, 1], "b": [0, 1, 2]}, "'b' has 3 rows, those before it 2"),
        ({"a": ["k", "k"], "b": [3, 3]}, r"none of the columns tells .* \(a: 'k' in every row\)"),
        ({"d": [f"2020-01-{i:02} 10:30" for i in range(1, 40)]}, "'d' holds dates or times"),
        ({"d": pd.Series(pd.date_range("2020", periods=9))}, "such as year, month, weekday"),
        (pd.DataFrame([[0, 1], [1, 0]], columns=["a", "a"]), "'a' occurs more than once"),
        (np.zeros(3), "2-D array"),
        (pl.Series([1, 2]), "the Series cannot be read as a table"),
        ({"a": 5}, "'a' must hold a value per row"),
        ({"\ud800": [1, 2]}, "cannot be written as UTF-8; rename it"),
        ({"a": [[1], [2, 3]]}, "'a' must hold a value per row"),
        ({"a": [[1], [2]]}, "'a' must hold a value per row"),
        ({"a": np.array([[1], {2}], object)}, "'a' holds values of type list"),
        ({"a": np.array([1, (2,)], object)}, "'a' holds values of type tuple"),
        ({"a": np.array(["2020-01-01", "2021-01-01"], "M8[D]")}, "datetime64"),
        ({"a": np.array([1j, 2j])}, "complex"),
    ],
    ids=str,
)
def test_a_table_that_cannot_be_learned_from_says_why(table: object, complaint: str):
    with pytest.raises(DataError, match=complaint):
        TableEncoder.fit(table)


def test_an_absent_column_is_named():
    encoder = TableEncoder.fit({"a": [0, 1], "b": [0, 1]})
    with pytest.raises(DataError, match="column 'b' not found"):
        encoder.transform({"a": [0]})
    with pytest.raises(DataError, match="expected 2 columns as in training, got 3"):
        encoder.transform(np.zeros((1, 3)))


# State.


def test_state_survives_json():
    table = {
        "word": ["a", "b", "?", "a"],
        "few": [1, 2, 3, 3],
        "real": [0.1, 0.25, "", 7e300],
        "é\n": [1, 0, 1, 0],
    }
    encoder = TableEncoder.fit(table)
    assert through_json(encoder) == encoder


def damaged_states() -> list[object]:
    good = TableEncoder.fit({"x": [0.5, 1.5, 2.5, "?"], "w": list("abca")}).to_dict()
    first = good["columns"][0]

    def with_column(**changes: object) -> dict:
        return {**good, "columns": [{**first, **changes}, good["columns"][1]]}

    return [
        None,
        [],
        "__import__('os')",
        {},
        {**good, "columns": []},
        {**good, "columns": {}},
        {**good, "columns": [first, first]},
        {**good, "names": ["x"]},
        {**good, "names": ["x", "w", "w"]},
        {**good, "names": ["w", "x"]},
        {**good, "more": 1},
        {**good, "columns": [{k: v for k, v in first.items() if k != "typical"}]},
        with_column(more=1),
        with_column(name=1),
        with_column(numeric=1),
        with_column(numeric=False),
        with_column(categories="ab"),
        with_column(categories=["a", "a"]),
        with_column(categories=[1]),
        with_column(thresholds=[2.0, 1.0]),
        with_column(thresholds=[1.0, math.nan]),
        with_column(thresholds=[10**400]),
        with_column(thresholds=["1"]),
        with_column(thresholds=[True]),
        with_column(values=[1.0]),
        with_column(thresholds=[], missing=False),
        with_column(typical=math.inf),
        with_column(missing="yes"),
        with_column(held_as="float16"),
        with_column(decimal=";"),
        with_column(unit=5),
        with_column(strays=[1]),
        {**good, "account": [{}]},
        {**good, "account": good["account"][:1]},
        {**good, "account": [{**good["account"][0], "bits": -1}, good["account"][1]]},
        {**good, "account": [{**good["account"][0], "kept_as": "?"}, good["account"][1]]},
    ]


@pytest.mark.parametrize("state", damaged_states(), ids=lambda state: str(state)[:60])
def test_malformed_state_is_refused_in_one_sentence(state: object):
    with pytest.raises(DataError, match="malformed") as caught:
        TableEncoder.from_dict(state)
    assert "\n" not in str(caught.value)


# Properties.

CELL = st.one_of(
    st.sampled_from(["", "?", "NA", "a", "b", "0", "1", "2.5", "-1e300", "inf", "1_0", "٣", " a "]),
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
)


def columns_of(rows: int, width: int) -> st.SearchStrategy[dict]:
    column = st.lists(CELL, min_size=rows, max_size=rows)
    return st.fixed_dictionaries({f"c{i}": column for i in range(width)})


def is_word(cell: object, code: ColumnCode) -> bool:
    number = numeral(cell).read(code.spelling) if isinstance(cell, str) else as_number(cell)
    return not is_missing(cell) and math.isnan(number)


def fitted(table: dict, **settings: Any) -> TableEncoder | None:
    try:
        return TableEncoder.fit(table, **settings)
    except DataError:
        return None


@given(st.data(), st.integers(2, 30), st.integers(1, 12), st.integers(1, 6))
def test_bits_are_bits_and_state_is_faithful(
    data: st.DataObject, rows: int, thresholds: int, categories: int
):
    table = data.draw(columns_of(rows, 2))
    encoder = fitted(table, thresholds=thresholds, max_categories=categories)
    if encoder is None:
        return
    bits = encoder.transform(table)
    assert bits.shape == (rows, len(encoder.bit_names))
    assert bits.dtype == np.int8
    assert set(np.unique(bits)) <= {0, 1}
    assert (bits.min(axis=0) < bits.max(axis=0)).all(), "a bit that never changes says nothing"
    assert (through_json(encoder).transform(table) == bits).all()


@given(st.data(), st.integers(2, 20))
def test_unseen_values_never_fail_and_words_among_numbers_warn(data: st.DataObject, rows: int):
    encoder = fitted(data.draw(columns_of(rows, 2)))
    if encoder is None:
        return
    fresh = data.draw(columns_of(5, 2))
    numeric = [code for code in encoder.columns if code.numeric]
    strange = any(
        is_word(cell, c) and as_category(cell) not in {*c.categories, *c.strays}
        for c in numeric
        for cell in fresh[c.name]
    )
    expected = pytest.warns(DataWarning, match="expected a number") if strange else nullcontext()
    with expected:
        assert set(np.unique(encoder.transform(fresh))) <= {0, 1}


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=60), st.floats(allow_nan=False))
def test_a_thermometer_rises_with_the_number(numbers: list[float], more: float):
    encoder = fitted({"x": numbers}, thresholds=5)
    if encoder is None:
        return
    marks = [i for i, name in enumerate(encoder.bit_names) if ">" in name]
    ordered = sorted([*numbers, more])
    bits = encoder.transform({"x": ordered})[:, marks].astype(int)
    assert (np.diff(bits, axis=0) >= 0).all()
    assert (np.diff(bits, axis=1) <= 0).all()
    assert len(marks) <= 9  # five thresholds, or those between at most ten whole numbers


# How numbers are held when they are compared.


def held(values: Any, **settings: Any) -> tuple[str, tuple[float, ...]]:
    (code,) = TableEncoder.fit({"x": values}, **settings).columns
    return code.held_as, code.thresholds


def test_whole_numbers_are_int32_others_float32_and_float64_where_that_would_merge():
    assert held([1, 2, 30]) == ("int32", (1.5, 20))
    assert held([2**24, 2**24 + 1, 2**24 + 2]) == ("int32", (2**24 + 0.5, 2**24 + 1.5))
    assert held([0.1, 0.3, 0.5, 0.7]) == ("float32", (0.2, 0.4, 0.6))
    assert held([0.5, 2**24, 2**24 + 1])[0] == "float64"
    assert held([2**40, 2**40 + 2**30])[0] == "float32"
    assert held([2**40, 2**40 + 1])[0] == "float64"
    close = [*np.arange(100) / 4, 24.75 + 1e-9]  # no threshold parts the two
    assert held(close, thresholds=3)[0] == "float32"


def test_cells_are_rounded_to_the_type_before_they_are_compared():
    single = TableEncoder.fit({"x": [0.1, 0.3, 0.5]})
    cuts = single.columns[0].thresholds
    as_text = single.transform({"x": [str(cut) for cut in cuts]})
    assert (as_text == single.transform({"x": np.array(cuts, np.float32)})).all()
    assert (as_text == single.transform({"x": np.array(cuts) + 1e-12})).all()


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=12, unique=True), st.booleans())
def test_thresholds_part_training_values_also_when_rounded(values: list[float], is_whole: bool):
    if is_whole:
        values = sorted({float(round(max(-1e9, min(1e9, value)))) for value in values})
    if len(values) < 2:
        return
    encoder = fitted({"x": values}, thresholds=20, pairs=False)
    if encoder is None:
        return  # infinities may be one value
    (code,) = encoder.columns
    numbers = np.unique(np.nan_to_num(values))
    bits = encoder.transform({"x": numbers})
    assert len({tuple(row) for row in bits.tolist()}) == len(numbers)
    if code.held_as != "float64":
        kind: Any = np.int32 if code.held_as == "int32" else np.float32
        most = np.iinfo(kind).max if code.whole else np.finfo(kind).max
        kept = np.clip(numbers, -most, most).astype(kind)
        cuts = np.array(code.thresholds)
        cuts = (np.floor(cuts) if code.whole else cuts).astype(kind)
        device = (kept[:, None] > cuts[None, :]).astype(int)
        marks = [i for i, name in enumerate(encoder.bit_names) if ">" in name]
        if marks:
            assert (device == bits[:, marks]).all()


def test_an_encoder_of_an_older_file_compares_as_it_did():
    state = TableEncoder.fit({"x": [0.1, 0.2, 0.3]}).to_dict()
    state.pop("account")
    for field in ("held_as", "decimal", "unit", "strays"):
        del state["columns"][0][field]
    old = TableEncoder.from_dict(state)
    assert old.columns[0].held_as == "float64"
    assert old.transform({"x": [0.25, 0.25 + 1e-12]}).tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("columns", "rows", "expected"),
    [
        (2, 500, 32),
        (2, 2000, 64),
        (5, 500, 16),
        (5, 2000, 32),
        (20, 1999, 12),
        (20, 2000, 25),
        (100, 100, 8),
    ],
)
def test_few_columns_and_many_rows_afford_many_thresholds(columns: int, rows: int, expected: int):
    numbers = np.random.default_rng(0).normal(size=(rows, columns))
    assert len(TableEncoder.fit(numbers).columns[0].thresholds) == expected


def test_the_encoder_takes_as_many_thresholds_as_it_can_afford():
    numbers = np.random.default_rng(0).normal(size=(2_000, 8))
    assert len(TableEncoder.fit(numbers).bit_names) == 8 * 32
    assert len(TableEncoder.fit(numbers, thresholds=5).bit_names) == 8 * 5
