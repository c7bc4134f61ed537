"""The description of a net: its nodes in order, with the shapes between them.

A program is made from a module and the shape of an example (`program_of`), or from a file.
Messages, local search, kernels, model files and exports use it and nothing else. Unknown modules
become `Opaque` nodes, which can only be evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor, nn

from vitrail.errors import DataError
from vitrail.nn.nodes import Flatten, Linear, Node, Shape, Step, Weighted, node_from_dict
from vitrail.nn.opaque import Opaque
from vitrail.nn.wiring import Wiring, wiring_of

MAX_NODES = 1024  # in a file


@dataclass(frozen=True)
class Shallow:
    """A net of linear layers with at most one hidden layer: flips cost O(1)."""

    num_inputs: int  # of an example
    num_hidden: int  # hidden units; 0 without a hidden layer
    num_outputs: int  # 1 for two classes, otherwise one per class
    low_hidden: int  # value of a zero bit of the hidden layer
    low_output: int  # value of a zero bit of the last layer
    low_active: int  # value of an inactive hidden unit


@dataclass(frozen=True, eq=False)
class Program:
    """A net: its input shape, and its nodes in the order of evaluation.

    Bits belong to the nodes in order. Two programs are equal if their fingerprints are.
    """

    input_shape: Shape  # of one example
    nodes: tuple[Node, ...]  # in the order of evaluation

    def __post_init__(self) -> None:
        if self.num_bits == 0:
            raise ValueError(
                "the network has no weights; give it a layer of vitrail.nn, nn.Linear or nn.Conv"
            )

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape of an example's values before each node, and of the outputs."""
        shapes = [tuple(self.input_shape)]
        for node in self.nodes:
            shapes.append(node.output_shape(shapes[-1]))
        return tuple(shapes)

    @cached_property
    def num_bits(self) -> int:
        """The number of bits of all nodes."""
        return sum(node.num_bits for node in self.nodes)

    @property
    def num_inputs(self) -> int:
        """The number of inputs of an example."""
        return math.prod(self.input_shape)

    @cached_property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return math.prod(self.shapes[-1])

    @property
    def opaque(self) -> bool:
        """Whether some node is opaque."""
        return any(isinstance(node, Opaque) for node in self.nodes)

    @cached_property
    def layers(self) -> tuple[Weighted, ...]:
        """The nodes that own bits, except opaque ones."""
        return tuple(node for node in self.nodes if isinstance(node, Weighted))

    @cached_property
    def fan_in(self) -> int:
        """Weights per output of the last layer."""
        last = [node for node in self.nodes if node.num_bits][-1]
        return last.fan_in if isinstance(last, Weighted | Opaque) else 1

    @cached_property
    def wiring(self) -> Wiring | None:
        """Units and edges, if all nodes are layers with steps between them."""
        self.shapes  # noqa: B018 (raises an error where shapes do not match)
        return wiring_of(self.nodes, self.input_shape)

    @cached_property
    def shallow(self) -> Shallow | None:
        """The sizes of a net of linear layers with at most one hidden one."""
        nodes = [node for node in self.nodes if not isinstance(node, Flatten)]
        if nodes and isinstance(nodes[-1], Step) and self.num_outputs == 1:
            nodes = nodes[:-1]  # it does not change the sign of the output
        match nodes:
            case [Linear(digits=1) as last]:
                return Shallow(last.inputs, 0, last.outputs, 0, last.low, 0)
            case [Linear(digits=1) as first, Step() as active, Linear(digits=1) as last]:
                return Shallow(
                    first.inputs, first.outputs, last.outputs, first.low, last.low, active.low
                )
            case _:
                return None

    @property
    def packable(self) -> bool:
        """Whether it is a perceptron with one ±1 hidden layer, ±1 weights and one output.

        Such nets are evaluated and sampled in packed words if their inputs are 0/1.
        """
        match [node for node in self.nodes if not isinstance(node, Flatten)]:
            case [Linear(low=-1, digits=1), Step(low=-1), Linear(low=-1, digits=1, outputs=1)]:
                return True
            case _:
                return False

    @property
    def perceptron_low(self) -> int | None:
        """The value of a zero bit, if the net is one linear threshold unit."""
        net = self.shallow
        alone = net is not None and net.num_hidden == 0 and net.num_outputs == 1
        return net.low_output if net is not None and alone else None

    @cached_property
    def hidden(self) -> tuple[int, ...] | None:
        """Units of each hidden layer, if the net is a multilayer perceptron; None otherwise."""
        layers = [node for node in self.nodes if not isinstance(node, Flatten)]
        steps, linear = layers[1::2], layers[0::2]
        fits = len(layers) % 2 == 1 and all(isinstance(node, Step) for node in steps)
        sizes = [node.outputs for node in linear if isinstance(node, Linear)]
        return tuple(sizes[:-1]) if fits and len(sizes) == len(linear) else None

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all nodes and constants, equal for nets that compute the same."""
        digest = sha256(repr(tuple(self.input_shape)).encode())
        for node in self.nodes:
            digest.update(node.fingerprint.encode())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        """Outputs of weight configurations.

        bits (f, s, A) bool, or float32 in {0, 1} carrying a gradient, and x (f, s, …) float32
        with f and s each 1 or full → (F, S, …).
        """
        first = 0
        for node in self.nodes:
            x = node.evaluate(bits[..., first : first + node.num_bits], x)
            first += node.num_bits
        return x

    @cached_property
    def scratch_floats(self) -> int:
        """Temporary floats for evaluating one configuration on one example."""
        total = 2 * self.num_bits
        for node, shape, after in zip(self.nodes, self.shapes, self.shapes[1:], strict=False):
            total += node.scratch(shape) + 2 * math.prod(after)
        return total

    def to_dict(self) -> dict[str, Any]:
        """For JSON; a net with opaque nodes has nodes of None."""
        nodes = None if self.opaque else [node.to_dict() for node in self.nodes]
        return {"input_shape": list(self.input_shape), "nodes": nodes}


def linear_program(num_inputs: int, low: int, num_outputs: int = 1) -> Program:
    """One linear layer; `low` is the value of a zero bit, −1 or 0."""
    return Program((num_inputs,), (Linear(low, num_inputs, num_outputs),))


def program_from_nodes(input_shape: Shape, nodes: Sequence[object]) -> Program:
    """The program that `to_dict` wrote; DataError for anything else."""
    if len(nodes) > MAX_NODES:
        raise DataError(f"the model has {len(nodes)} layers, at most {MAX_NODES} are read")
    try:
        program = Program(input_shape, tuple(node_from_dict(node) for node in nodes))
        program.shapes  # noqa: B018 (raises an error where shapes do not match)
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"the model's layers do not fit together: {error}") from None
    return program


def program_of(module: nn.Module | Program, input_shape: torch.Size | Shape) -> Program:
    """The program of a module for examples of this shape.

    The bits are those of its `vitrail.nn` layers, or, if it has none, weights and biases of its
    `nn.Linear` and `nn.Conv` layers, read as ±1. Every other parameter and buffer is a constant.
    The module is copied and put into eval mode.

    Args:
        module: Any torch module, or a program, which is returned unchanged.
        input_shape: Of one example, without the batch.

    Examples:
        >>> from vitrail.nn import mlp
        >>> program_of(mlp(10, hidden=(4,)), (10,)).hidden
        (4,)
    """
    if isinstance(module, Program):
        if tuple(input_shape) != module.input_shape:
            raise ValueError(
                f"the net reads examples of shape {module.input_shape}, got {tuple(input_shape)}"
            )
        return module
    from vitrail.nn.trace import nodes_of

    if not isinstance(module, nn.Module):
        raise TypeError(f"a net is a torch module, not a class, got {module!r}")
    program = Program(tuple(input_shape), tuple(nodes_of(module)))
    program.shapes  # noqa: B018 (raises an error where shapes do not match)
    return program
