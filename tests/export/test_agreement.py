"""C, JavaScript, ONNX and Python agree on all rows of real tables and on 10,000 random ones."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from export_cases import bits, plain
from export_runs import COMPILERS, DRIVER, by_row, expected_lines, run_all, run_node, run_onnx
from parts import need
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from torch import nn

from vitrail.data.encoders import TableEncoder
from vitrail.data.labels import LabelCoder
from vitrail.export.golden import sample_rows
from vitrail.export.js import js_module
from vitrail.model.voting import Scheme, num_nets
from vitrail.nn import BinaryConv1d, BinaryLinear, Sign, Threshold, mlp

pytestmark = pytest.mark.long
RANDOM_ROWS = 10_000


def numbers(load):
    def table():
        values, labels = load(return_X_y=True)
        return {f"x{i}": column.tolist() for i, column in enumerate(values.T)}, labels

    return table


def mixed():
    """Iris with words, whole numbers, and holes."""
    table, labels = numbers(load_iris)()
    rng = np.random.default_rng(0)
    table["x1"] = [None if rng.random() < 0.1 else x for x in table["x1"]]
    table["x2"] = [int(10 * x) for x in table["x2"]]
    table["x3"] = ["thin" if x < 1 else None if x < 1.3 else "wide" for x in table["x3"]]
    return table, labels


TABLES = {
    "iris": numbers(load_iris),
    "wine": numbers(load_wine),
    "breast cancer": numbers(load_breast_cancer),
    "digits": numbers(load_digits),
    "mixed": mixed,
}


def conv(inputs, outputs):
    layers = [BinaryConv1d(1, 2, 5, stride=2, padding=1), nn.MaxPool1d(2), Threshold()]
    places = (inputs + 2 - 5) // 2 + 1
    return nn.Sequential(*layers, nn.Flatten(), BinaryLinear(2 * (places // 2), outputs), Sign())


NETS = {
    "linear": lambda inputs, outputs: BinaryLinear(inputs, outputs),
    "hidden": lambda inputs, outputs: mlp(inputs, (7,), num_outputs=outputs),
    "deep": lambda inputs, outputs: mlp(inputs, (9, 5), num_outputs=outputs),
    "conv": conv,
}


def models_of(table, labels):
    """A random committee of every kind of net and scheme, behind an encoder fitted to the table."""
    encoder = TableEncoder.fit(table)
    classes = np.unique(labels).tolist()
    several: list[Scheme] = ["argmax", "pairs", "one-vs-rest"]
    schemes = several[:1] if len(classes) == 2 else several
    rng = np.random.default_rng(0)
    inputs = len(encoder.bit_names) + 1
    for place, scheme in enumerate(schemes):
        nets, outputs = num_nets(len(classes), scheme)
        for number, (kind, make) in enumerate(NETS.items()):
            shape = (1, inputs) if kind == "conv" else (inputs,)
            model = plain(make(inputs, outputs), shape, 3)
            yield replace(
                model,
                encoder=encoder,
                labels=LabelCoder(tuple(map(str, classes)), "str"),
                scheme=scheme,
                coding=["binary", "bipolar"][(place + number) % 2],
                bias=1,
                **bits(rng, 3, nets, model.program.num_bits),
                votes=torch.from_numpy(rng.integers(1, 4, (3, nets))),
                clip=[1, 5, 63][number % 3],
                calibration=torch.from_numpy(np.sort(rng.integers(0, 65536, (nets, 257)))),
            )


def cases(table, count=RANDOM_ROWS):
    """Models, each with the real rows and `count` random ones."""
    rows, labels = TABLES[table]()
    for model in models_of(rows, labels):
        drawn = sample_rows(model.encoder, count, seed=1)
        yield model, {name: [*rows[name], *cells] for name, cells in drawn.items()}


@pytest.mark.parametrize("table", TABLES)
def test_c_agrees(table, tmp_path):
    need("gcc")
    models = list(cases(table))
    for lines, (model, rows) in zip(
        run_all(models, tmp_path, COMPILERS["gcc"], "-O1"), models, strict=True
    ):
        assert lines == expected_lines(model, rows)


@pytest.mark.parametrize("table", TABLES)
def test_javascript_agrees(table, tmp_path):
    need("node")
    for model, rows in cases(table, RANDOM_ROWS // 12):  # 12 models; node is the slowest
        (tmp_path / "m0.mjs").write_text(js_module(model, sample_rows(model.encoder, 8)))
        (tmp_path / "rows.json").write_text(json.dumps([by_row(rows)]))
        (found,) = json.loads(run_node(tmp_path, DRIVER))
        expected = model.answers(rows)
        assert found["wrong"] == 0
        assert [answer["number"] for answer in found["answers"]] == expected.numbers.tolist()
        assert [answer["chances"] for answer in found["answers"]] == expected.chances.tolist()


@pytest.mark.parametrize("table", TABLES)
def test_onnx_agrees(table):
    for model, rows in cases(table):
        found = run_onnx(model, rows)
        expected = model.answers(rows)
        assert np.array_equal(found["number"], expected.numbers)
        assert np.array_equal(found["chances"], expected.chances)
