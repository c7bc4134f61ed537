"""A net with activations of a few bits as exported code runs it: whole numbers, layer by layer.

A layer adds up a window of values from 0 to 255, weights being whole numbers of a few digits; a
scale, an offset and a shift make values of the sums, and a pool keeps the largest of some. A linear
layer is a window over everything. Values lie in the order (row, column, channel), which makes a
window a few runs of neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from vitrail.export.plan import ExportError, Windows, windows_of
from vitrail.model import Model
from vitrail.nn.nets import has_levels
from vitrail.nn.nodes import Conv, Flatten, Levels, Linear, MaxPool
from vitrail.tables.bits import BitColumns

AT_ONCE = 8  # values whose weights stand in a byte
MOST_VALUE = 255


@dataclass(frozen=True, eq=False)
class WholeLayer:
    """A layer, what its sums become, and a pool behind it."""

    windows: Windows
    weights: np.ndarray  # (digits, units, kernel rows, kernel columns, channels of a group) bool
    low: int
    groups: int
    levels: Levels | None = None  # None of the last
    pool: Windows | None = None

    @property
    def digits(self) -> int:
        return len(self.weights)

    @property
    def units(self) -> int:
        return self.weights.shape[1]

    @property
    def fan_in(self) -> int:
        return math.prod(self.weights.shape[2:])

    @property
    def outputs(self) -> int:
        """Values behind the levels, before the pool."""
        return self.units * self.windows.count

    def numbers(self) -> np.ndarray:
        """Weights (units, channels × kernel) int16; 0 for channels of other groups."""
        shape = self.units, self.windows.channels, *self.windows.kernel
        found = np.zeros((self.groups, self.units // self.groups, *shape[1:]), np.int16)
        digits = (
            np.where(self.weights, 1, self.low)
            * 2 ** np.arange(self.digits)[:, None, None, None, None]
        )
        sums = digits.sum(0).transpose(0, 3, 1, 2)  # (units, channels of a group, rows, columns)
        depth = self.windows.channels // self.groups
        for group, part in enumerate(sums.reshape(*found.shape[:2], depth, *shape[2:])):
            found[group, :, group * depth : (group + 1) * depth] = part
        return found.reshape(self.units, -1)

    def stored(self) -> list[int]:
        """Its bytes: weights by group, of eight values at once, then scales and offsets."""
        rows = self.weights.reshape(self.digits, self.groups, -1, self.fan_in)[::-1]
        rows = np.pad(rows, [(0, 0)] * 3 + [(0, -self.fan_in % AT_ONCE)])
        octets = np.packbits(rows, axis=-1, bitorder="little")
        found = octets.transpose(1, 3, 2, 0).ravel().tolist()
        if self.levels is not None:
            found += [*self.levels.scale, *(offset % 256 for offset in self.levels.offset)]
        return found


@dataclass(frozen=True, eq=False)
class WholePlan:
    """The layers of a net, one network."""

    layers: tuple[WholeLayer, ...]

    @property
    def outputs(self) -> int:
        return self.layers[-1].units


def whole_plan(model: Model) -> WholePlan | None:
    """The layers of a net with activations of a few bits; None of other nets."""
    program = model.program
    if not has_levels(program):
        return None
    encoder = model.encoder
    if (
        not isinstance(encoder, BitColumns)
        or not encoder.whole
        or model.bias
        or (encoder.low, encoder.high) != (0, encoder.cuts)
    ):
        raise ExportError(
            "activations of a few bits are exported for images of bytes, or of 0…16; train on such"
        )
    if len(model.networks) > 1:
        raise ExportError("of nets with activations of a few bits one network is exported")
    layers: list[WholeLayer] = []
    bits, first, flat, open_sums = model.networks[0, 0].numpy(), 0, False, False
    for node, shape in zip(program.nodes, program.shapes, strict=False):
        if isinstance(node, Linear | Conv) and not open_sums:
            part = bits[first : first + node.num_bits]
            first += node.num_bits
            layers.append(_layer(node, shape, part, before=layers[-1] if flat else None))
            if not layers[:-1] and isinstance(node, Conv) and node.inputs > 1:
                raise ExportError("images of several channels are not exported with such nets")
            flat, open_sums = False, True
        elif isinstance(node, Levels) and open_sums:
            layers[-1] = replace(layers[-1], levels=node)
            open_sums = False
        elif isinstance(node, MaxPool) and layers and layers[-1].pool is None:
            pool = windows_of(shape, node.kernel, node.stride, (0,) * len(node.kernel))
            layers[-1] = replace(layers[-1], pool=pool)
        elif isinstance(node, Flatten):
            flat = bool(layers)
        else:
            raise ExportError(
                "this net mixes activations of a few bits with others; put Levels behind each "
                "layer but the last, a pool behind those at most, and train again"
            )
    if not open_sums or layers[-1].pool or len({layer.low for layer in layers}) > 1:
        raise ExportError(
            "nets with activations of a few bits end in a layer of sums and have one coding of "
            "weights; build it so, and train again"
        )
    return WholePlan(tuple(layers))


def _layer(
    node: Linear | Conv, shape: tuple[int, ...], bits: np.ndarray, before: WholeLayer | None
) -> WholeLayer:
    if isinstance(node, Linear):
        channels, size = node.inputs, (1, 1)
        if before is not None:  # it reads values of an image in the order (channel, row, column)
            last = before.pool or before.windows
            channels, size = before.units, last.places
        weights = bits.reshape(node.digits, node.outputs, channels, *size)
        windows = Windows(channels, size, size, (1, 1), (0, 0))
        return WholeLayer(windows, weights.transpose(0, 1, 3, 4, 2), node.low, 1)
    windows = windows_of(shape, node.kernel, node.stride, node.padding)
    sizes = (node.digits, node.outputs, node.weight_shape[1], *windows.kernel)
    return WholeLayer(windows, bits.reshape(sizes).transpose(0, 1, 3, 4, 2), node.low, node.groups)
