"""Mean and variance of a net's values when its weights are independent random bits.

`Program.evaluate` asks what a net of given bits answers; `moments` asks what the answers of all
nets are like, each bit being one with its own probability p. Layer by layer, w and x independent,

    E[h] = Σ E[w]·E[x]        Var[h] = Σ Var[x]·E[w]² + E[x²]·Var[w]
    P(h > 0) = Φ((E[h] − boundary) / √Var[h])

Sums of whole numbers lie on a lattice, so the boundary stands halfway between the largest sum
that is not positive and the smallest that is: a sum of n terms ±1 has the parity of n, and the
boundary is 1 where it is even and 0 where it is odd; it is ½ where it may be either.

The first layer's moments are exact. Behind a step, values are taken as Gaussian before it and as
independent after it. Everything can be differentiated with respect to p: the gradient of an
example's `log_probability` is its message to every weight, see `vitrail.solvers.streaming`.
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

SMALLEST_VARIANCE = 1e-4  # of a sum that is all but certain
SHARPNESS = 1.28  # π/√6: argmax of Gaussians ≈ argmax with Gumbel noise of the same variance
MIN_PROBABILITY = 1e-12  # P(w = 1) is clipped to it where log-odds are taken
SCRATCH_COPIES = 8  # tensors of the size of a layer's values that moments of it hold


@dataclass(frozen=True)
class Moments:
    """Independent values of F examples: what is known of each."""

    mean: Tensor  # (F, …) float32
    variance: Tensor | None  # (F, …); None where values are certain
    parity: Tensor | None  # (F or 1, …): 1 odd, 0 even, ½ either; None where not whole numbers
    low: int | None = None  # where values are bits: what a zero bit stands for

    @property
    def square(self) -> Tensor:
        """E[x²], (F or 1, …)."""
        if self.low == -1:
            return torch.ones_like(self.mean[:1])
        square = self.mean * self.mean
        return square if self.variance is None else square + self.variance

    @property
    def boundary(self) -> Tensor | float:
        """What a sum must exceed to be positive, halfway between two of its values."""
        return 0.0 if self.parity is None else 1 - self.parity

    @property
    def score(self) -> Tensor:
        """How far the mean lies above the boundary, in standard deviations, (F, …)."""
        variance = torch.zeros_like(self.mean) if self.variance is None else self.variance
        return (self.mean - self.boundary) * variance.clamp(min=SMALLEST_VARIANCE).rsqrt()


def moments(
    program: Program, probability: Tensor, inputs: Tensor, bipolar: bool | None = None
) -> Moments:
    """Moments of the outputs, (F, …), of nets whose bits are one with `probability` (A,) float32.

    inputs (F, …) are certain: whole numbers in an integer tensor, real numbers in a floating one,
    gray levels in a uint8 or int16 one. `bipolar` is what `are_bipolar` says of them or of more, if
    known. A last step of a single output is left out, because it keeps the sign that is asked for.
    Cost: about two evaluations of one net.
    """
    return _behind(_parts(program), probability, inputs, bipolar)


def _behind(
    nodes: Sequence[Node], probability: Tensor, inputs: Tensor, bipolar: bool | None = None
) -> Moments:
    """Moments behind the first parts of a net."""
    bipolar = are_bipolar(inputs) if bipolar is None else bipolar
    values = _certain(inputs, -1 if bipolar else None)
    first = 0
    for node in nodes:
        values = propagate(node, probability[first : first + node.num_bits], values)
        first += node.num_bits
    return values


def log_probability(outputs: Moments, labels: Tensor) -> Tensor:
    """Log-probability that outputs (F, …) give the labels (F,): (F,).

    One output: log Φ. C outputs: log-softmax of s·E[h]/√Var[h], the variance being the mean over
    the outputs, which is near the probability that the label's output is the largest.
    """
    if outputs.mean[0].numel() == 1:
        score = outputs.score.flatten()
        return torch.special.log_ndtr(torch.where(labels == 1, score, -score))
    return _logits(outputs).log_softmax(1).gather(1, labels[:, None])[:, 0]


def answers(outputs: Moments) -> Tensor:
    """The likeliest class of each example, (F,) int64; of a tie the first."""
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
    """Probability of every class for every example, (F, C) float64, by moments: no net is drawn.

    probability (A,) is P(w = 1), as in a solution's marginals. One output gives two classes. beta
    multiplies log-odds: below 1 weights are less certain than the marginals say, as they were when
    the solver's own beta was lower.
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


def novelty(
    program: Program, probability: Tensor, inputs: Tensor, memory: int = DEFAULT_MEMORY
) -> Tensor:
    """How unlike the examples learned each example is, (F,) float32 from 0 to 1.

    The mean variance of the bits of the last hidden layer: weights that have learned from examples
    like it put its sums on one side; those of an unlike example may come out on either. Of gates it
    is the share that is shut.
    """
    nodes = _parts(program)
    steps = [place for place, node in enumerate(nodes) if isinstance(node, Step | Gate)]
    if not steps:
        raise TypeError("novelty is the variance of hidden units; this net has none")
    found = []
    with torch.no_grad():
        for part in _chunks(program, inputs, memory):
            bits = _behind(nodes[: steps[-1] + 1], probability.to(torch.float32), inputs[part])
            assert bits.variance is not None
            assert bits.low is not None
            if isinstance(nodes[steps[-1]], Gate):
                found.append(1 - bits.mean.flatten(1).mean(1))
                continue
            found.append(4 / (1 - bits.low) ** 2 * bits.variance.flatten(1).mean(1))
    return torch.cat(found)


