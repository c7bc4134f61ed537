"""Factors of networks, one per example, and of any function of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vitrail.factors.base import (
    HARD,
    Factors,
    checked_labels,
    common_parts,
    meets,
)
from vitrail.factors.flips import shallow_flips
from vitrail.nn import Coding, Program, program_of
from vitrail.nn.coding import checked_inputs, low_value, numbers
from vitrail.nn.program import linear_program
from vitrail.scopes import Scope

ScoreFunction = Callable[[Tensor, Tensor], Tensor]
MAX_CACHED = 2**24  # inputs whose float32 form is cached: 64 MiB


@dataclass(frozen=True, kw_only=True)
class Network(Factors):
    """g_w(x_I) = y_I for a net g: score 1 where it gives the label.

    One output is a binary label, 1 where it is above 0; of C outputs the largest wins, the lowest
    index on a tie.
    """

    inputs: Tensor  # (F, …) int8, the examples
    labels: Tensor  # (F,) int64, their classes
    program: Program  # the net

    @property
    def rows(self) -> Tensor:
        """Inputs as a contiguous matrix (F, I) int8, for kernels."""
        return self.once(_rows)

    def outputs(self, states: Tensor) -> Tensor:
        """Margins of configurations (F or 1, S, A): (F, S, C) float32.

        states are bool, or float32 in {0, 1} carrying a gradient.
        """
        return self.program.evaluate(states, self._floats).flatten(2)

    def score(self, states: Tensor) -> Tensor:
        return meets(self.outputs(states), self.labels[:, None])

    def flips(self, states: Tensor) -> tuple[Tensor, Tensor]:
        net = self.program.shallow
        if net is None:
            return super().flips(states)
        return shallow_flips(net, states, self.rows, self.labels)

    @property
    def cheap_flips(self) -> bool:
        return self.program.shallow is not None

    @property
    def perceptron_low(self) -> int | None:
        return self.program.perceptron_low

    @property
    def row_bytes(self) -> int:
        return 4 * self.program.scratch_floats

    @property
    def _floats(self) -> Tensor:
        """Inputs as float32, (F, 1, …), cached if there are few."""
        small = self.inputs.numel() <= MAX_CACHED
        return self.once(_as_floats) if small else _as_floats(self)

    def merge_key(self) -> Hashable:
        return Network, self.program


def _rows(factors: Network) -> Tensor:
    return factors.inputs.flatten(1).contiguous()


def _as_floats(factors: Network) -> Tensor:
    return numbers(factors.inputs)[:, None]


def network(
    module: nn.Module | Program,
    inputs: Tensor,
    labels: Tensor,
    beta: float | Tensor = HARD,
    scope: Scope | None = None,
    weight: Tensor | None = None,
) -> Network:
    """One factor per example, satisfied when `module` with the factor's bits gives the label.

    Any torch module can be used. The bits are those of its `vitrail.nn` layers, or, if it has none,
    weights and biases of its `nn.Linear` and `nn.Conv` layers, read as ±1. Everything else is
    constant, and the module is used in eval mode. Sequences of `vitrail.nn` layers are compiled.

    Args:
        module: The net: one output for two classes (positive is label 1), or an output per class.
        inputs: Examples (F, …) in {−1, 0, 1}; of images also gray levels, uint8 or `centred`,
            which the first layer of a net with two or more hidden layers adds up as numbers from 0
            to below 1, or −1 to 1.
        labels: Classes (F,), from 0.
        beta: Inverse temperature, one number or one per factor; infinite for hard constraints.
        scope: Which variables a factor sees; None is all weights of the net.
        weight: How much each factor counts in the accuracy, (F,); None is 1.

    Returns:
        The block of factors.

    Examples:
        >>> from vitrail.nn import mlp
        >>> inputs, labels = torch.tensor([[1, -1, 1], [1, 1, -1]]), torch.tensor([1, 0])
        >>> network(mlp(3, hidden=(3,)), inputs, labels).arity
        12
    """
    program = program_of(module, torch.as_tensor(inputs).shape[1:])
    # nets with fewer layers have kernels that read bits
    inputs = checked_inputs(inputs, levels=program.shallow is None)
    return Network(
        **common_parts(inputs.shape[0], program.num_bits, scope, beta, weight),
        program=program,
        inputs=inputs,
        labels=checked_labels(labels, inputs.shape[0], max(2, program.num_outputs)),
    )


def perceptron(
    inputs: Tensor,
    labels: Tensor,
    beta: float | Tensor = HARD,
    coding: Coding = "bipolar",
    scope: Scope | None = None,
    weight: Tensor | None = None,
) -> Network:
    """One linear threshold factor per example: a net of one layer.

    h = Σ_i x_i·w_i, and the factor is satisfied when [h > 0] is the label.

    Args:
        inputs: Examples (F, A) in {−1, 0, 1}.
        labels: Classes (F,) in {0, 1}.
        beta: Inverse temperature, one number or one per factor; infinite for hard constraints.
        coding: Value of a zero bit: −1 ("bipolar") or 0 ("binary").
        scope: Which variables a factor sees; None is variables 0…A−1.
        weight: How much each factor counts in the accuracy, (F,); None is 1.

    Returns:
        The block of factors.

    Examples:
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
    program = linear_program(inputs.shape[1], low_value(coding))
    return network(program, inputs, labels, beta, scope, weight)


@dataclass(frozen=True, kw_only=True)
class BlackBox(Factors):
    """Any function of configurations (F, S, A) bool: potentials (F, S) in [0, 1].

    `data` numbers the factors for the function, independently of batches.
    """

    function: ScoreFunction  # computes the potentials
    data: Tensor  # (F,) int64, the numbers passed to the function
    energies: bool = False  # whether configurations are compared by energy

    @property
    def has_energies(self) -> bool:
        return self.energies

    def score(self, states: Tensor) -> Tensor:
        states = states.expand(self.num_factors, -1, -1)
        potential = self.function(states, self.data)
        try:
            potential = torch.as_tensor(potential, device=states.device)  # of numpy too
        except (TypeError, ValueError, RuntimeError):
            raise TypeError(
                f"the factor function returned {type(potential).__name__}; return a tensor of one "
                f"potential each, {tuple(states.shape[:2])}"
            ) from None
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


def blackbox(
    function: ScoreFunction,
    num_factors: int,
    arity: int,
    beta: float | Tensor = HARD,
    scope: Scope | None = None,
    weight: Tensor | None = None,
    energies: bool = False,
) -> BlackBox:
    """Factors from any function.

    Args:
        function: Called with configurations (F, S, A) bool and the numbers of the factors (F,)
            int64; returns (F, S), whether each is satisfied (bool) or its potential in [0, 1].
        num_factors: How many factors there are.
        arity: How many variables each sees.
        beta: Inverse temperature, one number or one per factor; infinite leaves potentials alone.
        scope: Which variables a factor sees; None is variables 0…A−1.
        weight: How much each factor counts in the accuracy, (F,); None is 1.
        energies: Whether the best configuration is that of the lowest energy, −Σ log potential,
            instead of the one that satisfies most factors.

    Returns:
        The block of factors.

    Examples:
        >>> parity = blackbox(lambda states, which: states.sum(-1) % 2 == 1, num_factors=1, arity=3)
        >>> parity.score(torch.tensor([[[True, True, True]]]))
        tensor([[True]])
    """
    parts = common_parts(num_factors, arity, scope, beta, weight)
    data = torch.arange(num_factors)
    return BlackBox(**parts, function=function, data=data, energies=energies)
