"""One C99 header that is also C++17: the net, the encoder and their checks."""

from __future__ import annotations

import json
import re

from vitrail.export.c.check import check_code
from vitrail.export.c.encoder import encoder_code
from vitrail.export.c.text import (
    KEYWORDS,
    byte_rows,
    comment,
    filled,
    joined,
    packed,
    renamed,
    signed,
    string,
    table,
    unsigned,
    words,
)
from vitrail.export.errors import ExportError
from vitrail.export.golden import Rows
from vitrail.export.plan import Layer, Plan, Pool, planned
from vitrail.export.rule import Rule, folded, ordered, rule_of
from vitrail.model import Model

MOST_SCORE = 2**30  # twice a score fits 32 bits
MORE_CODE = 32  # bytes, that more words in a row take
MANY_WORDS = 2**14  # of weights: beyond, they are strings, for the compiler's sake
MOST_STRING = 4092  # bytes: C promises to take 4095 and an end
STARTS = {  # where the sum of a kind begins, for values x
    "sign_sign": "(tiny_int)n",
    "sign_bit": "-tiny_total(x, n)",
    "bit_sign": "0",
    "bit_bit": "0",
}


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
    labels = ", ".join(string(str(label)) for label in model.labels.classes)
    blocks = [
        _basics(model, plan, rule),
        _weights(model, plan),
        *_layers(plan),
        _vote(model, plan, rule),
        encoder_code(model),
        filled("faces", labels=labels),
        check_code(model, rows),
    ]
    guard = "TINY_H"
    text = f"{_about(model)}\n#ifndef {guard}\n#define {guard}\n\n{joined(*blocks)}\n\n#endif\n"
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
        "  tiny_proba(&row, proba)    the same, and the chance of each class in parts of 65535",
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


def _basics(model: Model, plan: Plan, rule: Rule) -> str:
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


