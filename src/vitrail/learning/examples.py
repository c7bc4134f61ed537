"""Training rows as examples of nets: merged where equal, divided among folds and nets, crossed.

Rows of each class are held out in a random order, so a split does not depend on how a file is
sorted. A fold is made of rows: the rows of an example of weight 500 are divided among the folds,
so that a row that repeats is seen in training as it will be seen later, and a row with both labels
is scored by networks that saw both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from vitrail.draws import Purpose, random_order, random_words
from vitrail.factors import network
from vitrail.graph import FactorGraph, factor_graph, join
from vitrail.model.voting import Scheme
from vitrail.nn import Program

COLUMNS = ("inputs", "labels", "weight", "rows")
RARE = 0.01  # share of the weight that either label of a net of two classes has at least
CROSS_PROBABILITY = 0.3  # that a column comes from the other row


@dataclass(frozen=True)
class Examples:
    """Distinct training examples, in an order that is a function of the set alone.

    Equal rows with equal labels are one example with their weights added up, which is the same
    graph: potentials multiply. So repeating a row and weighting it give the same network.
    """

    inputs: Tensor  # (F, I) int8, or uint8 of whole numbers
    labels: Tensor  # (F,) int64
    weight: Tensor  # (F,) float64 > 0: rows times class weight
    rows: Tensor  # (F,) float64 > 0: the number of rows of an example, by their sample weights
    complete: bool = False  # whether they are all combinations of what their columns hold

    @staticmethod
    def distinct(inputs: Tensor, labels: Tensor, sample_weight: Tensor) -> Examples:
        """Merge equal rows of bits (0/1 or ±1) or whole numbers; those without weight are left out.

        Cost: a sort of the rows, an eighth of a byte per input.
        """
        counts = sample_weight > 0
        inputs, labels, sample_weight = inputs[counts], labels[counts], sample_weight[counts]
        _, first, place = np.unique(_keys(inputs, labels), return_index=True, return_inverse=True)
        totals = np.bincount(place.reshape(-1), weights=sample_weight.numpy(), minlength=len(first))
        kept, rows = torch.from_numpy(first), torch.from_numpy(totals)
        return Examples(inputs[kept], labels[kept], rows, rows)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_rows(self) -> int:
        """The number of rows of all examples."""
        return round(float(self.rows.sum()))

    def where(self, chosen: Tensor) -> Examples:
        """The examples at which `chosen` (F,) bool holds, or those with these indices."""
        return replace(
            self,
            inputs=self.inputs[chosen],
            labels=self.labels[chosen],
            weight=self.weight[chosen],
            rows=self.rows[chosen],
        )

    def faded(self, kept: float) -> Examples:
        """The examples as evidence that weighs less than it did."""
        return replace(self, weight=self.weight * kept, rows=self.rows * kept)

    def share(self, share: Tensor) -> Examples:
        """A part of the rows: of each example the share (F,) in [0, 1]."""
        kept = share > 0
        part, share = self.where(kept), share[kept]
        return replace(part, weight=part.weight * share, rows=part.rows * share)

    def merged(self, more: Examples) -> Examples:
        """The examples of both; class weights have to be set again."""
        return Examples.distinct(
            torch.cat([self.inputs, more.inputs]),
            torch.cat([self.labels, more.labels]),
            torch.cat([self.rows, more.rows]),
        )

    def weighted(self, class_weight: Tensor) -> Examples:
        """The examples with weights rows × class_weight (C,)."""
        return replace(self, weight=self.rows * class_weight[self.labels])

    def with_columns(self, spans: Sequence[slice]) -> Examples:
        """The examples, knowing whether they are complete; spans: the inputs of each column.

        One column alone is no proof: numbers of rows (1, 2, 3, …) are complete too.
        """
        product, varying = 1, 0
        for span in spans:
            states = len(np.unique(_keys(self.inputs[:, span])))
            product *= states
            varying += states > 1
            if product > len(self):
                break
        distinct = len(np.unique(_keys(self.inputs)))
        return replace(self, complete=varying > 1 and product == distinct)

    def subsampled(self, most: int, seed: int) -> Examples:
        """At most about `most` random examples, reweighted to the rows of all, class by class.

        A class keeps its share of them, but at least one.
        """
        if len(self) <= most:
            return self
        order = torch.from_numpy(random_order(seed, len(self)))
        parts = []
        for number in self.labels.unique().tolist():
            of_class = order[self.labels[order] == number]
            kept = of_class[: max(1, most * len(of_class) // len(self))].sort().values
            scale = float(self.rows[of_class].sum() / self.rows[kept].sum())
            part = self.where(kept)
            parts.append(replace(part, weight=part.weight * scale, rows=part.rows * scale))
        columns = {name: torch.cat([getattr(part, name) for part in parts]) for name in COLUMNS}
        return replace(self, **columns)


def _keys(inputs: Tensor, labels: Tensor | None = None) -> np.ndarray:
    """Rows of inputs, with their labels, as one value each, (rows,): eight bits are a byte."""
    whole = inputs.dtype == torch.uint8
    rows = inputs.numpy() if whole else np.packbits((inputs > 0).numpy(), axis=1)
    if labels is not None:
        number = labels.numpy().astype(">u4")[:, None].view(np.uint8)
        rows = np.concatenate([rows, number], 1)
    rows = np.ascontiguousarray(rows)
    return rows.view(np.dtype((np.void, rows.shape[1])))[:, 0]


def stratified_folds(examples: Examples, folds: int, seed: int) -> Tensor:
    """The share of each example's rows in each fold, (folds, F) float64; columns add up to one.

    The rows of each class, in random order of their examples, are assigned to the folds in turn. An
    example of m rows has max(1, round(m)) of them. Where the examples are all combinations of what
    their columns hold, no new row is unlike those seen: examples of fewer rows than folds are then
    divided evenly, so that none is held out whole.
    """
    by_class = torch.from_numpy(_by_class(examples.labels.numpy(), seed))
    rows = examples.rows.round().clamp(min=1).to(torch.int64)
    end = rows[by_class].cumsum(0)
    start = end - rows[by_class]
    fold = torch.arange(folds)[:, None]
    counts = (end - fold + folds - 1) // folds - (start - fold + folds - 1) // folds
    share = torch.empty(folds, len(examples), dtype=torch.float64)
    share[:, by_class] = counts.double() / rows[by_class]
    if examples.complete:
        share[:, rows < folds] = 1 / folds
    return share


def split_rows(labels: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows held out, ascending: of every class the share, rounded down."""
    _, codes, sizes = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
    by_class = _by_class(codes, seed)
    place = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    held = np.zeros(len(codes), bool)
    held[by_class] = place < np.repeat((share * sizes).astype(np.int64), sizes)
    return np.flatnonzero(~held), np.flatnonzero(held)