def _chunks(program: Program, inputs: Tensor, memory: int) -> Iterator[slice]:
    """Examples whose moments fit into memory at once."""
    widest = max(
        torch.Size(shape).numel() + node.scratch(shape) for node, shape in _shapes(program)
    )
    return chunks(len(inputs), 4 * SCRATCH_COPIES * widest, memory)


@singledispatch
def propagate(node: Node, probability: Tensor, x: Moments) -> Moments:
    """Moments behind a part of a net, whose bits are one with `probability` (n,)."""
    raise TypeError(
        f"moments are not known of {type(node).__name__} parts; build the net of vitrail.nn layers "
        "one after another, or train it by counting or straight-through"
    )


@propagate.register
def _(node: Weighted, probability: Tensor, x: Moments) -> Moments:
    if node.digits > 1:
        raise TypeError(
            "moments are not known of weights of several digits; take digits=1, or solver='ste'"
        )
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
        return _certain(node.evaluate(probability, x.mean), low=node.low)
    # a sum without variance is certain: a window of background has none, and is a tie
    certain = (x.mean > x.boundary).to(x.mean.dtype)
    return _bits(torch.where(x.variance > 0, torch.special.ndtr(x.score), certain), node.low)


@propagate.register
def _(node: Gate, probability: Tensor, x: Moments) -> Moments:
    if x.variance is None:
        return _certain(node.evaluate(probability, x.mean), low=0)
    spread = x.variance.clamp(min=SMALLEST_VARIANCE).rsqrt()
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
        return _certain(node.evaluate(probability, x.mean[:, None])[:, 0], low=x.low)
    if x.low is None:
        raise TypeError(
            "moments of a pool are known of bits only; put a Sign or Threshold before or behind it"
        )
    none = 1 - (x.mean - x.low) / (1 - x.low)
    for axis, (size, stride) in enumerate(zip(node.kernel, node.stride, strict=True)):
        none = none.unfold(2 + axis, size, stride)
    # the gradient of torch's own product asks for the number of zeros
    return _bits(1 - reduce(torch.mul, none.flatten(2 + len(node.kernel)).unbind(-1)), x.low)


def are_bipolar(inputs: Tensor) -> bool:
    """Whether inputs of an integer type are all ±1, so that every term of a sum is odd."""
    if inputs.is_floating_point() or inputs.dtype in LEVEL_TYPES:
        return False
    return bool(((inputs == 1) | (inputs == -1)).all())


def _certain(inputs: Tensor, low: int | None = None) -> Moments:
    """Values without spread; those of an integer tensor, and bits, lie on the lattice."""
    values = numbers(inputs)
    if low is None and (inputs.is_floating_point() or inputs.dtype in LEVEL_TYPES):
        return Moments(values, None, None)
    whole = values.detach()
    odd = torch.ones_like(whole[:1]) if low == -1 else whole.remainder(2)
    return Moments(values, None, odd, low)


def _bits(probability: Tensor, low: int) -> Moments:
    """Independent bits that are one with a probability: ±1 is odd, 0/1 may be either."""
    span = 1 - low
    mean, variance = low + span * probability, span**2 * probability * (1 - probability)
    parity = torch.full_like(mean[:1].detach(), 1.0 if low == -1 else 0.5)
    return Moments(mean, variance, parity, low)


def _sums(layer: Weighted, weights: Tensor, values: Tensor) -> Tensor:
    """Values (F, …) through real weights (outputs, inputs, …) in the layer's wiring."""
    if isinstance(layer, Linear):
        return values @ weights.T
    assert isinstance(layer, Conv)
    convolve = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(layer.kernel)]
    return convolve(values, weights, None, layer.stride, layer.padding, 1, layer.groups)


def _parity(layer: Weighted, x: Moments) -> Tensor | None:
    """Parity of the layer's sums, (F or 1, 1, …): it is the same for all units at a place."""
    if x.parity is None:
        return None
    if isinstance(layer, Linear) and (x.low == -1 or (x.low == 0 and x.variance is not None)):
        odd = layer.inputs % 2 if x.low == layer.low == -1 else 0.5
        return x.mean.new_full((1, 1), odd)  # bits: the net alone says
    parity = x.parity.expand(-1, *x.mean.shape[1:])
    ones = parity.new_ones((1, *layer.weight_shape[1:]))
    # a weight of zero takes an odd term out, so that nothing is known
    unsure = parity == 0.5 if layer.low == -1 else parity > 0
    odd = _sums(layer, ones, (parity == 1).to(ones.dtype)).remainder(2)
    return odd.masked_fill(_sums(layer, ones, unsure.to(ones.dtype)) > 0, 0.5)


def _logits(outputs: Moments) -> Tensor:
    assert outputs.variance is not None
    mean, variance = outputs.mean.flatten(1), outputs.variance.flatten(1).mean(1, keepdim=True)
    return SHARPNESS * mean * variance.clamp(min=SMALLEST_VARIANCE).rsqrt()


def _parts(program: Program) -> Sequence[Node]:
    """The nodes, a step before a pool rather than behind it: both orders compute the same."""
    nodes = list(program.nodes)
    if isinstance(nodes[-1], Step) and program.num_outputs == 1:
        nodes = nodes[:-1]
    for i in reversed(range(1, len(nodes))):
        if isinstance(nodes[i], Step) and isinstance(nodes[i - 1], MaxPool):
            nodes[i - 1 : i + 1] = nodes[i], nodes[i - 1]
    return nodes


def _shapes(program: Program) -> list[tuple[Node, Shape]]:
    return list(zip(program.nodes, program.shapes, strict=False))
