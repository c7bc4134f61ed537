"""Linear threshold units, one per example: h = Σ_i x_i·w_i, satisfied when [h > 0] is the label."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vitrail.factors.base import (
    HARD,
    Factors,
    checked_labels,
    common_parts,
    merged_parts,
    selected_parts,
)
from vitrail.graph import Scope
from vitrail.nn import Coding, checked_inputs, low_value, values


@dataclass(frozen=True, kw_only=True)
class Perceptron(Factors):
    """inputs x in {−1, 0, 1} and label y of each example; flips cost O(1) from the sum h."""

    inputs: Tensor  # (F, A) int8
    labels: Tensor  # (F,) bool
    low: int  # value of a zero bit

    def margin(self, states: Tensor) -> Tensor:
        """h of configurations (F or 1, S, A) bool: (F, S) int32, exact."""
        # |h| ≤ A < 2²⁴, so float32 products are exact and go through a matrix product
        weights, inputs = values(states, self.low), self.inputs.to(torch.float32)
        if states.shape[0] == 1:
            return (inputs @ weights[0].T).to(torch.int32)
        return torch.bmm(weights, inputs[:, :, None])[..., 0].to(torch.int32)

    def score(self, states: Tensor) -> Tensor:
        return (self.margin(states) > 0) == self.labels[:, None]

    def flips(self, states: Tensor) -> tuple[Tensor, Tensor]:
        # h with w_i = 1 and with w_i = 0 differ by (1 − low)·x_i, and h is one of the two
        step = (self.inputs.to(torch.int16) * (1 - self.low))[:, None, :]
        with_zero = self.margin(states)[:, :, None].to(torch.int16) - step * states
        labels = self.labels[:, None, None]
        return (with_zero + step > 0) == labels, (with_zero > 0) == labels

    @property
    def cheap_flips(self) -> bool:
        return True

    def select(self, index: Tensor) -> Perceptron:
        parts = selected_parts(self, index)
        return replace(self, **parts, inputs=self.inputs[index], labels=self.labels[index])

    def merge_key(self) -> Hashable:
        return Perceptron, self.arity, self.low

    def merge(self, blocks: Sequence[Perceptron]) -> Perceptron:
        return Perceptron(
            **merged_parts(blocks),
            inputs=torch.cat([block.inputs for block in blocks]),
            labels=torch.cat([block.labels for block in blocks]),
            low=self.low,
        )


def perceptron(
    inputs: Tensor,
    labels: Tensor,
    beta: float | Tensor = HARD,
    coding: Coding = "bipolar",
    scope: Scope | None = None,
    weight: Tensor | None = None,
) -> Perceptron:
    """One linear threshold factor per row of inputs (F, A) in {−1, 0, 1}, labels (F,) in {0, 1}.

    >>> factors = perceptron(torch.tensor([[1, -1, 1]]), torch.tensor([1]))
    >>> factors.score(torch.tensor([[[True, False, True]]]))
    tensor([[True]])
    """
    inputs = checked_inputs(inputs)
    if inputs.ndim != 2:
        raise ValueError(
            f"inputs must be a table (examples, weights), got shape {tuple(inputs.shape)}; "
            "flatten images first"
        )
    num_factors, arity = inputs.shape
    if arity > 2**14:
        raise ValueError(f"a perceptron has at most {2**14} weights, got {arity}")
    parts = common_parts(num_factors, arity, scope, beta, weight)
    labels = checked_labels(labels, num_factors, 2).to(torch.bool)
    return Perceptron(**parts, inputs=inputs, labels=labels, low=low_value(coding))
