"""The nodes of a net, as plain data.

A node maps values of one shape to values of another, and may own bits. It has everything that other
packages need of a layer: the evaluation of configurations, the edges between units, and the form in
files. A new layer is a new node here and its torch module in `layers`.

    evaluate   bits (f, s, n), x (f, s, …)  →  (F, S, …),   f and s being 1 or full, broadcasting

Weights shared by all examples (f = 1) and inputs shared by all configurations (s = 1) keep size 1,
so that the contraction is one matrix product.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from vitrail.nn.coding import values
from vitrail.state import StateReader

Shape = tuple[int, ...]
Indices = NDArray[np.int64]
MAX_SIZE = 2**24  # limit of sizes in files, which may be damaged
MAX_DIGITS, MAX_TOP, MAX_SHIFT = 8, 255, 30
MAX_SCALE, MAX_OFFSET = 255, 127


class Edges(NamedTuple):
    """Unit, value and weight of each edge, (E,) each, and the units in their shape."""

    unit: Indices
    value: Indices
    weight: Indices
    units: Indices  # 0, 1, … in the shape of the layer's outputs


@dataclass(frozen=True)
class Node(ABC):
    """One node of a net."""

    num_bits = 0  # number of bits that it owns

    def output_shape(self, shape: Shape) -> Shape:
        """The shape of its outputs for one example; ValueError if it does not accept `shape`."""
        return shape

    @abstractmethod
    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        """Its outputs for many configurations, see above."""

    def scratch(self, shape: Shape) -> int:
        """Temporary floats for evaluating one configuration on one example."""
        return 0

    @property
    def settings(self) -> dict[str, Any]:
        """Its fields by name, except options at their defaults."""
        named = ((each, getattr(self, each.name)) for each in fields(self))
        return {
            each.name: value for each, value in named if not each.kw_only or value != each.default
        }

    @property
    def fingerprint(self) -> str:
        """What it computes, as text."""
        named = (f"{name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({', '.join(named)})"

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        kind = next(name for name, of in KINDS.items() if type(self) is of)
        return {"kind": kind, **self.settings}


@dataclass(frozen=True)
class Weighted(Node):
    """A layer that adds up values times weights of one or several bits.

    `low` is the value of a zero bit, −1 or 0. Digit d has the weight 2^d: two digits of ±1 give
    −3, −1, 1 and 3. All first digits come before all second digits.
    """

    low: int
    digits: int = field(default=1, kw_only=True)

    @property
    @abstractmethod
    def weight_shape(self) -> Shape:
        """(units or channels out, in, …): the order of the bits of a digit."""

    @property
    def num_bits(self) -> int:
        return self.digits * math.prod(self.weight_shape)

    @property
    def fan_in(self) -> int:
        """The largest number of values that a unit adds up."""
        return math.prod(self.weight_shape[1:])

    @abstractmethod
    def edges(self, numbers: Indices) -> Edges:
        """The edges from values, given by their numbers in the layer's input shape, to units."""

    def _weights(self, bits: Tensor) -> Tensor:
        """Bits (f, s, n) as numbers (f, s, out, fan-in)."""
        sizes = (self.digits, self.weight_shape[0], self.fan_in)
        first, *others = values(bits, self.low).unflatten(-1, sizes).unbind(-3)
        return sum((2.0**d * digit for d, digit in enumerate(others, 1)), first)


@dataclass(frozen=True)
class Linear(Weighted):
    """h_o = Σ_i w_oi·x_i, no bias. Bits in the order (out, in)."""

    inputs: int
    outputs: int

    @property
    def weight_shape(self) -> Shape:
        return self.outputs, self.inputs

    def output_shape(self, shape: Shape) -> Shape:
        if shape != (self.inputs,):
            raise ValueError(
                f"a linear layer of {self.inputs} inputs got values of shape {shape}; "
                "flatten images or correct the number of inputs"
            )
        return (self.outputs,)

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        return torch.einsum("fsoi,fsi->fso", self._weights(bits), x)

    def edges(self, numbers: Indices) -> Edges:
        units = np.arange(self.outputs)
        unit, value = np.broadcast_arrays(units[:, None], numbers[None, :])
        return Edges(unit.ravel(), value.ravel(), np.arange(unit.size), units)


