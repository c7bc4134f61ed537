"""Encoders that read only some of their bits say of these what they said before."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import TableEncoder

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({
    "number": RNG.normal(size=60).round(2),
    "few": RNG.integers(0, 4, 60),
    "two": RNG.integers(0, 2, 60),
    "hole": np.where(RNG.random(60) < 0.2, np.nan, RNG.normal(size=60)),
    "word": RNG.choice(list("abcd"), 60),
    "gap": RNG.choice(np.array(["x", "y", "z", None], dtype=object), 60),
    "both": np.where(RNG.random(60) < 0.3, "far", RNG.normal(size=60).round(2).astype(str)),
    "rare": [f"w{i}" for i in RNG.geometric(0.3, 60)],
    "flag": np.where(RNG.random(60) < 0.5, np.nan, 1.0),
    "holed": [None if i > 4 else f"w{i}" for i in RNG.geometric(0.2, 60)],
})  # fmt: skip
LATER = pd.DataFrame({
    "number": [np.nan, -9e9, 9e9, 0],
    "few": [np.nan, -5, 99, 1.5],
    "two": [np.nan, 0, 1, 7],
    "hole": [np.nan, -1, 0, 1],
    "word": ["e", "a", None, "d"],
    "gap": [None, "q", "x", "z"],
    "both": [None, "far", "0.5", "9"],
    "rare": ["w1", "w999", None, "w2"],
    "flag": [None, 1.0, 0.0, 2.0],
    "holed": ["w1", None, "w999", "w2"],
})  # fmt: skip
ENCODER = TableEncoder.fit(TABLE, thresholds=5, max_categories=3)


@given(st.sets(st.sampled_from(ENCODER.selectable), min_size=1))
def test_bits_that_are_left_keep_what_they_say(bits):
    fewer, left = ENCODER.only(bits)
    assert bits <= {*left}
    assert len(left) == len(fewer.bit_names)
    for rows in (TABLE, LATER):
        assert (fewer.transform(rows) == ENCODER.transform(rows)[:, left]).all()
    assert TableEncoder.from_dict(fewer.to_dict()) == fewer
    assert [note.bits for note in fewer.account if note.bits] == [
        len(code.bit_names) for code in fewer.columns
    ]


def test_what_is_not_asked_for_is_left_out():
    names = ENCODER.bit_names
    wanted = [i for i in ENCODER.selectable if names[i].startswith(("number>", "word=b", "two="))]
    fewer, left = ENCODER.only(wanted)
    assert left == wanted
    assert [code.name for code in fewer.columns] == ["number", "two", "word"]
    assert fewer.dropped == ("few", "hole", "gap", "both", "rare", "flag", "holed")


@given(st.sets(st.integers(0, 5), min_size=1), st.integers(1, 3))
def test_columns_of_bits_are_left_whole(columns, cuts):
    pixels = RNG.integers(0, 256, (20, 6))
    encoder = BitColumns.fit(pd.DataFrame(pixels), 0, 255, cuts)
    fewer, left = encoder.only(columns)
    every = encoder.transform(pd.DataFrame(pixels))[:, left]
    for rows in (pd.DataFrame(pixels), pd.DataFrame(pixels)[sorted(columns)], pixels):
        assert (fewer.transform(rows) == every).all()
    assert BitColumns.from_dict(fewer.to_dict()) == fewer
