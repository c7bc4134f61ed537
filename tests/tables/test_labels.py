import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.errors import DataError
from vitrail.tables.cells import is_missing
from vitrail.tables.labels import NAMES_OF_NOTHING, LabelCoder, check_target, require_labels
from vitrail.tables.spelling import BLANKS, stripped


def is_no_label(label: object) -> bool:
    return not stripped(label) if isinstance(label, str) else is_missing(label)


def without_blanks(label: object) -> object:
    return stripped(label) if isinstance(label, str) else label


@given(
    st.one_of(
        st.lists(st.text(min_size=1, max_size=3)),
        st.lists(st.integers(-(2**63), 2**63 - 1)),
        st.lists(st.booleans()),
        st.lists(st.floats(allow_nan=False), max_size=20),  # more are amounts
    )
)
def test_labels_come_back_as_they_were(labels: list):
    column = np.empty(len(labels), object)
    column[:] = labels
    nothing_to_learn = len(set(map(without_blanks, labels))) < 2 or any(map(is_no_label, labels))
    if nothing_to_learn:
        with pytest.raises(DataError, match=r"two classes|missing|got none"):
            LabelCoder.fit(column)
        return
    coder = LabelCoder.fit(column)
    numbers = coder.encode(column)
    decoded = coder.decode(numbers).tolist()
    assert list(map(without_blanks, decoded)) == list(map(without_blanks, labels))
    assert set(decoded) <= set(labels)
    assert sorted(set(numbers)) == list(range(len(coder.classes)))
    assert list(coder.classes) == sorted(coder.classes)


@pytest.mark.parametrize(
    "labels",
    [
        ["001", "1", "1.0", "001"],
        np.array([3, 1, 3], np.int32),
        np.array([2**63, 2**64 - 1, 5], np.uint64),
        [True, False],
        [0.5, -1.5],
        np.array(["none", "mild"], object),
        pd.Series(["b", "a"]),
        np.array([np.int64(4), np.int64(3)], object),
    ],
    ids=str,
)
def test_state_survives_json(labels: object):
    coder = LabelCoder.fit(labels)
    again = LabelCoder.from_dict(json.loads(json.dumps(coder.to_dict())))
    assert again == coder
    decoded = again.decode(again.encode(labels))
    assert decoded.tolist() == np.asarray(labels).tolist()
    assert decoded.dtype == coder.decode([0]).dtype


@pytest.mark.parametrize("kind", [object, str])
def test_blanks_around_a_label_make_no_class(kind: type):
    labels = np.array([" lily", "rose", "lily\t", " lily", "\u00a0rose"], kind)
    coder = LabelCoder.fit(labels)
    assert coder.classes == (" lily", "rose", "\u00a0rose")  # the commonest spelling is kept
    assert coder.encode(labels).tolist() == [0, 1, 0, 0, 2]
    assert coder.encode(["lily", BLANKS + "rose" + BLANKS]).tolist() == [0, 1]
    assert LabelCoder.fit(["a ", "b", " none"]).encode(["none", "a"]).tolist() == [0, 1]


def test_one_label_in_two_spellings_is_one_class():
    with pytest.raises(DataError, match="at least two classes, but every label is 'lily'"):
        LabelCoder.fit([" lily", "lily"])


