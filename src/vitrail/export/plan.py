"""A program as exported code runs it: layers that read bits and give bits, the last one sums.

A unit adds up weights times values; both are bits, of which a zero stands for −1 or 0:

    weights ±1, values ±1     n − 2·ones(w ^ x)
    weights ±1, values 0/1    2·ones(w & x) − ones(x)
    weights 0/1, values ±1    2·ones(w & x) − ones(w)
    weights 0/1, values 0/1   ones(w & x)

Values lie in the order (channel, row, column); a line is an image of one row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitrail.model import Model
from vitrail.nn.coding import low_value
from vitrail.nn.nets import has_levels
from vitrail.nn.nodes import Conv, Flatten, Gate, Linear, MaxPool, Node, Step

Pair = tuple[int, int]
Sizes = tuple[int, ...]


class ExportError(ValueError):
    """A model cannot be exported in this way; the message says why and what to do."""


@dataclass(frozen=True)
class Windows:
    """Windows of an image of bits, left to right and top to bottom."""

    channels: int
    size: Pair  # rows and columns of the image
    kernel: Pair
    stride: Pair
    padding: Pair

    @property
    def places(self) -> Pair:
        parts = zip(self.size, self.kernel, self.stride, self.padding, strict=True)
        rows, columns = ((n + 2 * pad - k) // step + 1 for n, k, step, pad in parts)
        return rows, columns

    @property
    def count(self) -> int:
        return self.places[0] * self.places[1]

    def numbers(self, padded: bool) -> list[int]:
        """All sizes in a row, as exported code reads them; padding where some stage has some."""
        padding = self.padding if padded else ()
        sizes = (*self.size, *self.kernel, *self.stride, *padding, *self.places)
        return [self.channels, *sizes]


@dataclass(frozen=True)
class Layer:
    """`units` rows of `fan_in` weights; each reads all values, or those of each window."""

    weight_low: int
    value_low: int
    fan_in: int
    units: int
    windows: Windows | None
    first: int  # place of its bits in a network
    is_pool = False

    @property
    def outputs(self) -> int:
        return self.units * (self.windows.count if self.windows else 1)

    @property
    def reads(self) -> int:
        """How many bits it reads at once."""
        return self.fan_in

    @property
    def kind(self) -> str:
        """What is multiplied: signs or bits, weights first."""
        names = {-1: "sign", 0: "bit"}
        return f"{names[self.weight_low]}_{names[self.value_low]}"

    @property
    def masked(self) -> bool:
        """Whether windows reach beyond the image where that is not the same as a zero bit."""
        return self.windows is not None and self.windows.padding != (0, 0) and self.value_low != 0

    @property
    def name(self) -> str:
        """What the functions of such layers are called."""
        return self.kind + "_masked" * self.masked

    @property
    def lattice(self) -> tuple[int, int]:
        """The largest size of a sum, and the distance of two neighbouring sums."""
        return self.fan_in, 2 if self.kind == "sign_sign" and not self.masked else 1


@dataclass(frozen=True)
class Pool:
    """A bit for each window and channel: whether some bit of the window is 1."""

    windows: Windows
    is_pool = True

    @property
    def outputs(self) -> int:
        return self.windows.channels * self.windows.count

    @property
    def reads(self) -> int:
        """How many bits it reads at once."""
        return self.windows.kernel[0] * self.windows.kernel[1]


@dataclass(frozen=True)
class ExportPlan:
    """The stages of a net. `last_low`: a last step makes 1 or this of each sum, where given."""

    num_inputs: int
    stages: tuple[Layer | Pool, ...]
    last_low: int | None

    @property
    def last(self) -> Layer:
        last = self.stages[-1]
        assert isinstance(last, Layer)
        return last

    @property
    def layers(self) -> tuple[Layer, ...]:
        return tuple(stage for stage in self.stages if isinstance(stage, Layer))

    @property
    def num_outputs(self) -> int:
        return self.last.outputs

    @property
    def lows(self) -> list[int | None]:
        """What a sum that is not positive becomes behind each stage; None: the sum stays."""
        reads = [layer.value_low for layer in self.layers][1:]
        found, layer = [], -1
        for stage in self.stages:
            layer += isinstance(stage, Layer)
            found.append(reads[layer] if 0 <= layer < len(reads) else self.last_low)
        return found


def plan_export(model: Model) -> ExportPlan:
    """The stages of a model's net; ExportError where it has parts that exports do not know."""
    program, low = model.program, low_value(model.coding)
    if program.opaque:
        raise ExportError(
            "this net has parts of your own that exports cannot translate; build it of the "
            "layers of vitrail.nn, nn.Flatten and nn.MaxPool"
        )
    if has_levels(program) or any(layer.digits > 1 for layer in program.layers):
        raise ExportError(
            "activations of a few bits and weights of several digits are exported to C and NumPy, "
            "as nets with Levels behind each layer but the last; take to='c' or to='numpy'"
        )
    if any(isinstance(layer, Conv) and layer.groups > 1 for layer in program.layers):
        raise ExportError(
            "convolutions in groups are exported to C and NumPy, in nets with Levels behind each "
            "layer but the last; take groups=1, or such a net"
        )
    if any(isinstance(node, Gate) for node in program.nodes):
        raise ExportError(
            "gates are not exported; put a Sign or a Threshold in their place and train again"
        )
    stages: list[Layer | Pool] = []
    pools: list[Pool] = []  # the largest sum is positive where some bit behind the step is 1
    sums, first, last_low = False, 0, None
    for place, (node, shape) in enumerate(zip(program.nodes, program.shapes, strict=False)):
        if isinstance(node, Flatten):
            continue
        if isinstance(node, Step):
            low = node.low
            if sums and place == len(program.nodes) - 1 and not pools:
                last_low = low
            elif sums:
                stages += pools
                sums, pools = False, []
        elif isinstance(node, MaxPool):
            pool = Pool(windows_of(shape, node.kernel, node.stride, (0,) * len(node.kernel)))
            (pools if sums else stages).append(pool)
        elif sums:
            raise ExportError(
                "this net adds up sums; put a Sign or a Threshold between its layers and train "
                "again, or leave out one of the layers"
            )
        else:
            stages.append(_layer(node, shape, low, first))
            sums = True
        first += node.num_bits
    if not sums or pools:
        raise ExportError("this net does not end in a layer of sums; let it end in a linear layer")
    return ExportPlan(program.num_inputs, tuple(stages), last_low)


