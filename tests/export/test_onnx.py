"""Exported ONNX graphs give the answers and chances of Python in onnxruntime."""

import numpy as np
import pytest
from export_cases import committee, models
from hypothesis import HealthCheck, given, settings

from vitrail.data.bits import BitColumns
from vitrail.data.cells import as_number
from vitrail.data.columns import ColumnCode
from vitrail.data.errors import DataWarning
from vitrail.export.golden import sample_rows
from vitrail.export.onnx import onnx_graph

runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def feed_of(model, rows):
    """Rows as the inputs of the graph."""
    if isinstance(model.encoder, BitColumns):
        return {"x": np.array([rows[name] for name in model.encoder.names], np.float32).T}
    feed = {}
    for code in model.encoder.columns:
        cells = rows[code.name]
        words = np.array([["" if x is None else str(x)] for x in cells], object)
        if not code.numeric:
            feed[code.name] = words
            continue
        numbers = np.array([[np.nan if x is None else as_number(x)] for x in cells])
        feed[code.name] = numbers.astype(np.float32 if code.held_as == "float32" else np.float64)
        if code.categories or code.other:
            feed[f"{code.name} word"] = np.where(np.isnan(numbers), words, "").astype(object)
    return feed


def run(model, rows):
    graph = onnx_graph(model).SerializeToString()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed_of(model, rows)), strict=True))


def check(model, count):
    rows = sample_rows(model.encoder, count, seed=1)
    found = run(model, rows)
    numbers, chances, _ = model.answers(rows)
    assert found["number"].tolist() == numbers.tolist()
    assert found["chances"].tolist() == chances.tolist()
    assert found["label"].tolist() == model.labels.decode(numbers).tolist()
    assert np.allclose(found["probabilities"], chances.numpy() / 65535)


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
    found = run(model, table)
    assert found["chances"].tolist() == model.answers(table).chances.tolist()


@pytest.mark.parametrize("missing", [False, True])
def test_a_word_that_means_nothing_in_a_column_of_numbers_is_missing(missing):
    code = ColumnCode("x", True, ("unknown",), thresholds=(1.5,), missing=missing, typical=2.0)
    model = committee((code,))
    table = {"x": [1.0, "unknown", "never seen", None, 3.0]}
    with pytest.warns(DataWarning, match="found 'never seen'"):
        expected = model.answers(table).chances.tolist()
    assert run(model, table)["chances"].tolist() == expected