def test_a_class_is_found_by_its_text_in_another_kind_of_file():
    assert LabelCoder.fit(np.array([1, 2])).encode(["2", "1"]).tolist() == [1, 0]
    assert LabelCoder.fit(["1", "2"]).encode(np.array([2.0, 1.0])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        ([], "got none; add rows"),
        (["a", "a"], "at least two classes, but every label is 'a'"),
        (["a", "", "b"], "missing in 1 of 3 rows, first in row 2; fill it in or leave"),
        (["a", "?", None], "missing in 1 of 3 rows, first in row 3"),
        (["a", math.nan, "b"], "missing in 1 of 3 rows, first in row 2"),
        (["a", " \t", "b"], "missing in 1 of 3 rows, first in row 2"),
        ([1.0, math.nan], "missing in 1 of 2 rows"),
        (np.array([1, "a"], object), "mixed types"),
        ([[1, 2]], "one label a row"),
        (np.array(["2020"], "M8[Y]"), "must be text, numbers or booleans"),
        ([[1], [2, 3]], "one label a row"),
        (np.array([print, len], object), "must be text"),
        ([pd.NA, "a", "b"], "missing in 1 of 3 rows, first in row 1"),
        (pd.Categorical(["a", None, "b"]), "missing in 1 of 3 rows, first in row 2"),
        (pd.array(["a", None, "b"], dtype="string"), "missing in 1 of 3 rows"),
        (pd.array([1, None, 2], dtype="Int64"), "missing in 1 of 3 rows"),
        (pd.array([True, None], dtype="boolean"), "missing in 1 of 2 rows"),
        (pd.Series(pd.date_range("2020", periods=3)), "columns of numbers, such as year, month"),
        ([f"{i / 7:.3f}" for i in range(50)], r"holds amounts, such as 0\.143 \(50 different"),
        (np.arange(50) / 4, r"holds amounts, such as 0\.25 .* cut them into ranges"),
        (["a", "\ud800"], "cannot be written as UTF-8"),
        (np.array([1, {2}], object), "must be text, numbers or booleans, got set"),
    ],
    ids=str,
)
def test_labels_that_cannot_be_learned_say_why(labels: object, complaint: str):
    with pytest.raises(DataError, match=complaint):
        LabelCoder.fit(labels)


@pytest.mark.parametrize("kind", [object, str])
def test_words_for_nothing_are_labels_unless_they_stand_in_a_text_file(kind: type):
    labels = np.array(["NA", "nan", "?", "null", "NA"], kind)
    coder = LabelCoder.fit(labels)
    assert coder.decode(coder.encode(labels)).tolist() == labels.tolist()
    with pytest.raises(DataError, match="missing in 5 of 5 rows, first in row 1"):
        require_labels(labels, untyped=True)
    require_labels(np.array(sorted(NAMES_OF_NOTHING), kind), untyped=True)


def test_an_unknown_label_is_named_with_its_row():
    with pytest.raises(DataError, match="label 'c' in row 2 is none of the classes 'a', 'b'"):
        LabelCoder.fit(["a", "b"]).encode(["a", "c"])
    with pytest.raises(DataError, match="label 'c' in line 103"):
        LabelCoder.fit(["a", "b"]).encode(["a", "c"], place=lambda row: f"line {row + 102}")


def test_a_target_needs_rows_and_labels_that_recur():
    check_target(["a", "b", "c"])
    check_target([str(i % 25) for i in range(50)])
    with pytest.raises(DataError, match="columns but no rows; add rows"):
        check_target([])
    with pytest.raises(DataError, match="50 different labels in 50 rows, too few of each"):
        check_target([f"id{i}" for i in range(50)])


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"classes": ["a", "b"]},
        {"classes": ["a"], "kind": "str"},
        {"classes": ["b", "a"], "kind": "str"},
        {"classes": ["a", "a"], "kind": "str"},
        {"classes": ["a", 1], "kind": "object"},
        {"classes": [["a"], ["b"]], "kind": "object"},
        {"classes": ["a", "b"], "kind": "int64"},
        {"classes": [1, 2], "kind": "str"},
        {"classes": [1, 2**70], "kind": "int64"},
        {"classes": [1, 2], "kind": "bool"},
        {"classes": [0.5, math.nan], "kind": "float64"},
        {"classes": ["a", "b"], "kind": "O"},
        {"classes": [1, 2**64], "kind": "uint64"},
        {"classes": [-1, 2], "kind": "uint64"},
        {"classes": ["a", "b"], "kind": "str", "more": 0},
    ],
    ids=str,
)
def test_malformed_state_is_refused_in_one_sentence(state: object):
    with pytest.raises(DataError, match="malformed") as caught:
        LabelCoder.from_dict(state)
    assert "\n" not in str(caught.value)
