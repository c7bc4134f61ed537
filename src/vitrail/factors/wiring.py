"""Networks as units and edges: which unit feeds which through which weight."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from vitrail.factors.base import Factors
from vitrail.factors.network import Network
from vitrail.factors.perceptron import Perceptron
from vitrail.nn import BinaryConv2d, BinaryLinear, Sign, Threshold

MAX_FAN_IN = 2**14  # sums and their changes fit 16 bits

Indices = NDArray[np.int64]


class Wiring(NamedTuple):
    """A feed-forward net.

    Values are numbered inputs first, then the units of each layer; units (sums) from the first
    layer's on. The last layer's units are the outputs, whose values are not used.
    """

    layers: Indices  # (L + 1,) first unit of each layer, and the number of units
    activation: Indices  # (L,) what an inactive unit of the layer stands for, −1 or 0
    layer_of: Indices  # (A,) layer of a weight
    low: Indices  # (A,) what a zero bit of the weight stands for, −1 or 0
    uses: Indices  # (A + 1,) weight q is in entries uses[q]…uses[q + 1] of the next two
    use_unit: Indices
    use_value: Indices
    feeds: Indices  # (units + 1,) unit u is in entries feeds[u]…feeds[u + 1] of the next two
    feed_unit: Indices
    feed_weight: Indices

    @property
    def output_fan_in(self) -> int:
        """How many values an output adds up."""
        return int(np.bincount(self.use_unit)[-1])


def wire(module: nn.Module, input_shape: tuple[int, ...]) -> Wiring | None:
    """The wiring of a net of this package's layers, or None for any other module.

    Binary linear and convolutional layers with sign or threshold between them, and Flatten.
    """
    num_inputs = int(np.prod(input_shape))
    values = np.arange(num_inputs).reshape(input_shape)
    starts, activation, lows, edges = [0], [], [], []
    num_weights, readable = 0, True  # units become readable values by their activation
    for part in _parts(module):
        if isinstance(part, nn.Flatten) and part.start_dim == 1 and part.end_dim == -1:
            values = values.reshape(-1)
        elif isinstance(part, Sign | Threshold) and not readable:
            activation[-1] = -1 if isinstance(part, Sign) else 0
            readable = True
        elif isinstance(part, BinaryLinear | BinaryConv2d) and readable:
            found = _edges(part, values)
            if found is None:
                return None
            unit, value, weight, values = found
            edges.append((unit + starts[-1], value, weight + num_weights))
            values = values + num_inputs + starts[-1]
            starts.append(starts[-1] + values.size)
            activation.append(-1)
            lows.append(np.full(part.latent.numel(), part.low))
            num_weights += part.latent.numel()
            readable = False
        else:
            return None
    # a last activation keeps the sign, which is all that one output unit is asked for
    if not edges or (readable and values.size > 1):
        return None
    unit, value, weight = (np.concatenate(column) for column in zip(*edges, strict=True))
    if np.bincount(unit).max() > MAX_FAN_IN:
        return None
    by_weight = np.argsort(weight, kind="stable")
    hidden = np.flatnonzero(value >= num_inputs)
    by_value = hidden[np.argsort(value[hidden], kind="stable")]
    sizes = [len(low) for low in lows]
    return Wiring(
        np.array(starts),
        np.array(activation),
        np.repeat(np.arange(len(sizes)), sizes),
        np.concatenate(lows),
        _starts(weight, num_weights),
        unit[by_weight],
        value[by_weight],
        _starts(value[hidden] - num_inputs, starts[-1]),
        unit[by_value],
        weight[by_value],
    )


def layered(factors: Factors) -> tuple[nn.Module, tuple[int, ...]] | None:
    """The module that the factors ask and the shape of its inputs; a perceptron is one layer."""
    if isinstance(factors, Perceptron):
        return _one_layer(factors.arity, factors.low), (factors.arity,)
    if isinstance(factors, Network):
        return factors.module, tuple(factors.inputs.shape[1:])
    return None


@lru_cache(maxsize=64)
def _one_layer(arity: int, low: int) -> nn.Module:
    return BinaryLinear(arity, 1, "bipolar" if low == -1 else "binary")


def alike(wiring: Wiring) -> bool:
    """Whether all outputs read the same values: then counts of agreement tell which is largest."""
    first, end = wiring.layers[-2:]
    last = wiring.use_unit >= first
    order = np.lexsort((wiring.use_value[last], wiring.use_unit[last]))
    values, count = wiring.use_value[last][order], np.bincount(wiring.use_unit[last] - first)
    same = len(values) == count[0] * (end - first) and bool((count == count[0]).all())
    return same and bool((values.reshape(end - first, -1) == values[: count[0]]).all())


def _parts(module: nn.Module) -> Iterator[nn.Module]:
    if isinstance(module, nn.Sequential):
        for child in module:
            yield from _parts(child)
    else:
        yield module


def _starts(owner: Indices, num_owners: int) -> Indices:
    """Where each owner's entries begin once sorted, and their number: (owners + 1,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=num_owners))])


def _edges(
    layer: BinaryLinear | BinaryConv2d, values: Indices
) -> tuple[Indices, Indices, Indices, Indices] | None:
    """Units, values and weights that meet (edges,), and the units in their shape."""
    if isinstance(layer, BinaryLinear):
        if values.shape != (layer.in_features,):
            return None
        units = np.arange(layer.out_features)
        unit, value = np.broadcast_arrays(units[:, None], values[None, :])
        weight = np.arange(unit.size)
        return unit.ravel(), value.ravel(), weight, units
    if values.ndim != 3 or values.shape[0] != layer.in_channels:
        return None
    height, width = layer.output_size(values.shape[1:])
    if min(height, width) < 1:
        return None
    units = np.arange(layer.out_channels * height * width).reshape(-1, height, width)
    taps = np.arange(layer.latent.numel()).reshape(tuple(layer.latent.shape))
    (pad_y, pad_x), (step_y, step_x) = layer.padding, layer.stride
    padded = np.pad(values, ((0, 0), (pad_y, pad_y), (pad_x, pad_x)), constant_values=-1)
    columns = []
    for y, x in np.ndindex(height, width):
        top, left = y * step_y, x * step_x
        window = padded[:, top : top + taps.shape[2], left : left + taps.shape[3]]
        columns.append(np.broadcast_arrays(units[:, y, x, None, None, None], window[None], taps))
    unit, value, weight = (np.concatenate([c[k].ravel() for c in columns]) for k in range(3))
    inside = value >= 0  # padding is zero and feeds nothing
    return unit[inside], value[inside], weight[inside], units
