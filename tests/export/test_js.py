"""Exported JavaScript gives the answers and probabilities of Python."""

import json

import pytest
from export_cases import committee, many_models
from export_runs import DRIVER, by_row, run_node
from hypothesis import HealthCheck, Phase, Verbosity, given, settings

from vitrail.errors import DataWarning
from vitrail.export.golden import sample_rows
from vitrail.export.js import js_module

SLOW = settings(
    phases=[Phase.generate],
    verbosity=Verbosity.quiet,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check_all(drawn, count, folder):
    tables = [sample_rows(model.encoder, count, seed=1) for model in drawn]
    for i, model in enumerate(drawn):
        (folder / f"m{i}.mjs").write_text(js_module(model, sample_rows(model.encoder, 8)))
    (folder / "rows.json").write_text(json.dumps([by_row(rows) for rows in tables]))
    for model, rows, found in zip(drawn, tables, json.loads(run_node(folder, DRIVER)), strict=True):
        numbers, probabilities, _ = model.answers(rows)
        assert found["wrong"] == 0
        assert [answer["number"] for answer in found["answers"]] == numbers.tolist()
        assert [answer["probaParts"] for answer in found["answers"]] == probabilities.tolist()
        for answer in found["answers"]:
            assert sum(answer["votes"]) == len(model.networks)


@settings(SLOW, max_examples=2)  # the first is the simplest
@given(drawn=many_models(30))
def test_javascript_answers_as_python_does(drawn, tmp_path_factory):
    check_all(drawn, 40, tmp_path_factory.mktemp("js"))


@pytest.mark.long
@settings(SLOW, max_examples=20)
@given(drawn=many_models(30))
def test_javascript_answers_as_python_does_at_length(drawn, tmp_path_factory):
    check_all(drawn, 10_000 // 30, tmp_path_factory.mktemp("js"))


CELLS = """
import { encode, predict, columns } from "./m0.mjs";
const rows = [
  ["red", 0.5, 2], [" red ", "0.5", "2.0"], ["RED", "5e-1", true],
  ["red", "much", "few"], ["red", "5 kg", 1], [null, "", undefined],
  ["?", "nan", NaN], [" NA ", "-inf", "TRUE"], [7, "0x1", 3], [false, 1, " 3 "],
];
const bits = rows.map((row) => {
  try {
    return encode(row).join("");
  } catch (error) {
    return error.message;
  }
});
const fault = (row) => { try { predict(row); } catch (error) { return error.message; } };
const byName = { rooms: 2, more: 1, size: 0.5, colour: "red" };
const same = encode(byName).join("") === bits[0];
console.log(JSON.stringify({ bits, same, columns, faults: [fault([1]), fault({ size: 1 })] }));
"""


def test_cells_are_read_as_python_reads_them(tmp_path):
    model = committee()
    (tmp_path / "m0.mjs").write_text(js_module(model, sample_rows(model.encoder, 8)))
    found = json.loads(run_node(tmp_path, CELLS))
    table = {
        "colour": ["red", " red ", "RED", "red", "red", None, "?", " NA ", 7, False],
        "size": [0.5, "0.5", "5e-1", "much", "", "", "nan", "-inf", "0.1", 1],
        "rooms": [2, "2.0", True, "few", 1, None, float("nan"), "TRUE", 3, " 3 "],
    }
    with pytest.warns(DataWarning, match="expected a number, found 'much'"):
        bits = model.encoder.transform(table).tolist()
    expected = ["".join(map(str, row)) for row in bits]
    expected[4] = "column size: expected a number, found 5 kg"
    expected[8] = "column size: expected a number, found 0x1"
    assert found["bits"] == expected
    assert found["columns"] == ["colour", "size", "rooms"]
    assert found["same"]
    assert found["faults"] == ["expected 3 columns, got 1", "column colour not found"]
