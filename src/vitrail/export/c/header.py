"""One C99 header that is also C++17: the net, the encoder and their checks."""

from __future__ import annotations

import json
import re
from typing import Any

from vitrail.export.c.encoder import check_code, columns_of, cut_type, encoder_values
from vitrail.export.c.linear import Answer, answer_by_steps
from vitrail.export.c.text import (
    KEYWORDS,
    byte_rows,
    comment,
    joined,
    render,
    signed,
    size_of,
    table,
    unsigned,
    with_prefix,
)
from vitrail.export.c.whole import whole_code
from vitrail.export.golden import Rows
from vitrail.export.linear import linear_form
from vitrail.export.plan import ExportError, ExportPlan, Layer, layer_bits, packed, plan_export
from vitrail.export.rule import Rule, class_order, fold_sign, rule_of
from vitrail.export.whole import whole_plan
from vitrail.model import Model
from vitrail.model.voting import CERTAIN, COSTS, LEAST
from vitrail.tables.bits import BitColumns

MOST_SCORE = 2**30  # twice a score fits 32 bits
SUMS_BYTES, BIT_COLUMNS_BYTES, TABLE_BYTES = 100, 50, 110  # of code: votes and two encoders
MORE_CODE = 32  # bytes, that more words in a row take
MANY_WORDS = 2**14  # of weights: beyond, they are strings, for the compiler's sake
MOST_STRING = 4092  # bytes: C promises to take 4095 and an end


