"""What is trained on a split: small models of bits of growing size, and what people use instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

from footprints.images import WIDTHS, convolutions
from footprints.rows import Features, Rows, split_of
from vitrail import BinaryNetClassifier
from vitrail.export.linear import linear_form
from vitrail.export.plan import plan_export
from vitrail.export.rule import fold_sign, rule_of
from vitrail.lab.rivals import Logistic, majority
from vitrail.learning.compression import Candidate, Compression, best_of
from vitrail.learning.quantised_linear import QuantisedLinear
from vitrail.model import Model
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import TableEncoder

OURS = "vitrail"
MEMBERS = (1, 2, 4, 8, 16, 32)  # of a net: each may have as many bits as a hidden unit
COUNTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)  # bits that a linear model reads
PUBLISHED_COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # and for published points
DIGITS = (2, 4)  # of its weights
CUTS = (  # share of the columns, and thresholds of each; None: as many as the rows afford
    (1.0, None),
    (1.0, 3),
    (0.25, 8),
    (0.0, 8),
)
FEWEST, FEW = 2, 4  # columns of the smallest share, and of any other
LEAVES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)
FORESTS = [(trees, leaves) for trees in (3, 10, 30) for leaves in (4, 8, 16, 32)]
BOOSTED = [(stages, leaves) for stages in (5, 15, 50) for leaves in (2, 4, 8)]
STRENGTHS = (0.1, 1.0, 10.0)  # of logistic regression
SHARES = (1.0, 0.25, 0.0)  # of the columns, that it reads
RATE = 0.3  # of boosting: few stages must do


@dataclass(frozen=True)
class Trained:
    """A classifier with its accuracy on rows held out."""

    method: str
    size: str
    accuracy: float
    learner: Any  # a Model, one of scikit-learn's, or Logistic
    columns: list[str]  # that it reads
    by_votes: float | None = None  # accuracy of a forest whose trees vote, as emlearn's do

    def without_learner(self) -> Trained:
        """Its accuracy alone."""
        return replace(self, learner=None)


def trained(rows: Rows, split: int, part: int) -> list[Trained]:
    """One part of what is trained on a split of a table: ours by a way of cutting, ours for images
    by a width of nets, or the rivals, which come last."""
    seen, held = (rows.taken(one) for one in split_of(rows.labels, split))
    image = part - len(CUTS)
    if 0 <= image < WIDTHS:
        found = convolutions(seen, held, split, image)
        return [Trained(OURS, size, right, net, list(seen.table)) for size, net, right in found]
    best = ranked(seen)
    return list(
        ours(seen, held, best, split, part) if image < 0 else rivals(seen, held, best, split)
    )


def ranked(seen: Rows) -> list[str]:
    """The columns, the most telling first, by how often random trees find them of use."""
    features = Features.fit(seen.table)
    trees = ExtraTreesClassifier(100, max_leaf_nodes=64, random_state=0)
    trees.fit(features.matrix(seen.table), seen.labels)
    use = dict.fromkeys(seen.table, 0.0)
    for (name, _), share in zip(features.columns, trees.feature_importances_, strict=True):
        use[name] += share
    return sorted(use, key=lambda name: -use[name])


def first_of(best: list[str], table: pd.DataFrame, share: float) -> list[str]:
    """The best columns, in the order of the table."""
    count = max(FEW, int(share * len(best))) if share else FEWEST
    kept = set(best[:count])
    return [str(name) for name in table if name in kept]


def ours(seen: Rows, held: Rows, best: list[str], split: int, part: int) -> Iterator[Trained]:
    """Small models of growing size, from one posterior."""
    (columns, encoder), *before = [
        cut_up(seen, best, *CUTS[one]) for one in reversed(range(part + 1))
    ]
    if any(encoder.bit_names == other.bit_names for _, other in before):
        return  # there are too few columns or values for another way of cutting
    read = f"{len(columns)} columns, {CUTS[part][1] or 'usual'} cuts"
    for name, model, right in compressed(seen, held, encoder, split, (*COUNTS, None) * (part == 0)):
        yield Trained(OURS, f"{name}, {read}", right, model, columns)


def cut_up(
    seen: Rows, best: list[str], share: float, cuts: int | None
) -> tuple[list[str], TableEncoder | BitColumns]:
    """Some of the columns, and how they become bits."""
    columns = first_of(best, seen.table, share)
    if seen.plain:
        return columns, BitColumns.fit(seen.table[columns], 0, 1)
    return columns, TableEncoder.fit(seen.table[columns], thresholds=cuts)


def compressed(
    seen: Rows,
    held: Rows,
    encoder: TableEncoder | BitColumns,
    seed: int,
    counts: Sequence[int | None],
    most: Sequence[int] = MEMBERS,
) -> Iterator[tuple[str, Model, float]]:
    """Small models of growing size from one posterior: what `compress` chooses, and linear models
    that read `counts` bits. The name of each, the model, and its accuracy on rows held out."""
    net = BinaryNetClassifier(predictor="posterior", random_state=seed, device="cpu")
    net.fit(encoder.transform(seen.table), seen.labels)
    model = replace(net.model_, encoder=encoder)
    each = (model.program.num_inputs + 1) * model.networks.shape[1]
    compression = Compression(model, model.inputs(seen.table))
    chosen = {}
    for members in most:
        _, chosen[f"{members} members"] = best_of(compression.curve(members * each), 0.0)
    if counts:
        linear = compression.compressors[QuantisedLinear.name]
        assert isinstance(linear, QuantisedLinear)
        fewer = [count for count in counts if (count or 0) < len(encoder.selectable)]
        for count, digits in product(fewer, DIGITS):
            size = f"linear model of {count or 'all'} bits, {digits} digits"
            chosen[size] = Candidate(linear.name, linear.size(count, digits))
    for name, one in chosen.items():
        small = compression.build(one)
        right = small.labels.decode(small.answers(held.table).numbers) == held.labels
        yield name, small, float(np.mean(right))


def published(rows: Rows, split: int) -> list[tuple[str, int, float]]:
    """Size, bytes of model and accuracy of small models of growing size."""
    seen, held = (rows.taken(part) for part in split_of(rows.labels, split))
    encoder = TableEncoder.fit(seen.table)
    return [
        (name, model_bytes(model), right)
        for name, model, right in compressed(
            seen, held, encoder, split, PUBLISHED_COUNTS, MEMBERS[:3]
        )
    ]


def model_bytes(model: Model) -> int:
    """Bytes of weights, votes and tables that an answer needs: no encoder, no code."""
    plan = plan_export(model)
    plan, rule = fold_sign(model, plan, rule_of(model, plan))
    _, rule = linear_form(model, plan, rule)
    weights = sum(layer.units * layer.fan_in for layer in plan.layers) * rule.votes.size
    votes = 0 if (rule.votes == 1).all() else np.unique(rule.votes, axis=0).size
    if model.num_classes == 2:
        return -(-weights // 8) + votes + 2  # the score that class 1 begins at
    if rule.rank and model.scheme != "pairs":
        return -(-weights // 8) + votes  # the largest score answers
    tables = rule.score_tables if rule.scores else rule.tables.tolist()
    free = rule.rank and model.scheme != "pairs"  # the highest score answers
    probabilities = 0 if free else sum(map(len, set(map(tuple, tables))))
    return -(-weights // 8) + votes + 2 * probabilities


def rivals(seen: Rows, held: Rows, best: list[str], split: int) -> Iterator[Trained]:
    """Trees, forests, boosting and logistic regression of many sizes."""
    features = Features.fit(seen.table)
    x, unseen = features.matrix(seen.table), features.matrix(held.table)
    made: list[tuple[str, str, Any]] = [
        ("tree", f"{leaves} leaves", DecisionTreeClassifier(max_leaf_nodes=leaves))
        for leaves in LEAVES
    ]
    made += [
        ("forest", f"{trees} x {leaves}", RandomForestClassifier(trees, max_leaf_nodes=leaves))
        for trees, leaves in FORESTS
    ]
    made += [
        ("boosting", f"{stages} x {leaves}", boosting(stages, leaves)) for stages, leaves in BOOSTED
    ]
    for method, size, learner in made:
        learner.set_params(random_state=split).fit(x, seen.labels)
        right = float(np.mean(learner.predict(unseen) == held.labels))
        votes = (
            float(np.mean(majority(learner, unseen) == held.labels)) if method == "forest" else None
        )
        yield Trained(method, size, right, learner, list(seen.table), votes)
    everyone = np.arange(len(seen.labels))
    for share in SHARES:
        columns = first_of(best, seen.table, share)
        if share < 1 and len(columns) == seen.table.shape[1]:
            continue
        for strength in STRENGTHS:
            learner = Logistic.fit(seen.taken(everyone, columns).table, seen.labels, strength)
            right = float(np.mean(learner.predict(held.table) == held.labels))
            yield Trained(
                "logistic", f"{len(columns)} columns, C={strength:g}", right, learner, columns
            )


def boosting(stages: int, leaves: int) -> GradientBoostingClassifier:
    """`stages` stages of trees with at most `leaves` leaves, of any depth."""
    settings: dict[str, Any] = {"max_leaf_nodes": leaves, "max_depth": None, "learning_rate": RATE}
    return GradientBoostingClassifier(n_estimators=stages, **settings)
