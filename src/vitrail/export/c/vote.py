"""The nets' outputs in C, their votes, and the answer and probabilities that those mean."""

from __future__ import annotations

from typing import Any

from vitrail.export.c.text import signed, unsigned
from vitrail.export.plan import ExportPlan, Layer
from vitrail.export.rule import Rule, class_order
from vitrail.model import Model
from vitrail.model.voting import CERTAIN, COSTS, LEAST


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
