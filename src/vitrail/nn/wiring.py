"""A net as a graph of units and weighted edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vitrail.nn.nodes import Flatten, Indices, Node, Shape, Step, Weighted

MAX_FAN_IN = 2**14  # sums and their changes fit 16 bits


class Wiring(NamedTuple):
    """A feed-forward net.

    Values are numbered inputs first, then the units of each layer; units (sums) from the first
    layer's on. The last layer's units are the outputs, whose values are not used.
    """

    num_inputs: int
    layers: Indices  # (L + 1,) first unit of each layer, and the number of units
    activation: Indices  # (L,) value of an inactive unit of the layer, −1 or 0
    layer_of: Indices  # (A,) layer of a weight
    low: Indices  # (A,) value of a zero bit of the weight, −1 or 0
    uses: Indices  # (A + 1,) weight q is in entries uses[q]…uses[q + 1] of the next two
    use_unit: Indices
    use_value: Indices
    feeds: Indices  # (units + 1,) unit u is in entries feeds[u]…feeds[u + 1] of the next two
    feed_unit: Indices
    feed_weight: Indices

    @property
    def output_fan_in(self) -> int:
        """The number of values that an output adds up."""
        return int(np.bincount(self.use_unit)[-1])

    @property
    def same_inputs(self) -> bool:
        """Whether all outputs read the same values, so that counts of agreement are comparable."""
        first, end = self.layers[-2:]
        last = self.use_unit >= first
        order = np.lexsort((self.use_value[last], self.use_unit[last]))
        values, count = self.use_value[last][order], np.bincount(self.use_unit[last] - first)
        same = len(values) == count[0] * (end - first) and bool((count == count[0]).all())
        return same and bool((values.reshape(end - first, -1) == values[: count[0]]).all())


def wiring_of(nodes: Sequence[Node], input_shape: Shape) -> Wiring | None:
    """The wiring of layers with steps between them; None if the net has other nodes."""
    num_inputs = int(np.prod(input_shape))
    values = np.arange(num_inputs).reshape(input_shape)
    starts, activation, lows, edges = [0], [], [], []
    num_weights, readable = 0, True  # whether values are inputs or activations, not sums
    for node in nodes:
        if isinstance(node, Flatten):
            values = values.reshape(-1)
        elif isinstance(node, Step) and not readable:
            activation[-1] = node.low
            readable = True
        elif isinstance(node, Weighted) and node.digits == 1 and readable:
            found = node.edges(values)
            edges.append((found.unit + starts[-1], found.value, found.weight + num_weights))
            values = found.units + num_inputs + starts[-1]
            starts.append(starts[-1] + values.size)
            activation.append(-1)
            lows.append(np.full(node.num_bits, node.low))
            num_weights += node.num_bits
            readable = False
        else:
            return None
    # a final activation does not change the sign of one output
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
        num_inputs,
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


def _starts(owner: Indices, num_owners: int) -> Indices:
    """Offsets of each owner's entries in sorted order: (owners + 1,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=num_owners))])