def c_header(model: Model, name: str, rows: Rows) -> str:
    """The header `name`.h; the rows become its golden vectors."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name) or name in KEYWORDS:
        raise ExportError(
            f"{name!r} cannot begin names in C; use small letters, digits and _, such as tiny"
        )
    labels = [str(label) for label in model.labels.classes]
    whole = whole_plan(model)
    if whole is not None:
        body = joined(
            whole_code(model, whole), render("labels", labels=labels), check_code(model, rows)
        )
        return _header(model, name, body)
    plan, rule, answer = plan_header(model)
    part, encoder = encoder_values(model)
    body = joined(
        _basics(model, plan, rule),
        _weights(model, plan),
        *_layers(plan),
        render("vote", **vote_values(model, plan, rule)),
        render(part, **encoder),
        answer.text,
        render("faces", form=answer.form, to_votes=answer.to_votes),
        render("labels", labels=labels),
        check_code(model, rows),
    )
    return _header(model, name, body)


def _header(model: Model, name: str, body: str) -> str:
    """The header with what it says of the model."""
    labels = [str(label) for label in model.labels.classes]
    record = [
        f"  {comment(key)}: {comment(json.dumps(value, sort_keys=True))}"[:100].rstrip()
        for key, value in sorted(model.record.items())
    ]
    count, bits = model.networks.shape[:2].numel(), model.networks.numel()
    text = render("header", networks=count, bits=bits, classes=labels, record=record, body=body)
    return with_prefix(f"{text}\n", name)


def plan_header(model: Model) -> tuple[ExportPlan, Rule, Answer]:
    """What the header computes: the net, the rule of its votes, and whether steps replace bits."""
    plan = plan_export(model)
    plan, rule = fold_sign(model, plan, rule_of(model, plan))
    if max(rule.most) >= MOST_SCORE:
        raise ExportError(
            f"the votes of this model add up to {max(rule.most)}, more than 32 bits hold; "
            "train with fewer networks or smaller votes"
        )
    linear, rule = linear_form(model, plan, rule)
    answer = (linear and answer_by_steps(model, linear, rule, bits_bytes(model, plan))) or Answer()
    return plan, rule, answer


def _basics(model: Model, plan: ExportPlan, rule: Rule) -> str:
    sums = 4 * max(layer.fan_in for layer in plan.layers) + 4
    strings = as_strings(model, plan)
    weights = max(_words(model, plan)) * (5 if strings else 1)
    sizes = [stage.outputs + 32 for stage in plan.stages]
    fan_ins = [layer.fan_in for layer in plan.layers]
    index = max(weights, rule.tables.size, plan.num_inputs, *sizes, *fan_ins)
    score = max(rule.most) * 2 + sums
    return render(
        "basics",
        total=any(layer.kind == "sign_bit" or layer.masked for layer in plan.layers),
        strings=strings,
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
    return sum(_words(model, plan)) > MANY_WORDS and most <= MOST_STRING


def row_bits(model: Model, plan: ExportPlan) -> int:
    """Rows of weights end at words of 32 bits, or of 16 where that saves enough of them."""
    wide, short = sum(_words(model, plan)) * 4, sum(_words(model, plan, 16)) * 2
    worth = wide - short >= max(wide / 8, MORE_CODE) and not as_strings(model, plan)
    return 16 if worth else 32


def _words(model: Model, plan: ExportPlan, bits: int = 32) -> list[int]:
    """Words of `bits` bits of each layer in all networks."""
    count = model.networks.shape[:2].numel()
    return [count * layer.units * -(-layer.fan_in // bits) for layer in plan.layers]


def bits_bytes(model: Model, plan: ExportPlan) -> int:
    """About how much flash it takes on a Cortex-M0+ to make the bits of a row and to sum them."""
    weights = model.networks.shape[:2].numel() * -(-plan.num_inputs // 32) * 4
    if isinstance(model.encoder, BitColumns):
        return weights + SUMS_BYTES + BIT_COLUMNS_BYTES
    columns = columns_of(model.encoder)
    cuts = sum(len(column.cuts) for column in columns if column.kind != "word")
    return weights + SUMS_BYTES + TABLE_BYTES + cuts * size_of(cut_type(columns)) // 8


def _weights(model: Model, plan: ExportPlan) -> str:
    """The tables of all layers, networks outermost."""
    bits, blocks = row_bits(model, plan), []
    for i, layer in enumerate(plan.layers):
        about = f"/* Layer {i + 1}: {layer.units} x {layer.fan_in} weights of each network. */\n"
        rows, name = packed(layer_bits(model, layer), bits), f"tiny_weights_{i}"
        if as_strings(model, plan):
            blocks.append(about + byte_rows(name, rows))
        else:
            words = [f"0x{word:0{bits // 4}x}" for word in rows.ravel().tolist()]
            blocks.append(about + table(f"uint{bits}_t", name, words, 256 // bits))
    return joined(*blocks)


def _layers(plan: ExportPlan) -> list[str]:
    """The functions of layers that this net needs, each once, and the windows of its stages."""
    masked = any(layer.masked for layer in plan.layers)
    blocks = {f"sum {layer.name}": render("sum", layer=layer) for layer in plan.layers}
    windows = [stage.windows for stage in plan.stages if stage.windows]
    if windows:
        size = unsigned(max(max(own.numbers(True)) for own in windows))
        padded = any(own.padding != (0, 0) for own in windows)
        most = max(stage.reads for stage in plan.stages if stage.windows)
        values = {"size": size, "padded": padded, "most": most}
        blocks["windows"] = render("windows", plan=plan, masked=masked, **values)
    if any(stage.is_pool for stage in plan.stages):
        blocks["pool"] = render("pool", any_masked=masked)
    for layer in plan.layers:
        last = layer is plan.last
        if last and plan.num_outputs == 1 and not layer.windows:
            continue  # one sum is computed directly
        values = {"layer": layer, "last": last, "any_masked": masked, "sum_start": sum_start}
        part = "conv" if layer.windows else "dense"
        blocks[f"{part} {layer.name} {last}"] = render(part, **values)
    return list(blocks.values())


def sum_start(layer: Layer, values: str, n: str) -> str:
    """Where the sum of a layer of n inputs begins, in C."""
    if layer.kind == "sign_sign":
        return f"tiny_total(mask, {n})" if layer.masked else f"(tiny_int){n}"
    return f"-tiny_total({values}, {n})" if layer.kind == "sign_bit" else "0"


def vote_values(model: Model, plan: ExportPlan, rule: Rule) -> dict[str, Any]:
    """Values of the template `vote`: from the output of a network to answers for rows of bits."""
    nets, networks = rule.votes.shape
    several, rest = plan.num_outputs > 1, model.scheme == "one-vs-rest"
    tables = rule.score_tables if rule.scores else rule.tables.tolist()
    own = len(set(map(tuple, tables))) > 1  # nets may share one table
    tables = tables if own else tables[:1]
    wide = 2 * max(rule.most) * 256 >= 2**32
    ranked = rule.rank if rest or several else None
    orders = class_order(tables, model.num_classes) if (rest or several) and not ranked else []
    low, high = int(rule.votes.min()), int(rule.votes.max())
    # All networks begin their one sum at the same number, which takes work to find.
    one_sum = plan.stages == (plan.last,) and not several
    return {
        "plan": plan,
        "rule": rule,
        "sum_start": sum_start,
        "several": several,
        "pairs": model.scheme == "pairs",
        "costs": COSTS,
        "certain": CERTAIN * (model.num_classes - 2),
        "least": LEAST,
        "rest": rest,
        "nets": nets > 1,
        "two": not several and nets == 1,
        "one": networks == 1 and not several,
        "plain": bool((rule.votes == 1).all()),
        "vote_type": unsigned(high) if low >= 0 else signed(low, high),
        "started": one_sum and plan.last.kind == "sign_bit",
        "direct": rule.scores is not None,
        "net_most": rule.scores is None and len(set(rule.most)) > 1,
        "divides": nets > 1 or several or not (rule.scores or wide or rule.product),
        "tables": tables,
        "own": own,
        "wide": wide,
        "ranked": ranked,
        "orders": orders,
        "by_order": max(orders, default=256) < 256,
    }
