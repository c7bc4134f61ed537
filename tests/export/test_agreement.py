"""C, JavaScript, ONNX and Python agree on all rows of real tables and on 10,000 random ones."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from export_cases import bits, plain
from export_runs import COMPILERS, by_row, expected_lines, run_all, run_node, run_onnx
from parts import need
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from torch import nn

from vitrail.datasets import mnist
from vitrail.export.golden import sample_rows
from vitrail.export.js import js_module
from vitrail.model.voting import Scheme, num_nets
from vitrail.nn import BinaryConv1d, BinaryConv2d, BinaryLinear, Sign, Threshold, mlp
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.labels import LabelCoder

pytestmark = pytest.mark.long
RANDOM_ROWS = 10_000
IMAGES = 2000


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


def images():
    """Images of MNIST that are no part of its training set."""
    data = mnist(coding="binary")
    pixels = data.test_inputs.numpy()[:IMAGES].astype(int)
    table = {f"x{i}": column.tolist() for i, column in enumerate(pixels.T)}
    return table, data.test_labels.numpy()[:IMAGES]


def grays():
    """The same in shades, made of each image and its neighbours."""
    table, labels = images()
    pixels = np.array(list(table.values())).T.reshape(-1, *IMAGE[1:])
    shades = 85 * np.sum([np.roll(pixels, step, (1, 2)) for step in range(3)], axis=0)
    return {
        f"x{i}": column.tolist() for i, column in enumerate(shades.reshape(IMAGES, -1).T)
    }, labels


TABLES = {
    "iris": numbers(load_iris),
    "wine": numbers(load_wine),
    "breast cancer": numbers(load_breast_cancer),
    "digits": numbers(load_digits),
    "mixed": mixed,
    "images": images,
    "grays": grays,
}


def conv(inputs, outputs):
    channels, beside = divmod(inputs, IMAGE[1] * IMAGE[2])
    if beside:
        layers = [BinaryConv1d(1, 2, 5, stride=2, padding=1), nn.MaxPool1d(2), Threshold()]
        units = 2 * (((inputs + 2 - 5) // 2 + 1) // 2)
    else:
        layers = [BinaryConv2d(channels, 2, 5, stride=2, padding=1), nn.MaxPool2d(2), Threshold()]
        units = 2 * 3 * 3
    return nn.Sequential(*layers, nn.Flatten(), BinaryLinear(units, outputs), Sign())


IMAGE = (1, 14, 14)
NETS = {
    "linear": lambda inputs, outputs: BinaryLinear(inputs, outputs),
    "hidden": lambda inputs, outputs: mlp(inputs, (7,), num_outputs=outputs),
    "deep": lambda inputs, outputs: mlp(inputs, (9, 5), num_outputs=outputs),
    "conv": conv,
}


def encoder_of(table):
    """Images are bits as they are, or three bits per pixel where they are gray; other columns are
    encoded by what they hold."""
    if len(table) != IMAGE[1] * IMAGE[2]:
        return TableEncoder.fit(table)
    gray = max(map(max, table.values())) > 1
    return BitColumns.fit(table, 0, 255, 3) if gray else BitColumns.fit(table, 0, 1)


def models_of(table, labels):
    """A random committee of every kind of net and scheme, behind an encoder fitted to the table."""
    encoder = encoder_of(table)
    bias = 1
    if isinstance(encoder, BitColumns):  # of gray images, a channel of ones
        bias = IMAGE[1] * IMAGE[2] * (encoder.cuts > 1)
    classes = np.unique(labels).tolist()
    several: list[Scheme] = ["argmax", "pairs", "one-vs-rest"]
    schemes = several[:1] if len(classes) == 2 else several
    rng = np.random.default_rng(0)
    inputs = len(encoder.bit_names) + bias
    for place, scheme in enumerate(schemes):
        nets, outputs = num_nets(len(classes), scheme)
        for number, (kind, make) in enumerate(NETS.items()):
            shape = (inputs,)
            if kind == "conv":
                drawn = isinstance(encoder, BitColumns)
                shape = (-(-inputs // 196), *IMAGE[1:]) if drawn else (1, inputs)
            model = plain(make(inputs, outputs), shape, 3)
            yield replace(
                model,
                encoder=encoder,
                labels=LabelCoder(tuple(map(str, classes)), "str"),
                scheme=scheme,
                coding=["binary", "bipolar"][(place + number) % 2],
                bias=bias,
                **bits(rng, 3, nets, model.program.num_bits),
                votes=torch.from_numpy(rng.integers(1, 4, (3, nets))),
                clip=[1, 5, 63][number % 3],
                calibration=torch.from_numpy(np.sort(rng.integers(0, 65536, (nets, 257)))),
            )


def cases(table):
    """Models, each with the same rows: the real ones and random ones."""
    real, labels = TABLES[table]()
    models = list(models_of(real, labels))
    drawn = sample_rows(models[0].encoder, RANDOM_ROWS, seed=1)
    return models, {name: [*real[name], *cells] for name, cells in drawn.items()}


@pytest.mark.parametrize("table", TABLES)
def test_c_agrees(table, tmp_path):
    need("gcc")
    models, rows = cases(table)
    pairs = [(model, rows) for model in models]
    found = run_all(pairs, tmp_path, COMPILERS["gcc"], "-O1")
    for lines, model in zip(found, models, strict=True):
        assert lines == expected_lines(model, rows)


SHARES = 3  # node is slow: every row is answered by one in three of the models
DRIVER = """
import { readFileSync, writeFileSync } from "node:fs";
const rows = JSON.parse(readFileSync("rows.json", "utf8"));
for (let i = 0; i < COUNT; i++) {
  const model = await import(`./m${i}.mjs`);
  const lines = rows.filter((_, place) => place % SHARES === i % SHARES).map((row) => {
    const { number, probaParts } = model.predict(row);
    return [number, ...probaParts].join(",");
  });
  writeFileSync(`m${i}.txt`, lines.join("\\n"));
  console.log(model.check());
}
"""


@pytest.mark.parametrize("table", TABLES)
def test_javascript_agrees(table, tmp_path):
    need("node")
    models, rows = cases(table)
    for i, model in enumerate(models):
        (tmp_path / f"m{i}.mjs").write_text(js_module(model, sample_rows(model.encoder, 8)))
    (tmp_path / "rows.json").write_text(json.dumps(by_row(rows)))
    program = DRIVER.replace("COUNT", str(len(models))).replace("SHARES", str(SHARES))
    assert run_node(tmp_path, program).split() == ["0"] * len(models)
    for i, model in enumerate(models):
        expected = expected_lines(model, rows)[i % SHARES :: SHARES]
        assert (tmp_path / f"m{i}.txt").read_text().splitlines() == expected


@pytest.mark.parametrize("table", TABLES)
def test_onnx_agrees(table):
    models, rows = cases(table)
    for model in models:
        found = run_onnx(model, rows)
        expected = model.answers(rows)
        assert np.array_equal(found["number"], expected.numbers)
        assert np.array_equal(found["proba_parts"], expected.probabilities)
