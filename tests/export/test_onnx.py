"""Exported ONNX graphs give the answers and probabilities of Python in onnxruntime."""

import numpy as np
import pytest
from export_cases import committee, models
from export_runs import run_onnx
from hypothesis import HealthCheck, given, settings

from vitrail.errors import DataWarning
from vitrail.export.golden import sample_rows
from vitrail.tables.columns import ColumnCode


def check(model, count):
    rows = sample_rows(model.encoder, count, seed=1)
    found = run_onnx(model, rows)
    numbers, probabilities, _ = model.answers(rows)
    assert found["number"].tolist() == numbers.tolist()
    assert found["proba_parts"].tolist() == probabilities.tolist()
    assert found["label"].tolist() == model.labels.decode(numbers).tolist()
    assert np.allclose(found["probabilities"], probabilities.numpy() / 65535)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(model=models())
def test_onnx_answers_as_python_does(model):
    check(model, 40)


@pytest.mark.long
@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(model=models())
def test_onnx_answers_as_python_does_at_length(model):
    check(model, 1000)


def test_words_are_stripped_and_spellings_of_no_value_known():
    model = committee()
    table = {"colour": [" red ", "NA", "n/A ", "Red", "blue", "?"], "size": [1.0] * 6}
    table["rooms"] = [1] * 6
    found = run_onnx(model, table)
    assert found["proba_parts"].tolist() == model.answers(table).probabilities.tolist()


@pytest.mark.parametrize("missing", [False, True])
def test_a_word_that_means_nothing_in_a_column_of_numbers_is_missing(missing):
    code = ColumnCode("x", True, ("unknown",), thresholds=(1.5,), missing=missing, typical=2.0)
    model = committee((code,))
    table = {"x": [1.0, "unknown", "never seen", None, 3.0]}
    with pytest.warns(DataWarning, match="found 'never seen'"):
        expected = model.answers(table).probabilities.tolist()
    assert run_onnx(model, table)["proba_parts"].tolist() == expected