@dataclass(frozen=True)
class Conv(Weighted):
    """Convolution in any number of dimensions, no bias, padded with zeros.

    Bits in the order (out, in, *kernel). Channels are divided into consecutive groups; outputs of a
    group read the inputs of the same group.
    """

    inputs: int  # channels
    outputs: int
    kernel: Shape
    stride: Shape
    padding: Shape
    groups: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        if self.inputs % self.groups or self.outputs % self.groups:
            raise ValueError(
                f"{self.inputs} channels in and {self.outputs} out are not divisible into "
                f"{self.groups} groups; take a divisor of both"
            )

    @property
    def weight_shape(self) -> Shape:
        return self.outputs, self.inputs // self.groups, *self.kernel

    def output_shape(self, shape: Shape) -> Shape:
        if len(shape) != 1 + len(self.kernel) or shape[0] != self.inputs:
            axes = ("length",) if len(self.kernel) == 1 else ("height", "width", "depth")
            wanted = ", ".join([str(self.inputs), *axes[: len(self.kernel)]])
            raise ValueError(
                f"a convolution expects examples of shape ({wanted}), got {shape}; "
                "reshape the inputs or correct the number of channels"
            )
        places = self._places(shape)
        if min(places) < 1:
            raise ValueError(
                f"a kernel of {self.kernel} does not fit into values of shape {shape}; "
                "make it smaller or pad"
            )
        return self.outputs, *places

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        rank = len(self.kernel)
        places = self._places(tuple(x.shape[2:]))
        # strided windows are faster than F.unfold, which starts threads for every image
        windows = F.pad(x, [side for pad in reversed(self.padding) for side in (pad, pad)])
        for axis, (size, stride) in enumerate(zip(self.kernel, self.stride, strict=True)):
            windows = windows.unfold(3 + axis, size, stride)
        order = [0, 1, 2, *range(3 + rank, 3 + 2 * rank), *range(3, 3 + rank)]
        patches = windows.permute(order).flatten(3 + rank).flatten(2, 2 + rank)
        weights = self._weights(bits).unflatten(2, (self.groups, -1))
        out = torch.einsum("fsgok,fsgkl->fsgol", weights, patches.unflatten(2, (self.groups, -1)))
        return out.flatten(2, 3).unflatten(-1, places)

    def scratch(self, shape: Shape) -> int:
        return math.prod(self._places(shape)) * self.fan_in * self.groups

    def edges(self, numbers: Indices) -> Edges:
        places = self._places(numbers.shape)
        units = np.arange(self.outputs * math.prod(places)).reshape(-1, *places)
        taps = np.arange(math.prod(self.weight_shape)).reshape(self.weight_shape)
        group = np.arange(self.outputs) // (self.outputs // self.groups)
        around = [(0, 0), *((pad, pad) for pad in self.padding)]
        padded = np.pad(numbers, around, constant_values=-1)
        each_unit = (slice(None), *(None,) * (1 + len(self.kernel)))
        parts = []
        for place in np.ndindex(*places):
            corner = [p * step for p, step in zip(place, self.stride, strict=True)]
            spans = (slice(at, at + size) for at, size in zip(corner, self.kernel, strict=True))
            window, here = padded[(slice(None), *spans)], units[(slice(None), *place)]
            window = window.reshape(self.groups, *self.weight_shape[1:])[group]
            parts.append(np.broadcast_arrays(here[each_unit], window, taps))
        unit, value, weight = (np.concatenate([p[k].ravel() for p in parts]) for k in range(3))
        inside = value >= 0  # padding is zero
        return Edges(unit[inside], value[inside], weight[inside], units)

    def _places(self, shape: Shape) -> Shape:
        """The shape of the output without its channels."""
        sizes = zip(shape[1:], self.kernel, self.stride, self.padding, strict=True)
        return tuple((size + 2 * pad - kernel) // stride + 1 for size, kernel, stride, pad in sizes)


@dataclass(frozen=True)
class Step(Node):
    """1 where x > 0, `low` elsewhere (a tie is not positive).

    `window` is how far from zero straight-through gradients pass; nothing else uses it.
    """

    low: int
    window: float = 1.0

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        return step(x, self.low, self.window)


@dataclass(frozen=True)
class Gate(Node):
    """1 where |x| > width, 0 elsewhere: inactive for inputs that differ from the weights."""

    width: float

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        return (x.abs() > self.width).to(x.dtype)


@dataclass(frozen=True)
class Levels(Node):
    """Sums quantised to integers from 0 to `top`: ⌊(scale·x + offset·2^fine) / 2^shift⌋, clipped.

    Each channel has a constant scale and offset.
    """

    top: int
    shift: int
    fine: int
    scale: tuple[int, ...]  # of each channel, from 1 to MAX_SCALE
    offset: tuple[int, ...]  # from −MAX_OFFSET to MAX_OFFSET

    def output_shape(self, shape: Shape) -> Shape:
        if shape[0] != len(self.scale):
            raise ValueError(f"levels of {len(self.scale)} channels got values of shape {shape}")
        return shape

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        each = (-1, *(1,) * (x.ndim - 3))
        scale, offset = (
            torch.tensor(numbers, dtype=torch.float64, device=x.device).view(each)
            for numbers in (self.scale, self.offset)
        )
        whole = torch.floor((scale * x.double() + offset * 2.0**self.fine) * 2.0**-self.shift)
        return whole.clamp(0, self.top).to(x.dtype)

    def scratch(self, shape: Shape) -> int:
        return 4 * math.prod(shape)


@dataclass(frozen=True)
class Flatten(Node):
    """All values of an example in one row."""

    def output_shape(self, shape: Shape) -> Shape:
        return (math.prod(shape),)

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        return x.flatten(2)


@dataclass(frozen=True)
class MaxPool(Node):
    """The largest value of each window, without padding."""

    kernel: Shape
    stride: Shape

    def output_shape(self, shape: Shape) -> Shape:
        sizes = zip(shape[1:], self.kernel, self.stride, strict=True)
        places = tuple((size - kernel) // stride + 1 for size, kernel, stride in sizes)
        if min(places) < 1:
            raise ValueError(f"a pool of {self.kernel} does not fit into values of shape {shape}")
        return shape[0], *places

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        pool = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[len(self.kernel)]
        return pool(x.flatten(0, 1), self.kernel, self.stride).unflatten(0, x.shape[:2])


KINDS: dict[str, type[Node]] = {
    "linear": Linear,
    "conv": Conv,
    "step": Step,
    "gate": Gate,
    "levels": Levels,
    "flatten": Flatten,
    "max_pool": MaxPool,
}


RANGES: dict[str, tuple[int, ...]] = {  # ranges of integer fields, and defaults
    "low": (-1, 0),
    **dict.fromkeys(("inputs", "outputs", "kernel", "stride"), (1, MAX_SIZE)),
    "padding": (0, MAX_SIZE),
    "digits": (1, MAX_DIGITS, 1),
    "groups": (1, MAX_SIZE, 1),
    "top": (1, MAX_TOP),
    **dict.fromkeys(("shift", "fine"), (0, MAX_SHIFT)),
    "scale": (1, MAX_SCALE),
    "offset": (-MAX_OFFSET, MAX_OFFSET),
}


def node_from_dict(state: object) -> Node:
    """The node that `to_dict` wrote; DataError for anything else."""
    read = StateReader(state, "layer")
    kind = read.text("kind")
    read.require(kind in KINDS, f"is of the unknown kind {kind!r}")

    def value(name: str) -> Any:
        if name in ("window", "width"):
            return read.number(name)
        if name in ("scale", "offset"):
            return read.wholes(name, *RANGES[name])
        if name not in ("kernel", "stride", "padding"):
            return read.whole(name, *RANGES[name])
        found = read.optional_wholes(name, *RANGES[name]) or ()
        read.require(1 <= len(found) <= 3, f"has a {name} of {len(found)} dimensions")
        return found

    given = {part.name: value(part.name) for part in fields(KINDS[kind])}
    groups = given.get("groups", 1)
    divisible = not any(given[name] % groups for name in ("inputs", "outputs") if name in given)
    read.require(divisible, "has groups that do not divide it")
    ranks = {len(given[name]) for name in ("kernel", "stride", "padding") if name in given}
    read.require(len(ranks) < 2, "has a kernel, stride and padding of different dimensions")
    channels = {len(given[name]) for name in ("scale", "offset") if name in given}
    read.require(len(channels) < 2 and 0 not in channels, "has no offset per channel")
    read.done()
    return KINDS[kind](**given)


class _StraightThrough(torch.autograd.Function):
    """Forward: quantisation of [−window, window] into 2^digits equal parts, in the coding of bits.
    Backward: the identity within |x| ≤ window."""

    generate_vmap_rule = True  # own modules are evaluated under vmap

    @staticmethod
    def forward(x: Tensor, low: int, window: float, digits: int) -> Tensor:
        parts = 2**digits
        if digits == 1:
            number = (x > 0).to(x.dtype)
        else:
            number = (((x / window + 1) * (parts / 2)).ceil() - 1).clamp(0, parts - 1)
        return number * (1 - low) + low * (parts - 1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int, float, int], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.window = inputs[2]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (x,) = ctx.saved_tensors
        return grads[0] * (x.abs() <= ctx.window), None, None, None


def step(x: Tensor, low: int, window: float = 1.0, digits: int = 1) -> Tensor:
    """1 where x > 0, `low` elsewhere (a tie is not positive), with straight-through gradient.

    For several digits, one of 2^digits equidistant numbers, for equal parts of the window.
    """
    result = _StraightThrough.apply(x, low, window, digits)
    assert isinstance(result, Tensor)
    return result