def _layer(node: Node, shape: tuple[int, ...], low: int, first: int) -> Layer:
    if isinstance(node, Linear):
        return Layer(node.low, low, node.inputs, node.outputs, None, first)
    assert isinstance(node, Conv)
    windows = windows_of(shape, node.kernel, node.stride, node.padding)
    return Layer(node.low, low, node.fan_in, node.outputs, windows, first)


def windows_of(shape: tuple[int, ...], kernel: Sizes, stride: Sizes, padding: Sizes) -> Windows:
    """Windows over values (channels, length) or (channels, height, width)."""
    if len(kernel) > 2:
        raise ExportError(
            "convolutions and pools over three dimensions are not exported; use one or two"
        )
    flat = len(kernel) == 1  # a line is an image of one row

    def both(sizes: Sizes, row: int) -> Pair:
        return (row, sizes[0]) if flat else (sizes[0], sizes[1])

    sizes = both(shape[1:], 1), both(kernel, 1), both(stride, 1), both(padding, 0)
    return Windows(shape[0], *sizes)


def layer_bits(model: Model, layer: Layer) -> np.ndarray:
    """The weights of a layer in all networks, (N, K, units, fan-in) bool."""
    end = layer.first + layer.units * layer.fan_in
    bits = model.networks.numpy().swapaxes(0, 1)[..., layer.first : end]
    return bits.reshape(*bits.shape[:2], layer.units, layer.fan_in)


def packed(rows: np.ndarray, word: int = 32) -> np.ndarray:
    """Rows of bits (…, n) packed into words of `word` bits, the first lowest: (rows, words)."""
    rows = rows.reshape(-1, rows.shape[-1])
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % word)))
    return np.packbits(padded, axis=1, bitorder="little").view(f"<u{word // 8}")
