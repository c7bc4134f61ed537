"""One C99 header that is also C++17: the net, the encoder and their checks."""

from __future__ import annotations

import json
import re

from vitrail.export.c.check import check_code
from vitrail.export.c.encoder import GUARD, columns_of, cut_type, encoder_code
from vitrail.export.c.line import Answer, answered
from vitrail.export.c.text import (
    KEYWORDS,
    byte_rows,
    comment,
    filled,
    joined,
    packed,
    renamed,
    size_of,
    string,
    table,
    unsigned,
    words,
)
from vitrail.export.c.vote import STARTS, layer_name, vote_code
from vitrail.export.errors import ExportError
from vitrail.export.golden import Rows
from vitrail.export.line import with_line
from vitrail.export.plan import ExportPlan, Layer, Pool, planned
from vitrail.export.rule import Rule, folded, rule_of
from vitrail.model import Model
from vitrail.tables.bits import BitColumns

MOST_SCORE = 2**30  # twice a score fits 32 bits
SUMS_BYTES, BIT_COLUMNS_BYTES, TABLE_BYTES = 100, 50, 110  # of code: votes and two encoders
MORE_CODE = 32  # bytes, that more words in a row take
MANY_WORDS = 2**14  # of weights: beyond, they are strings, for the compiler's sake
MOST_STRING = 4092  # bytes: C promises to take 4095 and an end


