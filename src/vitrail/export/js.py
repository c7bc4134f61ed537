"""The data of a model for `module.js` beside this file, which does the rest."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vitrail.export.golden import Rows
from vitrail.export.plan import Layer, Pool, layer_bits, packed, plan_export
from vitrail.export.rule import rule_of, sides
from vitrail.model import Model
from vitrail.tables.bits import BitColumns
from vitrail.tables.cells import MISSING_WORDS
from vitrail.tables.columns import rounded
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.spelling import BLANKS


def js_module(model: Model, rows: Rows) -> str:
    """The text of the module; the rows become its golden vectors."""
    text = Path(__file__).with_name("module.js").read_text(encoding="utf-8")
    values = {
        "about": _about(model),
        "model": _spelled(_described(model)),
        "golden": _spelled(_golden(model, rows)),
        "missing": json.dumps(sorted(MISSING_WORDS)),
        "blanks": json.dumps(BLANKS),
    }
    return re.sub(r"@(about|model|golden|missing|blanks)@", lambda found: values[found[1]], text)


def _about(model: Model) -> str:
    lines = ["Made by `vitrail export` from a trained model; change the model, not this file."]
    lines += [f"  {json.dumps({k: v})[1:-1]}"[:98] for k, v in sorted(model.record.items())]
    return "\n".join(f"// {line}" for line in lines)


def _spelled(value: Any) -> str:
    """JSON with a line for each item of the outermost list or object; safe inside a script."""
    plain = json.dumps
    if isinstance(value, dict):
        lines = [f"  {plain(key)}: {plain(item)}" for key, item in value.items()]
    else:
        lines = [f"  {plain(item)}" for item in value]
    ends = "{}" if isinstance(value, dict) else "[]"
    return (ends[0] + "\n" + ",\n".join(lines) + "\n" + ends[1]).replace("</", "<\\/")


def _described(model: Model) -> dict[str, Any]:
    plan = plan_export(model)
    rule = rule_of(model, plan)
    return {
        "classes": list(model.labels.classes),
        **_encoder(model.encoder),
        "bias": model.bias,
        "stages": [_stage(model, stage) for stage in plan.stages],
        "lastLow": plan.last_low,
        "pairs": sides(model),
        "clip": model.clip,
        "votes": rule.votes.tolist(),
        "calibration": model.calibration.tolist(),
    }


def _encoder(encoder: TableEncoder | BitColumns) -> dict[str, Any]:
    if isinstance(encoder, BitColumns):
        columns = [{"name": name} for name in encoder.names]
        ends = {"low": encoder.low, "high": encoder.high, "cuts": encoder.levels.tolist()}
        return {"table": False, **ends, "columns": columns}
    columns = []
    for code in encoder.columns:
        described = {**code.to_dict(), "bins": len(code.values)}
        described["thresholds"] = rounded(code.thresholds, code.held_as).tolist()
        described["bare"] = code.spelling.accepts("")  # whether a number without a unit is one
        described["plain"] = described["bare"] and code.spelling.decimal == "."
        for key in ("values", "decimal", "unit", "strays", "direction"):
            described.pop(key, None)
        columns.append(described)
    return {"table": True, "columns": columns}


def _stage(model: Model, stage: Layer | Pool) -> dict[str, Any]:
    windows = stage.windows and {**asdict(stage.windows), "places": stage.windows.places}
    if not isinstance(stage, Layer):
        return {"windows": windows}
    return {
        "units": stage.units,
        "fanIn": stage.fan_in,
        "weightLow": stage.weight_low,
        "valueLow": stage.value_low,
        "windows": windows,
        "weights": base64.b64encode(packed(layer_bits(model, stage)).tobytes()).decode(),
    }


def _golden(model: Model, rows: Rows) -> list[dict[str, Any]]:
    found = model.answers(rows)
    names = [column["name"] for column in _encoder(model.encoder)["columns"]]
    cells = zip(*(rows[name] for name in names), strict=True)
    return [
        {"row": row, "number": number, "probaParts": parts}
        for row, number, parts in zip(
            cells, found.numbers.tolist(), found.probabilities.tolist(), strict=True
        )
    ]
