"""Factors that are black boxes: a network on an example, or any function of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from vitrail.factors.base import (
    HARD,
    Classifiers,
    Factors,
    checked_labels,
    common_parts,
    selected_parts,
)
from vitrail.factors.one_hidden import OneHidden, one_hidden
from vitrail.graph import Scope
from vitrail.nn import checked_inputs, evaluate, num_weights, scratch_floats

ScoreFunction = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Network(Classifiers):
    """g_w(x_I) = y_I for a torch module g: one output is a binary label, C outputs are classes."""

    module: nn.Module
    floats_per_state: int
    layers: OneHidden | None  # set when the module is a one-hidden-layer net, whose flips are cheap

    def outputs(self, states: Tensor) -> Tensor:
        x = self.inputs[:, None].to(torch.float32)
        return evaluate(self.module, states, x).flatten(2)

    def flips(self, states: Tensor) -> tuple[Tensor, Tensor]:
        if self.layers is None:
            return super().flips(states)
        return self.layers.flips(states, self.inputs.flatten(1), self.labels)

    @property
    def cheap_flips(self) -> bool:
        return self.layers is not None

    @property
    def row_bytes(self) -> int:
        return 4 * self.floats_per_state

    def merge_key(self) -> Hashable:
        return Network, id(self.module), self.inputs.shape[1:]


def network(
    module: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    beta: float | Tensor = HARD,
    scope: Scope | None = None,
    weight: Tensor | None = None,
) -> Network:
    """One factor per example: satisfied when `module` with the factor's bits gives the label.

    Any torch module serves; its parameters, in order, are the bits (±1 unless the layer says
    0/1). Layers of `vitrail.nn` evaluate fastest.
    """
    inputs = checked_inputs(inputs)
    arity = num_weights(module)
    if arity == 0:
        raise ValueError("the network has no weights; give it at least one layer with parameters")
    with torch.no_grad():
        floats = scratch_floats(module, inputs.shape[1:])
        one = torch.zeros(1, 1, arity, dtype=torch.bool)
        num_outputs = evaluate(module, one, inputs[:1, None].to(torch.float32)).flatten(2).shape[2]
    return Network(
        **common_parts(inputs.shape[0], arity, scope, beta, weight),
        module=module,
        inputs=inputs,
        labels=checked_labels(labels, inputs.shape[0], max(2, num_outputs)),
        floats_per_state=floats,
        layers=one_hidden(module, inputs.shape[1:]),
    )


@dataclass(frozen=True, kw_only=True)
class BlackBox(Factors):
    """Any function of configurations (F, S, A) bool: potentials (F, S) in [0, 1].

    `data` numbers the factors for the function, whatever batch they are in.
    """

    function: ScoreFunction
    data: Tensor  # (F,) int64

    def score(self, states: Tensor) -> Tensor:
        states = states.expand(self.num_factors, -1, -1)
        potential = self.function(states, self.data)
        if potential.shape != states.shape[:2]:
            raise ValueError(
                f"the factor function returned shape {tuple(potential.shape)} for configurations "
                f"{tuple(states.shape)}; return one potential each, {tuple(states.shape[:2])}"
            )
        if potential.dtype == torch.bool:
            return potential
        potential = potential.to(torch.float64)
        if not bool(((potential >= 0) & (potential <= 1)).all()):
            raise ValueError("the factor function returned a potential outside [0, 1]; scale it")
        floor = self.floor[:, None]
        lifted = ((potential - floor) / (1 - floor)).clamp(min=0.0)
        return torch.where(potential >= 1, 1.0, lifted)

    def select(self, index: Tensor) -> BlackBox:
        return replace(self, **selected_parts(self, index), data=self.data[index])


def blackbox(
    function: ScoreFunction,
    num_factors: int,
    arity: int,
    beta: float | Tensor = HARD,
    scope: Scope | None = None,
    weight: Tensor | None = None,
) -> BlackBox:
    """Factors from any function: `function(states (F, S, A) bool, which (F,) int64)` → (F, S).

    It returns whether each factor is satisfied (bool) or its potential in [0, 1].

    >>> parity = blackbox(lambda states, which: states.sum(-1) % 2 == 1, num_factors=1, arity=3)
    >>> parity.score(torch.tensor([[[True, True, True]]]))
    tensor([[True]])
    """
    parts = common_parts(num_factors, arity, scope, beta, weight)
    return BlackBox(**parts, function=function, data=torch.arange(num_factors))
