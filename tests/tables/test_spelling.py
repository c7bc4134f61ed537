"""Numbers in the spelling of any country are understood, or refused with the column's name."""

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.errors import DataError, DataWarning
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.spelling import PLAIN, Spelling, numeral

NAN = math.nan
OTHER_SPACES = "\n\r\x0b\x0c\x1c\x1f\x85\u00a0\u2003\u2009\u202f\u3000"


@pytest.mark.parametrize(
    ("text", "point", "comma", "unit"),
    [
        ("1.234", 1.234, 1234, ""),
        ("1,234", 1234, 1.234, ""),
        ("1,234.50", 1234.5, NAN, ""),
        ("1.234,50", NAN, 1234.5, ""),
        ("1,234,567", 1234567, NAN, ""),
        ("1.234.567", NAN, 1234567, ""),
        ("12,5", NAN, 12.5, ""),
        ("1,2345", NAN, 1.2345, ""),
        ("0.123", 0.123, NAN, ""),
        ("0,123", NAN, 0.123, ""),
        ("-$5.00", -5, NAN, "$"),
        ("$ -5", -5, -5, "$"),
        ("5,00 €", NAN, 5, "€"),
        ("12 %", 12, 12, "%"),
        ("5 kg", 5, 5, "kg"),
        ("80 km/h", 80, 80, "km/h"),
        ("20°C", 20, 20, "°C"),
        ("1 234,5", NAN, 1234.5, ""),
        ("1\u202f234", 1234, 1234, ""),
        ("1'234.50", 1234.5, NAN, ""),
        ("−3", -3, -3, ""),
        ("1,5e3", NAN, 1500, ""),
        ("true", 1, 1, ""),
        (" \t5\t ", 5, 5, ""),
        ("12\u00a0%", 12, 12, "%"),
        *((f"{space}5{end}", NAN, NAN, "") for space in OTHER_SPACES for end in ("", space)),
        *((f"5{space}", NAN, NAN, "") for space in OTHER_SPACES),
        ("fal\u017fe", NAN, NAN, ""),
        *((text, NAN, NAN, "") for text in ("A1", "1.2.3", "1 23", "3:45", "(5)", "<5", "--5")),
        *((text, NAN, NAN, "") for text in ("", "-", "$", "12,34,56", "1_000", "٣", "$5 kg")),
    ],
)
def test_a_cell_has_the_readings_it_has(text: str, point: float, comma: float, unit: str):
    found = numeral(text)
    np.testing.assert_equal((found.point, found.comma, found.unit), (point, comma, unit))


def spelled(number: float, style: str) -> str:
    american = f"{number:,.2f}"
    if style == "german":
        return american.translate({ord(","): ".", ord("."): ","})
    return {"plain": f"{number:.2f}", "american": american, "dollars": f"${number:.2f}"}[style]


def column(seed: int, styles: dict[str, float], rows: int = 400) -> tuple[list[str], np.ndarray]:
    """Numbers spelled in several styles, each with its share of the rows."""
    rng = random.Random(seed)
    numbers = [round(rng.uniform(1, 9_999), 2) for _ in range(rows)]
    chosen = rng.choices(list(styles), list(styles.values()), k=rows)
    return [spelled(*pair) for pair in zip(numbers, chosen, strict=True)], np.array(numbers)


@pytest.mark.parametrize(
    "styles",
    [
        {"german": 1},
        {"american": 1},
        {"dollars": 1},
        {"plain": 95, "german": 5},
        {"plain": 95, "dollars": 5},
        {"plain": 95, "american": 5},
        {"american": 50, "dollars": 50},
        {"german": 50, "dollars": 50},
    ],
    ids=str,
)
def test_numbers_in_any_spelling_are_read_right(styles: dict[str, float]):
    texts, numbers = column(0, styles)
    truth = TableEncoder.fit({"price": numbers}, thresholds=7)
    encoder = TableEncoder.fit({"price": texts}, thresholds=7)
    assert [code.thresholds for code in encoder.columns] == [c.thresholds for c in truth.columns]
    bits = truth.transform({"price": numbers})
    assert (encoder.transform({"price": texts}) == bits).all()
    again = TableEncoder.from_dict(encoder.to_dict())
    assert (again.transform({"price": texts}) == bits).all()
    assert again == encoder


