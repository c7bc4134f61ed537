"""The arrays of a model are enough to answer as it does: by the reader of the documentation."""

import io

import numpy as np
from export_cases import committee, models
from export_runs import numpy_reader
from hypothesis import given, settings

from vitrail.export.arrays import npz_file
from vitrail.export.golden import sample_rows


@settings(max_examples=60)
@given(model=models())
def test_the_reader_of_the_documentation_answers_as_the_model_does(model):
    names = numpy_reader()
    about, arrays = names["read"](io.BytesIO(npz_file(model, sample_rows(model.encoder, 12))))
    assert len(about["golden"]) == 12
    for row, number, probabilities in zip(
        about["golden"], arrays["golden_numbers"], arrays["golden_proba"], strict=True
    ):
        answer, found = names["predict"](about, arrays, names["encode"](about, row))
        assert (answer, found.tolist()) == (number, probabilities.tolist())
    numbers, probabilities, _ = model.answers(sample_rows(model.encoder, 12))
    assert arrays["golden_numbers"].tolist() == numbers.tolist()
    assert arrays["golden_proba"].tolist() == probabilities.tolist()


def test_the_same_model_gives_the_same_file():
    model = committee()
    rows = sample_rows(model.encoder, 4)
    assert npz_file(model, rows) == npz_file(model, rows)
    with np.load(io.BytesIO(npz_file(model, rows)), allow_pickle=False) as file:
        assert {"about", "index_0", "weights_0", "votes", "calibration"} <= set(file)
