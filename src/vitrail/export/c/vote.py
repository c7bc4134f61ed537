"""The nets' outputs in C, their votes, and the answer and probabilities that those mean."""

from __future__ import annotations

from vitrail.export.c.text import filled, joined, loaded, signed, table, unsigned
from vitrail.export.plan import ExportPlan, Layer, Pool
from vitrail.export.rule import Rule, ordered
from vitrail.model import Model

STARTS = {  # where the sum of a kind begins, for values x
    "sign_sign": "(tiny_int)n",
    "sign_bit": "-tiny_total(x, n)",
    "bit_sign": "0",
    "bit_bit": "0",
}


def layer_name(layer: Layer) -> str:
    """What the functions of a layer are called."""
    return layer.kind + "_masked" * layer.masked


def _network(plan: ExportPlan) -> str:
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
        what = f"tiny_{'conv' if stage.windows else 'dense'}_{layer_name(stage)}"
        layers += 1
        if stage is not plan.last:
            lines.append(f"    tiny_word {to}[TINY_WORDS({stage.outputs}u)];")
            lines.append(f"    {what}({weights}, {values}, {to}, {units}, {where});")
            values = to
        elif plan.num_outputs == 1 and not stage.windows:
            start = "start" if started(plan) else _start(stage, values)
            sum_ = f"tiny_sum_{layer_name(stage)}({weights}, {values}, {n}, {start})"
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


def started(plan: ExportPlan) -> bool:
    """Whether all networks begin their one sum at the same number, which takes work to find."""
    return plan.stages == (plan.last,) and plan.last.kind == "sign_bit" and plan.num_outputs == 1


def _start(layer: Layer, values: str) -> str:
    """Where the sum of a layer of no windows begins."""
    n = f"{layer.fan_in}u"
    start = STARTS[layer.kind].replace("(x,", f"({values},").replace(" n)", f" {n})")
    return str(layer.fan_in) if layer.kind == "sign_sign" else start


def vote_code(model: Model, plan: ExportPlan, rule: Rule) -> str:
    """From the output of a network to the answers for rows of bits."""
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
        vote = f"(tiny_score){loaded(kind, f'tiny_votes + {number}')}"
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
        "divides": nets > 1 or several or not (direct or wide or rule.product),
    }
    most = max(rule.most)
    if flags["net_most"]:
        blocks.append(table("uint32_t", "tiny_most", map(str, rule.most)))
    ranked = (rest or several) and rule.rank
    orders = ordered(kept, model.num_classes) if (rest or several) and not ranked else []
    flags["by_score"], flags["by_place"] = ranked == "score", ranked == "level"
    flags["by_order"] = max(orders, default=256) < 256
    multiplier, shift = rule.product or (0, 0)
    flags["multiplies"] = multiplier > 0
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
        load_rank="TINY_LOAD8(tiny_orders" if flags["by_order"] else "TINY_LOAD16(tiny_chances",
        multiplier=multiplier,
        shift=shift,
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