GROUPED = Spelling(grouped=True)
THOUSANDS = ["1,234", "2,345", "12,500", "7,250"] * 5


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"x": THOUSANDS}, "'x': '1,234' may mean 1234 or 1.234; write it without a comma"),
        ({"x": [*THOUSANDS, "5678"]}, "'x': '1,234' may mean"),
        ({"x": [*THOUSANDS, "12.5", "3,5"]}, "'x' spells numbers in two ways, .* '1,234' may"),
        ({"x": [*THOUSANDS, "1.250"]}, "'x' spells numbers in two ways"),
        ({"x": ["5%", "7%", "8"] * 9}, "'x' mixes numbers such as '5%' and '8'"),
        ({"x": ["$5", "€7", "8"] * 9}, "'x' mixes numbers such as '\\$5' and '€7'"),
        ({"x": [*map(str, range(60)), "1.2.3"]}, "'x', row 61: '1.2.3' is no number as the"),
        ({"x": [*map(str, range(60)), *["(5.00)"] * 30]}, r"'x', row 61: '\(5.00\)' is no number"),
        ({"x": [*map(str, range(60)), "<5"]}, "row 61: '<5' is no number as the others"),
        ({"x": [*map(str, range(60)), "5*"]}, r"row 61: '5\*' is no number as the others"),
        (
            {"x": [*map(str, range(900)), *(f"no {chr(97 + i % 26)}{i}" for i in range(40))]},
            "'x' holds numbers and 40 different words, such as 'no a0'",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_told_is_refused_with_the_name_of_the_column(columns: Any, complaint: str):
    with pytest.raises(DataError, match=complaint):
        TableEncoder.fit(columns)


def readings(columns: dict[str, list[str]]) -> list[Spelling]:
    return [code.spelling for code in TableEncoder.fit(columns).columns]


def test_doubtful_numbers_are_read_as_the_rest_of_the_column_is():
    assert readings({"x": [*THOUSANDS, "12.5"]}) == [GROUPED]
    assert readings({"x": [*THOUSANDS, "12,5"]}) == [Spelling(",")]
    assert readings({"x": [*THOUSANDS, "1,234,567"]}) == [GROUPED]
    assert readings({"x": [*THOUSANDS, "999", "85"]}) == [GROUPED]


def test_doubtful_numbers_are_read_as_the_rest_of_the_table_is():
    doubtful = {"x": THOUSANDS, "y": ["1.234", "2.345", "5.250", "9.750"] * 5}
    commas, points = ["0,5", "12,75", "3,1", "8,9"] * 5, ["0.5", "12.75", "3.1", "8.9"] * 5
    dotted = Spelling(",", grouped=True)
    assert readings({**doubtful, "z": commas}) == [Spelling(","), dotted, Spelling(",")]
    assert readings({**doubtful, "z": points}) == [GROUPED, PLAIN, PLAIN]
    assert readings({"y": doubtful["y"]}) == [PLAIN]


POINTS, COMMAS = ["4.123", "0.512", "12.5"] * 9, ["4,123", "0,512", "12,5"] * 9
AMERICAN, GERMAN = ["1,234.5", "2,345", "12.5"] * 9, ["1.234,5", "2.345", "12,5"] * 9
WHOLE = ["5", "17", "850"] * 9


@pytest.mark.parametrize(
    ("trained", "later", "complaint"),
    [
        (POINTS, ["0,512", "4,123"], "'x', row 2: '4,123' may mean 4123 or 4.123, and training"),
        (POINTS, ["4,123"], "'x', row 1: '4,123' may mean .* had no number written so; write"),
        (POINTS, ["4.123", "12,5"], "'4.123' may mean 4.123 or 4123, and training had no number "),
        (COMMAS, ["4.123"], "'x', row 1: '4.123' may mean 4.123 or 4123, and training had no"),
        (COMMAS, ["0.512", "4.123"], "'4.123' may mean"),
        (AMERICAN, ["12,5", "1,234"], "'1,234' may mean .* such as '12,5' in column 'x'; write"),
        (GERMAN, ["1.234", "12.5"], "'1.234' may mean .* such as '12.5' in column 'x'; write"),
        (WHOLE, ["1,234"], "'1,234' may mean 1234 or 1.234, and training had no number written"),
        (WHOLE, ["12,5", "4.123"], "'4.123' may mean .* such as '12,5' in column 'x'; write"),
        (["0.5", "0,7", "9"] * 9, ["4,123"], "'4,123' may mean 4123 or 4.123, and training had"),
    ],
)
def test_numbers_that_training_does_not_tell_how_to_read_are_refused(trained, later, complaint):
    encoder = TableEncoder.fit({"x": trained})
    for made in (encoder, TableEncoder.from_dict(encoder.to_dict())):
        made.transform({"x": trained})
        with pytest.raises(DataError, match=complaint):
            made.transform({"x": later})


@pytest.mark.parametrize(
    ("trained", "later", "numbers"),
    [
        (POINTS, ["0,512", "12,5", "4.12"], [0.512, 12.5, 4.12]),
        (POINTS, ["4.123", "1,234.5"], [4.123, 1234.5]),
        (COMMAS, ["4,123", "0,512"], [4.123, 0.512]),
        (COMMAS, ["0.512", "7"], [0.512, 7]),
        (AMERICAN, ["1,234", "4.123"], [1234, 4.123]),
        (GERMAN, ["1.234", "4,123"], [1234, 4.123]),
        (WHOLE, ["12,5", "7.25"], [12.5, 7.25]),
    ],
)
def test_numbers_are_read_as_in_training(trained, later, numbers):
    encoder = TableEncoder.fit({"x": trained})
    assert (encoder.transform({"x": later}) == encoder.transform({"x": numbers})).all()


def test_another_column_tells_that_a_table_is_written_otherwise_than_in_training():
    encoder = TableEncoder.fit({"x": POINTS, "y": POINTS})
    with pytest.raises(DataError, match=r"'x', row 2: '4.123' may mean .* '0,5' in column 'y'"):
        encoder.transform({"x": ["0.5", "4.123"], "y": ["0,5", "1"]})


def test_models_of_older_files_read_grouped_thousands():
    state = TableEncoder.fit({"x": POINTS}).to_dict()
    del state["columns"][0]["grouped"]
    old = TableEncoder.from_dict(state)
    assert (old.transform({"x": ["4,123"]}) == old.transform({"x": [4123.0]})).all()


def test_units_are_part_of_the_numbers():
    encoder = TableEncoder.fit({"w": [f"{i} kg" for i in range(40)]}, thresholds=1)
    assert encoder.bit_names == ("w>19.5kg",)
    assert encoder.transform({"w": ["30kg", "10  kg"]}).tolist() == [[1], [0]]
    assert encoder.transform({"w": [30, 10]}).tolist() == [[1], [0]]
    with pytest.warns(DataWarning, match="row 1: expected a number, found '30 g'; read as missing"):
        encoder.transform({"w": ["30 g"]})


def test_codes_of_digits_and_letters_stay_words():
    for codes in (["1a", "2b", "3a", "3b"], ["A1", "A2", "B1"], ["1st", "2nd", "3rd"]):
        encoder = TableEncoder.fit({"x": codes * 5})
        assert encoder.bit_names == tuple(f"x={code}" for code in sorted(codes))


@given(st.lists(st.text("0123456789.,-$€% kg", max_size=8), min_size=2, max_size=40))
def test_any_column_is_read_or_refused_by_its_name(cells: list[str]):
    table = {"name": cells, "bit": np.arange(len(cells)) % 2}
    try:
        encoder = TableEncoder.fit(table, max_categories=5)
    except DataError as error:
        complaint = str(error)
    else:
        complaint = "'name'"
        bits = encoder.transform(table)
        assert ((bits == 0) | (bits == 1)).all()
    assert "'name'" in complaint
