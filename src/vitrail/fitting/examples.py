"""Training rows as examples of nets: merged where equal, split among nets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from vitrail.data.draws import random_order
from vitrail.factors import network
from vitrail.graph import FactorGraph, factor_graph, join
from vitrail.model.voting import Scheme
from vitrail.nn import Program

REMEMBERED = 100  # examples of each class that a later batch without that class is taught with


@dataclass(frozen=True)
class Examples:
    """Distinct training examples, in an order that is a function of the set alone.

    Equal rows with equal labels are one example with their weights added up, which is the same
    graph: potentials multiply. So repeating a row and weighting it give the same network.
    """

    inputs: Tensor  # (F, I) int8
    labels: Tensor  # (F,) int64
    weight: Tensor  # (F,) float64 > 0: rows times class weight
    rows: Tensor  # (F,) float64 > 0: how many rows an example stands for, by their sample weights

    @staticmethod
    def distinct(
        inputs: Tensor, labels: Tensor, sample_weight: Tensor, class_weight: Tensor | None = None
    ) -> Examples:
        """Merge equal rows of bits (0/1 or ±1); rows without weight are left out.

        class_weight: (C,) float64, of each class; None weighs all alike.

        Cost: a sort of the rows, an eighth of a byte an input.
        """
        counts = sample_weight > 0
        inputs, labels, sample_weight = inputs[counts], labels[counts], sample_weight[counts]
        spelled = np.packbits((inputs > 0).numpy(), axis=1)
        number = labels.numpy().astype(">u4")[:, None].view(np.uint8)
        rows = np.ascontiguousarray(np.concatenate([spelled, number], 1))
        whole = rows.view(np.dtype((np.void, rows.shape[1])))[:, 0]
        _, first, place = np.unique(whole, return_index=True, return_inverse=True)
        totals = np.bincount(place.reshape(-1), weights=sample_weight.numpy(), minlength=len(first))
        kept, rows = torch.from_numpy(first), torch.from_numpy(totals)
        weight = rows if class_weight is None else rows * class_weight[labels[kept]]
        return Examples(inputs[kept], labels[kept], weight, rows)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_rows(self) -> int:
        """How many rows the examples stand for."""
        return round(float(self.rows.sum()))

    def where(self, chosen: Tensor) -> Examples:
        """The examples at which `chosen` (F,) bool holds, or those with these indices."""
        return Examples(
            self.inputs[chosen], self.labels[chosen], self.weight[chosen], self.rows[chosen]
        )

    def share(self, share: Tensor) -> Examples:
        """A part of the rows: of each example the share (F,) in [0, 1]."""
        kept = share > 0
        part, share = self.where(kept), share[kept]
        return replace(part, weight=part.weight * share, rows=part.rows * share)

    def and_also(self, more: Examples) -> Examples:
        """Both together; equal ones are not merged."""
        return Examples(
            torch.cat([self.inputs, more.inputs]),
            torch.cat([self.labels, more.labels]),
            torch.cat([self.weight, more.weight]),
            torch.cat([self.rows, more.rows]),
        )

    def pair(self, low: int, high: int) -> Examples:
        """The examples of two classes; label 1 is the second."""
        both = self.where((self.labels == low) | (self.labels == high))
        return replace(both, labels=(both.labels == high).to(torch.int64))

    def against(self, number: int) -> Examples:
        """All examples; label 1 is one class, label 0 every other."""
        return replace(self, labels=(self.labels == number).to(torch.int64))

    def remembered(self, seed: int) -> Examples:
        """A few examples of every class, at random."""
        order = torch.from_numpy(random_order(seed, len(self)))
        kept = [order[self.labels[order] == c][:REMEMBERED] for c in self.labels.unique().tolist()]
        return self.where(torch.cat(kept)) if kept else self


def nets_of(
    examples: Examples, num_classes: int, scheme: Scheme, memory: Examples | None = None
) -> list[Examples]:
    """The examples of each net: by the scheme, all of them or those of a pair of classes.

    memory: examples of earlier batches. A net that would see only some of its classes is taught
    with what is remembered of the others, which together weigh as much as a class that is there:
    without them the net that always gives the class at hand would be the best. A net that would
    see none of its classes has no examples.
    """
    if scheme == "one-vs-rest":
        return [
            _completed(examples.against(number), memory and memory.against(number), 2)
            for number in range(num_classes)
        ]
    if scheme == "argmax":
        return [_completed(examples, memory, num_classes)]
    made = []
    for low, high in combinations(range(num_classes), 2):
        known = None if memory is None else memory.pair(low, high)
        made.append(_completed(examples.pair(low, high), known, 2))
    return made


def _completed(examples: Examples, memory: Examples | None, num_classes: int) -> Examples:
    totals = torch.bincount(examples.labels, examples.weight, num_classes)
    absent = totals == 0
    if memory is None or not bool(absent.any()) or bool(absent.all()):
        return examples
    added = memory.where(absent[memory.labels])
    counts = torch.bincount(added.labels, minlength=num_classes).clamp(min=1)
    each = totals[~absent].mean() / counts
    return examples.and_also(replace(added, weight=each[added.labels]))


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
