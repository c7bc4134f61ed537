"""Models as arrays in one .npz file, for readers without vitrail; docs/numpy-file.md says how.

Stages are spelled out, so that a reader needs no cases: `index` lists for every window of a layer
the places that it reads (a dense layer has one window), −1 being a zero beyond the image; weights
and values are the numbers that they stand for.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from vitrail.export.golden import Rows
from vitrail.export.plan import Layer, Pool, Windows, layer_bits, plan_export
from vitrail.export.rule import sides
from vitrail.export.whole import whole_plan
from vitrail.model import Model
from vitrail.nn.coding import low_value
from vitrail.tables.bits import BitColumns
from vitrail.tables.columns import rounded
from vitrail.tables.encoders import ColumnCode, TableEncoder

VERSION = 2


def npz_file(model: Model, rows: Rows) -> bytes:
    """The contents of the file; the rows become its golden vectors."""
    found = model.answers(rows)
    count = range(len(found.numbers))
    about: dict[str, Any] = {
        "format": "vitrail-arrays",
        "version": VERSION,
        "classes": list(model.labels.classes),
        "pairs": sides(model),
        "input_low": low_value(model.coding),
        "bias": model.bias,
        "clip": model.clip,
        "columns": _columns(model.encoder),
        "bits": _bits(model.encoder),
        "stages": [],
        "golden": [{name: _cell(cells[i]) for name, cells in rows.items()} for i in count],
        "record": model.record,
    }
    arrays: dict[str, Any] = {
        "votes": model.votes.numpy().T.astype(np.int64),
        "calibration": model.calibration.numpy().astype(np.int64),
        "golden_numbers": found.numbers.numpy(),
        "golden_proba": found.probabilities.numpy(),
    }
    for i, (index, weights, becomes) in enumerate(_stages(model)):
        arrays[f"index_{i}"] = index
        if weights is not None:
            arrays[f"weights_{i}"] = weights
        about["stages"].append({"layer": weights is not None, **becomes})
    text = json.dumps(about, ensure_ascii=False).encode()
    arrays["about"] = np.frombuffer(text, np.uint8)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _stages(model: Model) -> Iterator[tuple[np.ndarray, np.ndarray | None, dict[str, Any]]]:
    """Of each stage which values its windows read, its weights, and what sums become."""
    whole = whole_plan(model)
    if whole is None:
        plan = plan_export(model)
        for stage, low in zip(plan.stages, plan.lows, strict=True):
            weights = layer_weights(model, stage) if isinstance(stage, Layer) else None
            yield places(stage), weights, {"low": low}
        return
    for layer in whole.layers:
        levels = None if layer.levels is None else layer.levels.settings
        index = window_values(layer.windows)
        yield index, layer.numbers()[None, None], {"low": None, "levels": levels}
        if layer.pool is not None:
            yield window_values(layer.pool, by_channel=True), None, {"low": None}


def layer_weights(model: Model, layer: Layer) -> np.ndarray:
    """(N, K, units, fan-in) int8: the numbers that a layer's bits stand for."""
    return np.where(layer_bits(model, layer), 1, layer.weight_low).astype(np.int8)


def places(stage: Layer | Pool) -> np.ndarray:
    """(windows, values) int64: which values each window of a stage reads; −1 is a zero."""
    if stage.windows is None:
        return np.arange(stage.fan_in)[None]
    return window_values(stage.windows, by_channel=isinstance(stage, Pool))


def window_values(g: Windows, *, by_channel: bool = False) -> np.ndarray:
    """(windows, values) int64: of all channels at once, or of each apart."""
    image = np.arange(g.channels * g.size[0] * g.size[1]).reshape(g.channels, *g.size)
    around = [(0, 0), *((pad, pad) for pad in g.padding)]
    image = np.pad(image, around, constant_values=-1)
    windows = np.lib.stride_tricks.sliding_window_view(image, g.kernel, (1, 2))
    windows = windows[:, :: g.stride[0], :: g.stride[1]]  # (channel, row, column, *kernel)
    if by_channel:
        return windows.reshape(g.channels * g.count, -1)
    return windows.transpose(1, 2, 0, 3, 4).reshape(g.count, -1)


def _columns(encoder: TableEncoder | BitColumns) -> list[dict[str, Any]]:
    """What a reader needs of a column before its bits."""
    if isinstance(encoder, BitColumns):
        ends = [encoder.low, encoder.high]
        return [{"name": name, "numeric": True, "range": ends} for name in encoder.names]
    return [
        {
            "name": code.name,
            "numeric": code.numeric,
            "single": code.numeric and code.held_as == "float32",
            "typical": code.typical if code.numeric and not code.missing else None,
            "words": list(code.categories),
        }
        for code in encoder.columns
    ]


def _bits(encoder: TableEncoder | BitColumns) -> list[list[Any]]:
    """Each bit as a test: column, kind, and what it needs."""
    if isinstance(encoder, BitColumns) and encoder.whole:
        return [[name, "whole"] for name in encoder.names]
    if isinstance(encoder, BitColumns):
        levels = encoder.levels.tolist()
        return [[name, "between", level, None] for level in levels for name in encoder.names]
    return [test for code in encoder.columns for test in _tests(code)]


def _tests(code: ColumnCode) -> list[list[Any]]:
    name, cuts = code.name, rounded(code.thresholds, code.held_as).tolist()
    tests: list[list[Any]] = [[name, "word", word] for word in code.categories]
    if code.other:
        tests.append([name, "other"])
    if code.values:
        tests += [
            [name, "between", *ends] for ends in zip([None, *cuts], [*cuts, None], strict=True)
        ]
    if len(code.values) != 2:
        tests += [[name, "between", cut, None] for cut in cuts]
    if code.both:
        tests += [[name, "between", None, cut] for cut in cuts]
    if code.missing:
        tests.append([name, "missing"])
    return tests


def _cell(value: Any) -> Any:
    """A cell as JSON has it: the largest numbers for infinities."""
    return float(np.nan_to_num(value)) if isinstance(value, float) else value