def as_strings(model: Model, plan: Plan) -> bool:
    """Whether weights are written as strings: there are many, and every row is short enough."""
    most = max(-(-layer.fan_in // 32) * 4 for layer in plan.layers)
    return sum(_words(model, layer) for layer in plan.layers) > MANY_WORDS and most <= MOST_STRING


def row_bits(model: Model, plan: Plan) -> int:
    """Rows of weights end at words of 32 bits, or of 16 where that saves enough of them."""
    wide, short = (
        model.networks.shape[:2].numel()
        * sum(layer.units * -(-layer.fan_in // bits) * bits // 8 for layer in plan.layers)
        for bits in (32, 16)
    )
    worth = wide - short >= max(wide / 8, MORE_CODE) and not as_strings(model, plan)
    return 16 if worth else 32


def _words(model: Model, layer: Layer) -> int:
    """Words of 32 bits of a layer in all networks."""
    return model.networks.shape[:2].numel() * layer.units * -(-layer.fan_in // 32)


def _weights(model: Model, plan: Plan) -> str:
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


def _layers(plan: Plan) -> list[str]:
    """The functions of layers that this net needs, each once."""
    blocks: dict[str, str] = {}
    convs = [stage for stage in plan.stages if stage.windows]
    any_masked = any(layer.masked for layer in plan.layers)
    common = ["any_masked"] if any_masked else []
    for layer in plan.layers:
        name, flags = _name(layer), [layer.kind, *["masked"] * layer.masked]
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
        values = {"kind": _name(stage), "start": start}
        if stage.windows:
            values["start"] = start.replace("(x,", "(window,")
            blocks[f"conv {_name(stage)} {last}"] = filled("conv", flags, **values)
        else:
            blocks[f"dense {_name(stage)} {last}"] = filled("dense", flags, **values)
    return list(blocks.values())


def _name(layer: Layer) -> str:
    return layer.kind + "_masked" * layer.masked


def _windows(plan: Plan, stages: list[Layer | Pool], masked: bool) -> str:
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


def _network(plan: Plan) -> str:
    """The body of `tiny_output` or `tiny_outputs`."""
    lines, values = [], "x0"
    layers = 0
    for number, stage in enumerate(plan.stages):
        to = f"x{number + 1}"
        if isinstance(stage, Pool):
            lines.append(f"    tiny_word {to}[TINY_WORDS({stage.outputs}u)];")
            lines.append(f"    tiny_pool({values}, {to}, &tiny_windows_{number});")
            values = to
            continue
        n, units = f"{stage.fan_in}u", f"{stage.units}u"
        weights = f"(const tiny_stored *)tiny_weights_{layers} + i * ({units} * TINY_STRIDE({n}))"
        where = f"&tiny_windows_{number}" if stage.windows else n
        what = f"tiny_{'conv' if stage.windows else 'dense'}_{_name(stage)}"
        layers += 1
        if stage is not plan.last:
            lines.append(f"    tiny_word {to}[TINY_WORDS({stage.outputs}u)];")
            lines.append(f"    {what}({weights}, {values}, {to}, {units}, {where});")
            values = to
        elif plan.num_outputs == 1 and not stage.windows:
            start = "start" if started(plan) else _start(stage, values)
            sum_ = f"tiny_sum_{_name(stage)}({weights}, {values}, {n}, {start})"
            low = "" if plan.last_low is None else f" > 0 ? 1 : {plan.last_low}"
            lines.append(f"    return {sum_}{low};")
        elif plan.num_outputs == 1:
            low = "" if plan.last_low is None else f" > 0 ? 1 : {plan.last_low}"
            lines.append("    tiny_int h[1];")
            lines.append(f"    {what}_last({weights}, {values}, h, {units}, {where});")
            lines.append(f"    return h[0]{low};")
        else:
            lines.append(f"    {what}_last({weights}, {values}, h, {units}, {where});")
            if plan.last_low is not None:
                lines.append("    for (i = 0; i < TINY_CLASSES; i++) {")
                lines.append(f"        h[i] = h[i] > 0 ? 1 : {plan.last_low};\n    }}")
    return "\n".join(lines)


def started(plan: Plan) -> bool:
    """Whether all networks begin their one sum at the same number, which takes work to find."""
    return plan.stages == (plan.last,) and plan.last.kind == "sign_bit" and plan.num_outputs == 1


def _start(layer: Layer, values: str) -> str:
    """Where the sum of a layer of no windows begins."""
    n = f"{layer.fan_in}u"
    start = STARTS[layer.kind].replace("(x,", f"({values},").replace(" n)", f" {n})")
    return str(layer.fan_in) if layer.kind == "sign_sign" else start


def _vote(model: Model, plan: Plan, rule: Rule) -> str:
    nets, networks = rule.votes.shape
    several = plan.num_outputs > 1
    pairs, rest = model.scheme == "pairs", model.scheme == "one-vs-rest"
    one = networks == 1 and not several
    plain = bool((rule.votes == 1).all())
    number = f"net * {networks}u + k" if nets > 1 else "k"
    number = ("net" if nets > 1 else "0") if one else number
    kind = unsigned(int(rule.votes.max()))
    if rule.votes.min() < 0:
        kind = signed(int(rule.votes.min()), int(rule.votes.max()))
    blocks, vote = [], "1"
    if not plain:
        votes = map(str, rule.votes.ravel().tolist())
        blocks.append("/* Votes of networks. */\n" + table(kind, "tiny_votes", votes))
        vote = f"(tiny_score)({kind})TINY_LOAD{kind.strip('uint_')}(tiny_votes + {number})"
    margin = "tiny_clip(2 * {} - 1)" if rule.clips else "(2 * {} - 1)"
    begun = ", start" if started(plan) else ""
    output = f"tiny_output({number}, x{begun})"
    if plan.last_low == 0 and not rule.clips:
        vote_of_h = f"{output} ? {vote} : -{vote}"
    else:
        vote_of_h = ("" if plain else f"{vote} * ") + margin.format(f"(tiny_score){output}")
    direct = rule.scores is not None
    tables = rule.score_tables if rule.scores else rule.tables.tolist()
    own = len(set(map(tuple, tables))) > 1  # nets may share one table
    kept = tables if own else tables[:1]
    by_most = not direct and len(set(rule.most)) > 1
    wide = 2 * max(rule.most) * 256 >= 2**32
    flags = {
        "several": several,
        "pairs": pairs,
        "rest": rest,
        "nets": nets > 1,
        "two": not several and nets == 1,
        "one": one,
        "started": started(plan),
        "clips": rule.clips,
        "direct": direct,
        "net_most": by_most,
        "divides": nets > 1 or several or not (direct or wide),
    }
    most = max(rule.most)
    if flags["net_most"]:
        blocks.append(table("uint32_t", "tiny_most", map(str, rule.most)))
    orders = ordered(kept, model.num_classes) if rest or several else []
    flags["placed"] = max(orders, default=256) < 256
    code = filled(
        "vote",
        [name for name, on in flags.items() if on],
        network=_network(plan),
        clip=rule.clip,
        networks=networks,
        far=2 * plan.last.fan_in + 2,
        vote_of_lead=("" if plain else f"{vote} * ") + margin.format("lead"),
        vote_of_h=vote_of_h,
        start=_start(plan.last, "x") if started(plan) else "",
        start_parameter=", tiny_int start" if started(plan) else "",
        start_argument=begun,
        start_of_bits=", tiny_start(bits->word)" if started(plan) else "",
        by="score" if direct else "its level from 0 to 256",
        by_net=" and net" if own else "",
        chances=table("uint16_t", "tiny_chances", [str(q) for row in kept for q in row]),
        orders=table("uint8_t", "tiny_orders", map(str, orders)),
        net_parameter=", tiny_index net" if own or by_most else "",
        net_argument=", net" if own or by_most else "",
        table_of_net=f"net * {len(tables[0])}u + " if own else "",
        first=rule.scores.first if rule.scores else 0,
        step=rule.scores.step if rule.scores else 1,
        wide="uint64_t" if wide else "uint32_t",
        divide="" if wide else "tiny_divide",
        over="/" if wide else ",",
        most=most,
        twice=2 * most,
        cut=rule.cut,
        num_pairs=nets,
    )
    return joined(*blocks, code)
