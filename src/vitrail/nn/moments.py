"""Mean and variance of a net's values where its weights are independent random bits.

Each bit is one with its own probability p. Layer by layer, for independent w and x,

    E[h] = Σ E[w]·E[x]        Var[h] = Σ Var[x]·E[w]² + E[x²]·Var[w]
    P(h > 0) = Φ((E[h] − boundary) / √Var[h])

Sums of integers lie on a lattice, so the boundary is halfway between the largest sum that is not
positive and the smallest positive one: a sum of n terms ±1 has the parity of n, and the boundary is
1 for even n, 0 for odd n, and ½ where the parity is unknown.

The first layer's moments are exact. The inputs of a step are treated as Gaussian, and its outputs
as independent. All moments are differentiable in p: the gradient of an example's `log_probability`
is its message to every weight, see `vitrail.solvers.streaming`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce, singledispatch

import torch
import torch.nn.functional as F
from torch import Tensor

from vitrail.nn.coding import LEVEL_TYPES, numbers
from vitrail.nn.nodes import Conv, Flatten, Gate, Linear, MaxPool, Node, Shape, Step, Weighted
from vitrail.nn.program import Program
from vitrail.numerics import DEFAULT_MEMORY, chunks

MIN_VARIANCE = 1e-4  # of a sum
SHARPNESS = 1.28  # π/√6: argmax of Gaussians ≈ argmax with Gumbel noise of the same variance
MIN_PROBABILITY = 1e-12  # P(w = 1) is clipped to it before taking log-odds
SCRATCH_COPIES = 8  # temporary tensors of the size of a layer's values


@dataclass(frozen=True)
class Moments:
    """Moments of independent values, for F examples."""

    mean: Tensor  # (F, …) float32
    variance: Tensor | None  # (F, …); None for certain values
    parity: Tensor | None  # (F or 1, …): 1 odd, 0 even, ½ unknown; None for real numbers
    low: int | None = None  # value of a zero bit, if values are bits

    @property
    def square(self) -> Tensor:
        """E[x²], (F or 1, …)."""
        if self.low == -1:
            return torch.ones_like(self.mean[:1])
        square = self.mean * self.mean
        return square if self.variance is None else square + self.variance

    @property
    def boundary(self) -> Tensor | float:
        """The threshold of a positive sum, halfway between two of its values."""
        return 0.0 if self.parity is None else 1 - self.parity

    @property
    def score(self) -> Tensor:
        """How far the mean lies above the boundary, in standard deviations, (F, …)."""
        variance = torch.zeros_like(self.mean) if self.variance is None else self.variance
        return (self.mean - self.boundary) * variance.clamp(min=MIN_VARIANCE).rsqrt()


def moments(
    program: Program, probability: Tensor, inputs: Tensor, bipolar: bool | None = None
) -> Moments:
    """Moments of the outputs, (F, …), of nets whose bits are one with `probability` (A,) float32.

    inputs (F, …) are certain: integers in an integer tensor, real numbers in a floating one, gray
    levels in a uint8 or int16 one. `bipolar`: the result of `are_bipolar`, if known. A final step
    of a single output is left out, because it does not change the sign. Cost: about two evaluations
    of one net.
    """
    bipolar = are_bipolar(inputs) if bipolar is None else bipolar
    values = _constants(inputs, -1 if bipolar else None)
    first = 0
    for node in _ordered_nodes(program):
        values = propagate(node, probability[first : first + node.num_bits], values)
        first += node.num_bits
    return values


def log_probability(outputs: Moments, labels: Tensor) -> Tensor:
    """Log-probability that outputs (F, …) give the labels (F,): (F,).

    One output: log Φ. C outputs: log-softmax of s·E[h]/√Var[h], with the mean variance of the
    outputs, which approximates the probability that the label's output is the largest.
    """
    if outputs.mean[0].numel() == 1:
        score = outputs.score.flatten()
        return torch.special.log_ndtr(torch.where(labels == 1, score, -score))
    return _logits(outputs).log_softmax(1).gather(1, labels[:, None])[:, 0]


def answers(outputs: Moments) -> Tensor:
    """The most probable class of each example, (F,) int64; the first one of a tie."""
    if outputs.mean[0].numel() == 1:
        return (outputs.score.flatten() > 0).long()
    return outputs.mean.flatten(1).argmax(1)


def class_probabilities(
    program: Program,
    probability: Tensor,
    inputs: Tensor,
    memory: int = DEFAULT_MEMORY,
    *,
    beta: float = 1.0,
) -> Tensor:
    """Probability of every class for every example, (F, C) float64, by moments.

    probability (A,) is P(w = 1), such as a solution's marginals. One output gives two classes. beta
    multiplies the log-odds of weights; below 1 they are less certain.
    """
    if beta != 1.0:
        probability = torch.sigmoid(beta * torch.logit(probability.double(), eps=MIN_PROBABILITY))
    probability = probability.to(torch.float32)
    found = []
    with torch.no_grad():
        for part in _chunks(program, inputs, memory):
            outputs = moments(program, probability, inputs[part])
            if program.num_outputs == 1:
                score = outputs.score.flatten().double()
                found.append(torch.special.ndtr(torch.stack([-score, score], 1)))
            else:
                found.append(_logits(outputs).double().softmax(1))
    return torch.cat(found)


def _chunks(program: Program, inputs: Tensor, memory: int) -> Iterator[slice]:
    """Slices of examples whose moments fit into memory."""
    widest = max(
        torch.Size(shape).numel() + node.scratch(shape) for node, shape in _shapes(program)
    )
    return chunks(len(inputs), 4 * SCRATCH_COPIES * widest, memory)


@singledispatch
def propagate(node: Node, probability: Tensor, x: Moments) -> Moments:
    """Moments after a node, whose bits are one with `probability` (n,)."""
    raise TypeError(
        f"moments of {type(node).__name__} nodes are not implemented; build the net as a sequence "
        "of vitrail.nn layers, or train it by counting or straight-through"
    )


@propagate.register
def _(node: Weighted, probability: Tensor, x: Moments) -> Moments:
    if node.digits > 1:
        raise TypeError("moments need weights of one digit; set digits=1, or solver='ste'")
    span = 1 - node.low
    weight = (node.low + span * probability).view(node.weight_shape)
    spread = (span**2 * probability * (1 - probability)).view(node.weight_shape)
    variance = _sums(node, spread, x.square)
    if x.variance is not None:
        variance = variance + _sums(node, weight * weight, x.variance)
    mean = _sums(node, weight, x.mean)
    return Moments(mean, variance.expand_as(mean), _parity(node, x))


@propagate.register
def _(node: Step, probability: Tensor, x: Moments) -> Moments:
    if x.variance is None:
        return _constants(node.evaluate(probability, x.mean), low=node.low)
    # sums without variance are certain, such as those of empty windows, which are ties
    certain = (x.mean > x.boundary).to(x.mean.dtype)
    return _bits(torch.where(x.variance > 0, torch.special.ndtr(x.score), certain), node.low)


@propagate.register
def _(node: Gate, probability: Tensor, x: Moments) -> Moments:
    if x.variance is None:
        return _constants(node.evaluate(probability, x.mean), low=0)
    spread = x.variance.clamp(min=MIN_VARIANCE).rsqrt()
    sides = [torch.special.ndtr((side * x.mean - node.width) * spread) for side in (-1, 1)]
    return _bits(sides[0] + sides[1], 0)


@propagate.register
def _(node: Flatten, probability: Tensor, x: Moments) -> Moments:
    variance = None if x.variance is None else x.variance.flatten(1)
    parity = None if x.parity is None else x.parity.expand(-1, *x.mean.shape[1:]).flatten(1)
    return Moments(x.mean.flatten(1), variance, parity, x.low)


@propagate.register
def _(node: MaxPool, probability: Tensor, x: Moments) -> Moments:
    if x.variance is None:
        return _constants(node.evaluate(probability, x.mean[:, None])[:, 0], low=x.low)
    if x.low is None:
        raise TypeError("moments of a pool need bits; put a Sign or Threshold before or after it")
    none = 1 - (x.mean - x.low) / (1 - x.low)
    for axis, (size, stride) in enumerate(zip(node.kernel, node.stride, strict=True)):
        none = none.unfold(2 + axis, size, stride)
    # the gradient of torch.prod reads the number of zeros
    return _bits(1 - reduce(torch.mul, none.flatten(2 + len(node.kernel)).unbind(-1)), x.low)


def are_bipolar(inputs: Tensor) -> bool:
    """Whether inputs have an integer type and are all ±1, so that every term of a sum is odd."""
    if inputs.is_floating_point() or inputs.dtype in LEVEL_TYPES:
        return False
    return bool(((inputs == 1) | (inputs == -1)).all())


def _constants(inputs: Tensor, low: int | None = None) -> Moments:
    """Moments of certain values; bits and values of integer tensors lie on the lattice."""
    values = numbers(inputs)
    if low is None and (inputs.is_floating_point() or inputs.dtype in LEVEL_TYPES):
        return Moments(values, None, None)
    whole = values.detach()
    odd = torch.ones_like(whole[:1]) if low == -1 else whole.remainder(2)
    return Moments(values, None, odd, low)


def _bits(probability: Tensor, low: int) -> Moments:
    """Moments of independent bits with a probability of one: ±1 is odd, 0/1 is unknown."""
    span = 1 - low
    mean, variance = low + span * probability, span**2 * probability * (1 - probability)
    parity = torch.full_like(mean[:1].detach(), 1.0 if low == -1 else 0.5)
    return Moments(mean, variance, parity, low)


def _sums(layer: Weighted, weights: Tensor, values: Tensor) -> Tensor:
    """Sums of values (F, …) times real weights (outputs, inputs, …)."""
    if isinstance(layer, Linear):
        return values @ weights.T
    assert isinstance(layer, Conv)
    convolve = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(layer.kernel)]
    return convolve(values, weights, None, layer.stride, layer.padding, 1, layer.groups)


def _parity(layer: Weighted, x: Moments) -> Tensor | None:
    """Parity of the layer's sums, (F or 1, 1, …); the same for all units at a position."""
    if x.parity is None:
        return None
    if isinstance(layer, Linear) and (x.low == -1 or (x.low == 0 and x.variance is not None)):
        odd = layer.inputs % 2 if x.low == layer.low == -1 else 0.5
        return x.mean.new_full((1, 1), odd)  # of bits it depends on the net alone
    parity = x.parity.expand(-1, *x.mean.shape[1:])
    ones = parity.new_ones((1, *layer.weight_shape[1:]))
    # a weight of zero removes an odd term, so that the parity is unknown
    unknown = parity == 0.5 if layer.low == -1 else parity > 0
    odd = _sums(layer, ones, (parity == 1).to(ones.dtype)).remainder(2)
    return odd.masked_fill(_sums(layer, ones, unknown.to(ones.dtype)) > 0, 0.5)


def _logits(outputs: Moments) -> Tensor:
    assert outputs.variance is not None
    mean, variance = outputs.mean.flatten(1), outputs.variance.flatten(1).mean(1, keepdim=True)
    return SHARPNESS * mean * variance.clamp(min=MIN_VARIANCE).rsqrt()


def _ordered_nodes(program: Program) -> Sequence[Node]:
    """The nodes, with steps moved before pools, which is equivalent."""
    nodes = list(program.nodes)
    if isinstance(nodes[-1], Step) and program.num_outputs == 1:
        nodes = nodes[:-1]
    for i in reversed(range(1, len(nodes))):
        if isinstance(nodes[i], Step) and isinstance(nodes[i - 1], MaxPool):
            nodes[i - 1 : i + 1] = nodes[i], nodes[i - 1]
    return nodes


def _shapes(program: Program) -> list[tuple[Node, Shape]]:
    return list(zip(program.nodes, program.shapes, strict=False))
