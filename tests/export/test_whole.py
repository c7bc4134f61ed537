"""Nets with activations of a few bits in C: whole numbers give the answers of Python."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from export_cases import plain
from export_runs import COMPILERS, by_row, expected_lines, header_of, numpy_reader, run_all
from parts import need
from torch import nn

from vitrail.export.arrays import npz_file
from vitrail.export.devices import TARGETS, cost
from vitrail.export.flash import estimated, flash_bytes
from vitrail.export.golden import sample_rows
from vitrail.export.js import js_module
from vitrail.export.plan import ExportError
from vitrail.model import Model
from vitrail.nn import BinaryConv1d, BinaryConv2d, BinaryLinear, Levels, Sign, get_bits
from vitrail.tables.bits import BitColumns
from vitrail.tables.labels import LabelCoder

NETS = {
    "strides and a pool": (
        (1, 9, 9),
        lambda: [
            BinaryConv2d(1, 5, 3, stride=2, digits=3),
            Levels(5),
            BinaryConv2d(5, 7, 2, digits=2),
            Levels(7, bits=3),
            nn.MaxPool2d(2, 1),
            nn.Flatten(),
            BinaryLinear(28, 6),
            Levels(6, bits=1),
            BinaryLinear(6, 3, digits=2),
        ],
    ),
    "padding and groups": (
        (1, 8, 6),
        lambda: [
            BinaryConv2d(1, 4, (3, 2), stride=(2, 1), padding=(1, 1)),
            Levels(4, bits=8),
            BinaryConv2d(4, 4, 3, padding=1, groups=4, digits=4),
            nn.MaxPool2d((2, 3)),
            Levels(4, bits=2),
            BinaryConv2d(4, 6, 1, groups=2),
            Levels(6),
            nn.Flatten(),
            BinaryLinear(24, 4),
        ],
    ),
    "weights of 0 and more": (
        (1, 7),
        lambda: [
            BinaryConv1d(1, 6, 3, coding="binary", digits=2),
            Levels(6, bits=5),
            nn.Flatten(),
            BinaryLinear(30, 2 + 1, "binary"),
        ],
    ),
    "a line, depthwise": (
        (1, 17),
        lambda: [
            BinaryConv1d(1, 3, 5, stride=2, padding=2, digits=2),
            Levels(3),
            nn.MaxPool1d(2),
            BinaryConv1d(3, 6, 3, padding=1, groups=3),
            Levels(6),
            nn.Flatten(),
            BinaryLinear(24, 3),
        ],
    ),
    "two classes": (
        (1, 6, 6),
        lambda: [
            BinaryConv2d(1, 3, 3),
            Levels(3),
            nn.MaxPool2d(2),
            nn.Flatten(),
            BinaryLinear(12, 1, digits=2),
        ],
    ),
}


def model_of(shape: tuple[int, ...], layers: list[nn.Module], top: int = 255) -> Model:
    torch.manual_seed(len(layers))
    module = nn.Sequential(*layers)
    with torch.no_grad():
        for _ in range(60):  # running means and variances
            outputs = module(torch.randint(0, top + 1, (40, *shape)).float())
    model, classes = plain(module, shape), outputs.shape[1]
    pixels = tuple(f"x{i}" for i in range(int(np.prod(shape))))
    bits = get_bits(module)[None]
    return replace(
        model,
        encoder=BitColumns(pixels, 0.0, float(top), cuts=top, whole=True),
        labels=LabelCoder(tuple(f"class {i}" for i in range(max(2, classes))), "str"),
        best=bits,
        networks=bits[None],
        clip=2 * int(outputs.std()) + 1,
    )


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_c_answers_as_python_does(compiler, tmp_path):
    need(compiler)
    drawn = [model_of(shape, layers()) for shape, layers in NETS.values()]
    drawn.append(model_of((1, 9, 9), NETS["strides and a pool"][1](), top=16))
    models = [(model, sample_rows(model.encoder, 200, seed=1)) for model in drawn]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    found = run_all(models, tmp_path, COMPILERS[compiler], *sanitizers)
    for lines, (model, rows) in zip(found, models, strict=True):
        expected = expected_lines(model, rows)
        assert len(set(expected)) > 3
        assert lines == expected


@pytest.mark.parametrize("target", [target for target in TARGETS if target.prefix])
def test_devices_answer_as_python_does(target):
    need(target.compiler)
    model = model_of(*[NETS["padding and groups"][0], NETS["padding and groups"][1]()])
    found = cost(header_of(model), "tiny", target, ("predict", "proba"))
    assert found.agree in (True, None)
    assert target.name == "avr" or found.sizes["predict"].flash < 2048


@pytest.mark.parametrize("name", NETS)
def test_arrays_answer_as_python_does(name):
    shape, layers = NETS[name]
    model = model_of(shape, layers())
    rows, reader = sample_rows(model.encoder, 50, seed=1), numpy_reader()
    about, arrays = reader["read"](io.BytesIO(npz_file(model, rows)))
    for row, expected in zip(by_row(rows), expected_lines(model, rows), strict=True):
        number, parts = reader["predict"](about, arrays, reader["encode"](about, row))
        assert ",".join(map(str, [number, *parts.tolist()])) == expected


def test_other_exports_refuse_in_a_sentence():
    model = model_of(*[NETS["two classes"][0], NETS["two classes"][1]()])
    with pytest.raises(ExportError, match="exported to C and NumPy"):
        js_module(model, sample_rows(model.encoder, 1))


def test_what_c_cannot_hold_is_refused():
    shape, layers = NETS["strides and a pool"]
    model = model_of(shape, layers())
    floats = replace(model.encoder, high=1.0)
    with pytest.raises(ExportError, match="images of bytes"):
        header_of(replace(model, encoder=floats))
    flat = torch.where(torch.arange(257) < 10, 0, 40000)[None]
    with pytest.raises(ExportError, match="do not tell"):
        header_of(replace(model, calibration=flat))
    several = model.networks.repeat(2, 1, 1)
    with pytest.raises(ExportError, match="one network"):
        header_of(replace(model, networks=several, votes=model.votes.repeat(2, 1)))
    mixed = [BinaryLinear(9, 5), Levels(5), BinaryLinear(5, 4), Sign(), BinaryLinear(4, 3)]
    with pytest.raises(ExportError, match="mixes"):
        header_of(model_of((9,), mixed))


def test_flash_without_a_compiler_is_near_what_is_linked():
    need(TARGETS[0].compiler)
    for shape, layers in NETS.values():
        model = model_of(shape, layers())
        linked = flash_bytes(model)
        assert linked.measured
        assert estimated(model).flash == pytest.approx(linked.flash, rel=0.3)