def _by_class(labels: np.ndarray, seed: int) -> np.ndarray:
    """Indices of labels (F,) in a random order, class after class."""
    order = random_order(seed, len(labels))
    return order[np.argsort(labels[order], kind="stable")]


def nets_of(examples: Examples, num_classes: int, scheme: Scheme) -> list[Examples]:
    """The examples of each net: by the scheme, all of them or those of a pair of classes.

    Label 1 is the second class of a pair, or the class against the rest.
    """
    if scheme == "argmax":
        return [examples]
    if scheme == "one-vs-rest":
        nets = [(examples, number) for number in range(num_classes)]
    else:
        pairs = combinations(range(num_classes), 2)
        nets = [
            (examples.where((examples.labels == low) | (examples.labels == high)), high)
            for low, high in pairs
        ]
    return [replace(one, labels=(one.labels == high).to(torch.int64)) for one, high in nets]


def label_factors(net: Examples, scheme: Scheme) -> Tensor:
    """How often a row of label 0 and of label 1 counts in a net of chains, (2,), whole numbers.

    Against the rest, the rarer label counts more, by the root of how much rarer it is: a net that
    never answers its class is wrong on few rows. In other nets a label with less than RARE of the
    weight is raised to that share: networks that miss four rows of 2,000 are nearly as likely as
    those that get them right, and say little about which rows are like them.
    """
    factor = torch.ones(2, dtype=torch.float64)
    total = torch.bincount(net.labels, net.weight, 2)
    if scheme == "one-vs-rest":
        rare = total > 0
        factor[rare] = (total.sum() / total[rare] - 1).sqrt().round().clamp(min=1)
    else:
        rare = (total > 0) & (total < RARE * total.sum())
        factor[rare] = (RARE * total.sum() / total[rare]).ceil()
    return factor


def with_rare_raised(net: Examples, scheme: Scheme) -> Examples:
    """The examples of a net, weighted by `label_factors`; calibration counts rows as they are."""
    return replace(net, weight=net.weight * label_factors(net, scheme)[net.labels])


def graph_of(
    program: Program, nets: Sequence[Examples], beta: float, restarts: int = 1
) -> FactorGraph:
    """R·N problems as one graph; an example of weight k counts as k of them: its beta is k·beta."""
    graphs = [
        factor_graph(
            network(
                program,
                one.inputs.unflatten(1, program.input_shape),
                one.labels,
                float(beta) * one.weight,
                weight=one.weight,
            )
        )
        for one in nets
    ] * restarts
    return join(graphs) if len(graphs) > 1 else graphs[0]


def crossed(rows: Tensor, columns: Sequence[slice], count: int, seed: int) -> Tensor:
    """`count` new rows, each one of `rows` with some columns of another, (count, I)."""
    words = random_words(seed, Purpose.ROWS, count * (2 + len(columns))).reshape(count, -1)
    first, second = (torch.from_numpy((words[:, k] % len(rows)).astype(np.int64)) for k in (0, 1))
    taken = torch.from_numpy(words[:, 2:] < np.uint64(CROSS_PROBABILITY * 2**64))
    made, other = rows[first].clone(), rows[second]
    for number, column in enumerate(columns):
        made[:, column] = torch.where(taken[:, number, None], other[:, column], made[:, column])
    return made