def checked_name(name: str) -> str:
    """The prefix of all names; ExportError if C cannot have it."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name) or name in KEYWORDS:
        raise ExportError(
            f"{name!r} cannot begin names in C; use small letters, digits and _, such as tiny"
        )
    return name


def c_header(model: Model, name: str, rows: Rows) -> str:
    """The header `name`.h; the rows become its golden vectors."""
    checked_name(name)
    plan = planned(model)
    plan, rule = folded(model, plan, rule_of(model, plan))
    if max(rule.most) >= MOST_SCORE:
        raise ExportError(
            f"the votes of this model add up to {max(rule.most)}, more than 32 bits hold; "
            "train with fewer networks or smaller votes"
        )
    line, rule = with_line(model, plan, rule)
    answer = (answered(model, line, rule, bits_bytes(model, plan)) if line else None) or Answer()
    labels = ", ".join(string(str(label)) for label in model.labels.classes)
    blocks = [
        _basics(model, plan, rule),
        _weights(model, plan),
        *_layers(plan),
        vote_code(model, plan, rule),
        encoder_code(model),
        answer.text,
        filled("faces", answer.flags, labels=labels, to_votes=answer.to_votes),
        check_code(model, rows),
    ]
    text = f"{_about(model)}\n#ifndef {GUARD}\n#define {GUARD}\n\n{joined(*blocks)}\n\n#endif\n"
    return renamed(text, name)


def _about(model: Model) -> str:
    networks, nets, bits = model.networks.shape
    lines = [
        "Made by `vitrail export` from a trained model; change the model, not this file.",
        "",
        f"{networks * nets * bits} one-bit weights in {networks * nets} networks; classes "
        + ", ".join(comment(str(label)) for label in model.labels.classes),
        "",
        "  tiny_predict(&row)         the class of a row, or a negative code",
        "  tiny_proba(&row, proba)    the same, and each class's probability in parts of 65535",
        "  tiny_encode(&row, &bits)   the bits of a row, for tiny_predict_bits, tiny_proba_bits",
        "  tiny_label(number)         the name of a class",
        "",
        "Define TINY_CHECK for tiny_check(), which counts wrong answers to rows that have known",
        "ones; TINY_MAIN for a program that does so and answers a CSV table on standard input.",
    ]
    if model.record:
        lines += ["", "The record of its training:"]
        for key, value in sorted(model.record.items()):
            lines.append(f"  {comment(key)}: {comment(json.dumps(value, sort_keys=True))}"[:100])
    return "/*\n" + "\n".join(f" * {line}".rstrip() for line in lines) + "\n */"


def _basics(model: Model, plan: ExportPlan, rule: Rule) -> str:
    sums = 4 * max(layer.fan_in for layer in plan.layers) + 4
    weights = max(_words(model, layer) for layer in plan.layers) * (
        5 if as_strings(model, plan) else 1
    )
    tables = rule.tables.size
    sizes = [stage.outputs + 32 for stage in plan.stages]
    index = max(weights, tables, plan.num_inputs, *sizes, *(layer.fan_in for layer in plan.layers))
    score = max(rule.most) * 2 + sums
    total = any(layer.kind == "sign_bit" or layer.masked for layer in plan.layers)
    strings = as_strings(model, plan)
    return filled(
        "basics",
        ["total"] * total + ["strings"] * strings,
        row_bits=row_bits(model, plan),
        int="int" if sums < 2**15 else "int32_t",
        int_bytes=2 if sums < 2**15 else 4,
        index="unsigned" if index < 2**16 else "uint32_t",
        index_bytes=2 if index < 2**16 else 4,
        score="int" if score < 2**15 else "int32_t",
        bits=len(model.encoder.bit_names),
        most_bits=max(plan.num_inputs, *(max(stage.outputs, stage.reads) for stage in plan.stages)),
        inputs=plan.num_inputs,
        classes=model.num_classes,
    )


def as_strings(model: Model, plan: ExportPlan) -> bool:
    """Whether weights are written as strings: there are many, and every row is short enough."""
    most = max(-(-layer.fan_in // 32) * 4 for layer in plan.layers)
    return sum(_words(model, layer) for layer in plan.layers) > MANY_WORDS and most <= MOST_STRING


def row_bits(model: Model, plan: ExportPlan) -> int:
    """Rows of weights end at words of 32 bits, or of 16 where that saves enough of them."""
    wide, short = (
        model.networks.shape[:2].numel()
        * sum(layer.units * -(-layer.fan_in // bits) * bits // 8 for layer in plan.layers)
        for bits in (32, 16)
    )
    worth = wide - short >= max(wide / 8, MORE_CODE) and not as_strings(model, plan)
    return 16 if worth else 32


def bits_bytes(model: Model, plan: ExportPlan) -> int:
    """About how much flash it takes on a Cortex-M0+ to make the bits of a row and to sum them."""
    weights = model.networks.shape[:2].numel() * -(-plan.num_inputs // 32) * 4
    if isinstance(model.encoder, BitColumns):
        return weights + SUMS_BYTES + BIT_COLUMNS_BYTES
    columns = columns_of(model.encoder)
    cuts = sum(len(column.cuts) for column in columns if column.kind != "word")
    return weights + SUMS_BYTES + TABLE_BYTES + cuts * size_of(cut_type(columns)) // 8


def _words(model: Model, layer: Layer) -> int:
    """Words of 32 bits of a layer in all networks."""
    return model.networks.shape[:2].numel() * layer.units * -(-layer.fan_in // 32)


def _weights(model: Model, plan: ExportPlan) -> str:
    """The tables of all layers, networks outermost, and the windows of those that have some."""
    networks = model.networks.numpy().swapaxes(0, 1)
    blocks = []
    for i, layer in enumerate(plan.layers):
        end = layer.first + layer.units * layer.fan_in
        rows = networks[..., layer.first : end].reshape(-1, layer.fan_in)
        about = f"/* Layer {i + 1}: {layer.units} x {layer.fan_in} weights of each network. */\n"
        name = f"tiny_weights_{i}"
        if as_strings(model, plan):
            blocks.append(about + byte_rows(name, packed(rows)))
        else:
            bits = row_bits(model, plan)
            blocks.append(about + table(f"uint{bits}_t", name, words(rows, bits), 256 // bits))
    return joined(*blocks)


def _layers(plan: ExportPlan) -> list[str]:
    """The functions of layers that this net needs, each once."""
    blocks: dict[str, str] = {}
    convs = [stage for stage in plan.stages if stage.windows]
    any_masked = any(layer.masked for layer in plan.layers)
    common = ["any_masked"] if any_masked else []
    for layer in plan.layers:
        name, flags = layer_name(layer), [layer.kind, *["masked"] * layer.masked]
        beyond = ", or 0 beyond the mask" if layer.masked else ""
        blocks[f"sum {name}"] = filled("sum", flags, kind=name, beyond=beyond)
    if convs:
        blocks["windows"] = _windows(plan, convs, any_masked)
    for stage in plan.stages:
        if isinstance(stage, Pool):
            blocks["pool"] = filled("pool", common)
            continue
        last = stage is plan.last
        if last and plan.num_outputs == 1 and not stage.windows:
            continue  # one sum is asked for directly
        flags = [*common, *["last"] * last, *["masked"] * stage.masked]
        start = STARTS[stage.kind]
        if stage.masked and stage.kind == "sign_sign":
            start = "tiny_total(mask, n)"
        values = {"kind": layer_name(stage), "start": start}
        if stage.windows:
            values["start"] = start.replace("(x,", "(window,")
            blocks[f"conv {layer_name(stage)} {last}"] = filled("conv", flags, **values)
        else:
            blocks[f"dense {layer_name(stage)} {last}"] = filled("dense", flags, **values)
    return list(blocks.values())


def _windows(plan: ExportPlan, stages: list[Layer | Pool], masked: bool) -> str:
    all_windows = [stage.windows for stage in stages if stage.windows]
    numbers = [
        [g.channels, *g.size, *g.kernel, *g.stride, *g.padding, *g.places] for g in all_windows
    ]
    padded = any(g.padding != (0, 0) for g in all_windows)
    area = [
        g.kernel[0] * g.kernel[1] * (g.channels if isinstance(stage, Layer) else 1)
        for stage, g in zip(stages, all_windows, strict=True)
    ]
    code = filled(
        "windows",
        ["padded"] * padded + ["masked"] * masked,
        most=max(area),
        size=unsigned(max(map(max, numbers))),
    )
    tables = []
    for stage, row in zip(stages, numbers, strict=True):
        kept = row if padded else row[:7] + row[9:]
        name = f"tiny_windows_{plan.stages.index(stage)}"
        tables.append(
            f"static const tiny_windows {name} TINY_FLASH = {{{', '.join(map(str, kept))}}};"
        )
    return joined(code, "\n".join(tables))
