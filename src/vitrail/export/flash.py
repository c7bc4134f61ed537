"""Flash and RAM of an exported model on a Cortex-M0+: linked where a compiler is, or estimated.

Constants are counted to the byte as the C header writes them. Code is a sum of parts; their bytes
were fitted to what arm-none-eabi-gcc linked (`benchmarks/flash.py` writes flash.json).
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vitrail.export.c import c_header
from vitrail.export.c.encoder import encoder_values
from vitrail.export.c.header import as_strings, plan_header, row_bits, vote_values
from vitrail.export.c.text import size_of
from vitrail.export.devices import TARGETS, cost
from vitrail.export.golden import sample_rows
from vitrail.export.plan import ExportPlan
from vitrail.export.whole import whole_plan
from vitrail.model import Model

Parts = dict[str, float]
FITTED = Path(__file__).with_name("flash.json")
DEVICE_FLASH = 2**16  # bytes that small devices have; beyond, a header is worth a warning
FEW_CLASSES = 4  # of pairs: the wins of more are cleared by a call
WHOLE_CODE, WHOLE_LAYER, WHOLE_STACK = 1010, 30, 800  # of nets with activations of a few bits
MOST_COMPILED = 2**18  # bytes: of larger models, constants are nearly all


@dataclass(frozen=True)
class Flash:
    """Bytes of `tiny_predict` with its encoder on a Cortex-M0+; `ram` includes the stack."""

    flash: int  # bytes of code and constants
    ram: int  # bytes, stack included
    measured: bool  # by a compiler; estimated otherwise

    def __str__(self) -> str:
        how = "" if self.measured else ", estimated"
        return f"{self.flash:,} bytes of flash, {self.ram:,} bytes of RAM on a Cortex-M0+{how}"


def flash_bytes(model: Model) -> Flash:
    """What `tiny_predict` takes on a Cortex-M0+, by arm-none-eabi-gcc where it is installed.

    Args:
        model: Any model that can be exported to C.

    Returns:
        Bytes that were linked, or else the estimate, which is within a tenth of them for most
        models.

    Examples:
        >>> from vitrail import load_model
        >>> flash_bytes(load_model("cancer.safetensors"))  # doctest: +SKIP
        Flash(flash=484, ram=72, measured=True)
    """
    estimate = estimated(model)
    if not TARGETS[0].installed or estimate.flash > MOST_COMPILED:
        return estimate
    header = c_header(model, "tiny", sample_rows(model.encoder, 1))
    try:
        size = cost(header, "tiny", TARGETS[0], ["predict"], emulate=False).sizes["predict"]
    except (KeyError, RuntimeError, subprocess.TimeoutExpired):
        return estimate  # it is too large to be linked, or the compiler lacks its library
    return Flash(size.flash, size.data + size.stack, measured=True)


def estimated(model: Model) -> Flash:
    """The same without a compiler."""
    whole = whole_plan(model)
    if whole is not None:
        stored = sum(len(layer.stored()) for layer in whole.layers)
        values = sorted(layer.outputs for layer in whole.layers)[-2:]
        code = WHOLE_CODE + WHOLE_LAYER * len(whole.layers)
        return Flash(stored + code, sum(values) + WHOLE_STACK, measured=False)
    tables, buffers, parts = flash_parts(model)
    code, stack = (
        sum(bytes_of.get(name, 0) * count for name, count in parts.items())
        for bytes_of in _fitted()
    )
    return Flash(round(tables + code), round(buffers + stack), measured=False)


@cache
def _fitted() -> tuple[dict[str, float], dict[str, float]]:
    """Bytes of code and of stack, by part."""
    table = json.loads(FITTED.read_text(encoding="utf-8"))
    return table["code"], table["stack"]


def flash_parts(model: Model) -> tuple[int, int, Parts]:
    """Bytes of constants and of buffers, and how often each part of the code is there."""
    plan, rule, answer = plan_header(model)
    votes, (encoder, columns) = vote_values(model, plan, rule), encoder_values(model)
    parts: Parts = {"begin": 1}
    tables, buffers = 0, 0 if votes["two"] else 4 * model.num_classes
    ranks = not votes["two"] and votes["ranked"] != "score"
    if votes["pairs"]:
        parts["pairs"] = 1
        parts["memset"] = model.num_classes > FEW_CLASSES
    elif not votes["two"]:
        parts[f"rank by {votes['ranked'] or 'table'}"] = 1
    if answer.form == "scores":
        parts["scores to votes"] = 1
    if ranks:
        how = "direct" if votes["direct"] else "multiplied" if rule.product else "divided"
        parts[f"level {how}{', wide' if votes['wide'] and how == 'divided' else ''}"] = 1
        parts["tables of nets"] = votes["own"]
        parts["levels of nets"] = votes["net_most"]
    if ranks and votes["ranked"] is None:
        places = sum(map(len, votes["tables"]))  # of probabilities, or of their orders
        tables += places * (1 if votes["by_order"] else 2)
    tables += 4 * len(rule.most) * (ranks and votes["net_most"])
    if answer.code:
        return tables + answer.code.tables, buffers, parts | answer.code.parts
    bits = [plan.num_inputs, *(stage.outputs for stage in plan.stages[:-1])]
    buffers += sum(-(-count // 32) * 4 for count in bits)
    return (
        tables + _net_tables(model, plan, votes) + _encoder_tables(columns),
        buffers,
        {
            **parts,
            **_net_parts(model, plan, votes),
            **_encoder_parts(encoder, columns),
        },
    )


def _net_tables(model: Model, plan: ExportPlan, votes: dict[str, Any]) -> int:
    """Bytes of weights, votes and windows."""
    count, word = model.networks.shape[:2].numel(), row_bits(model, plan)
    end = 4 if as_strings(model, plan) else 0  # of a string
    rows = (layer.units * (-(-layer.fan_in // word) * word // 8 + end) for layer in plan.layers)
    windows = [stage.windows.numbers(True) for stage in plan.stages if stage.windows]
    sizes = sum(map(len, windows)) * (1 if max(map(max, windows), default=0) < 256 else 2)
    voting = 0 if votes["plain"] else size_of(votes["vote_type"]) // 8
    return count * (sum(rows) + voting) + sizes


def _net_parts(model: Model, plan: ExportPlan, votes: dict[str, Any]) -> Parts:
    hidden = [layer for layer in plan.layers if layer is not plan.last]
    word = row_bits(model, plan)
    kinds = {layer.name for layer in plan.layers}
    # Of a single network, weights are known where they are used, which saves code.
    of_one = ", one network" if model.networks.shape[:2].numel() == 1 else ""
    return {
        "net": 1,
        "networks": not votes["one"],
        "votes": not votes["plain"],
        "clip": votes["rule"].clips,
        "nets": votes["nets"] or votes["several"],
        f"hidden layers{of_one}": len(hidden),
        f"several units{of_one}": sum(layer.units > 1 for layer in hidden),
        f"several words{of_one}": plan.num_inputs > word,
        "several words of units": sum(layer.outputs > word for layer in hidden),
        "sums of 0/1 inputs": "sign_bit" in kinds,
        "kinds of sums": len(kinds) - 1,
        "outputs": votes["several"],
        "windows": sum(stage.windows is not None for stage in plan.stages),
        "words of 16 bits": word == 16,
        "strings": as_strings(model, plan),
    }


def _encoder_tables(values: dict[str, Any]) -> int:
    """Bytes of cuts and marks."""
    if "names" in values and "type" in values:  # columns of bits
        several = len(values["cuts"]) > 1
        return len(values["cuts"]) * size_of(values["type"]) // 8 if several else 0
    marks = 0 if values["even"] else len(values["packed_marks"]) * size_of(values["mark_type"]) // 8
    numbers = [column for column in values["columns"] if column.kind != "word"]
    return marks + sum(len(column.cuts) for column in numbers) * size_of(values["cut"]) // 8


def _encoder_parts(encoder: str, values: dict[str, Any]) -> Parts:
    parts: Parts = {"constant inputs": min(values["bias"], 5), encoder: 1}
    if encoder == "encode_bits":
        ends = (values["low"] > values["smallest"]) + (values["high"] < values["largest"])
        return parts | {"several cuts": len(values["cuts"]) > 1, "range": ends}
    columns, alike = values["columns"], values["alike"]
    return parts | {
        "reals": values["real"],
        "thresholds alone": values["plain"],
        "numbers": values["cut_apart"],
        "categories": values["some_words"],
        "words among numbers": values["mixed"],
        "columns differ": not alike,
        "column put": 0 if alike else len(columns),
        "real put": 0 if alike else sum(column.kind == "real" for column in columns),
        "mark": len(values["varying"]),
        "counts": values["counts_vary"],
    }
