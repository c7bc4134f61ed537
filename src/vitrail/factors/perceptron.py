"""Linear threshold units, one per example: h = Σ_i x_i·w_i, satisfied when [h > 0] is the label."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from vitrail.factors.base import HARD, Classifiers, checked_labels, common_parts
from vitrail.graph import Scope
from vitrail.nn import Coding, checked_inputs, low_value, values

MAX_KEPT = 2**24  # inputs whose float32 form is kept: 64 MiB
_FLOATS = WeakTensorKeyDictionary()  # int8 inputs → float32


@dataclass(frozen=True, kw_only=True)
class Perceptron(Classifiers):
    """inputs (F, A) in {−1, 0, 1}; flips cost O(1) from the sum h."""

    low: int  # value of a zero bit

    def outputs(self, states: Tensor) -> Tensor:
        # |h| ≤ A < 2²⁴, so float32 products are exact and go through a matrix product
        weights = values(states, self.low)
        if states.shape[0] == 1:
            return (_as_floats(self.inputs) @ weights[0].T)[..., None]
        return torch.bmm(weights, self.inputs.to(torch.float32)[:, :, None])

    def flips(self, states: Tensor) -> tuple[Tensor, Tensor]:
        # h with w_i = 1 and with w_i = 0 differ by (1 − low)·x_i, and h is one of the two
        step = (self.inputs.to(torch.int16) * (1 - self.low))[:, None, :]
        with_zero = self.outputs(states).to(torch.int16) - step * states
        positive = (self.labels == 1)[:, None, None]
        return (with_zero + step > 0) == positive, (with_zero > 0) == positive

    @property
    def cheap_flips(self) -> bool:
        return True

    def merge_key(self) -> Hashable:
        return Perceptron, self.arity, self.low


def _as_floats(inputs: Tensor) -> Tensor:
    """Inputs as float32, kept while they live: the loop scores all of them at every step."""
    if inputs.numel() > MAX_KEPT:
        return inputs.to(torch.float32)
    floats = _FLOATS.get(inputs)
    if floats is None:
        floats = _FLOATS[inputs] = inputs.to(torch.float32)
    return floats


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
    labels = checked_labels(labels, num_factors, 2)
    return Perceptron(**parts, inputs=inputs, labels=labels, low=low_value(coding))
