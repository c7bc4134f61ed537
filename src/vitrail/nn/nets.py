"""Networks: multilayer perceptrons, convolutional nets, and those of the paper (appendix C.3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod, sqrt

from torch import nn

from vitrail.datasets.dataset import Coding
from vitrail.nn import nodes
from vitrail.nn.augment import Augmentation
from vitrail.nn.layers import (
    Activation,
    BinaryConv2d,
    BinaryLinear,
    Levels,
    Sign,
    Threshold,
)
from vitrail.nn.program import Program

IMAGE_AXES = 3  # channels, height, width


def mlp(
    num_inputs: int, hidden: Sequence[int] = (), num_outputs: int = 1, coding: Coding = "bipolar"
) -> nn.Sequential:
    """A multilayer perceptron with sign activations; its last layer gives the margin.

    Args:
        num_inputs: Inputs of an example.
        hidden: Units of each hidden layer.
        num_outputs: 1 for two classes, otherwise one per class.
        coding: Value of a zero bit: −1 ("bipolar") or 0 ("binary").

    Examples:
        >>> from vitrail.nn import num_weights
        >>> num_weights(mlp(10, hidden=(4,)))
        44
    """
    sizes = [num_inputs, *hidden, num_outputs]
    if min(sizes) < 1:
        raise ValueError(f"every layer needs at least one unit, got sizes {sizes}")
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [BinaryLinear(before, after, coding), Sign(window=sqrt(before))]
    return nn.Sequential(*layers[:-1])


def conv(
    shape: Sequence[int],
    channels: Sequence[int] = (16, 32),
    num_outputs: int = 1,
    units: type[Activation] = Sign,
) -> nn.Sequential:
    """Convolutions 5×5 of stride 2 with step activations, then one linear layer.

    A window of zeros is a tie, which is not positive: `Sign` gives −1, and `Threshold` gives 0,
    which adds nothing to the next layer.

    Args:
        shape: Of one example: (channels, height, width).
        channels: Of each convolution.
        num_outputs: 1 for two classes, otherwise one per class.
        units: Activation of hidden units, `Sign` (±1) or `Threshold` (0/1).

    Examples:
        >>> from vitrail.nn import num_weights
        >>> num_weights(conv((1, 14, 14), num_outputs=10))
        18320
    """
    before, *sides = shape
    layers: list[nn.Module] = []
    for after in channels:
        layers.append(BinaryConv2d(before, after, 5, stride=2, padding=2))
        layers.append(units(window=sqrt(25 * before)))
        before, sides = after, [(side + 1) // 2 for side in sides]
    return nn.Sequential(*layers, nn.Flatten(), BinaryLinear(before * prod(sides), num_outputs))


def small_conv(
    shape: Sequence[int],
    channels: Sequence[int] = (8, 32, 48, 64),
    num_outputs: int = 1,
    *,
    digits: int | Sequence[int] = 1,
    bits: int = 4,
    kernel: int = 5,
    padding: int = 2,
) -> nn.Sequential:
    """Convolutions with activations of a few bits, for 8-bit images on a microcontroller.

    The first has stride 2, all others are 3×3, and a 2×2 pool follows the second. Most weights are
    in layers with small feature maps, so that inference needs few instructions per byte.

    Args:
        shape: Of one example: (channels, height, width).
        channels: Of each convolution.
        num_outputs: 1 for two classes, otherwise one per class.
        digits: Bits per weight, for all layers or for each convolution and the linear layer.
        bits: Bits per activation.
        kernel: Kernel size of the first convolution.
        padding: Padding of the first convolution.

    Examples:
        >>> from vitrail.nn import num_weights
        >>> num_weights(small_conv((1, 28, 28), num_outputs=10, digits=(2, 1, 1, 1, 2)))
        49296
    """
    count = len(channels) + 1
    digits = [digits] * count if isinstance(digits, int) else list(digits)
    if len(digits) != count:
        raise ValueError(f"expected digits of {count} layers, got {len(digits)}")
    before, *sides = shape
    layers: list[nn.Module] = []
    for number, after in enumerate(channels):
        size, stride, pad = (3, 1, int(min(sides) < 3)) if number else (kernel, 2, padding)
        layer = BinaryConv2d(before, after, size, stride, pad, digits=digits[number])
        layers += [layer, Levels(after, bits)]
        before, sides = after, [(side + 2 * pad - size) // stride + 1 for side in sides]
        if number == 1 and min(sides) > 1:
            layers.append(nn.MaxPool2d(2))
            sides = [side // 2 for side in sides]
    last = BinaryLinear(before * prod(sides), num_outputs, digits=digits[-1])
    return nn.Sequential(*layers, nn.Flatten(), last)


def paper_linear() -> nn.Sequential:
    """The paper's linear net, 196 weights: one unit on 14×14 pixels, flattened.

    Examples:
        >>> from vitrail.nn import num_weights
        >>> num_weights(paper_linear())
        196
    """
    return mlp(196)


def paper_mlp() -> nn.Sequential:
    """The paper's multilayer perceptron, 394 weights: 196·2 + 2, sign hidden units.

    Examples:
        >>> from vitrail.nn import num_weights
        >>> num_weights(paper_mlp())
        394
    """
    return mlp(196, hidden=(2,))


def paper_conv() -> nn.Sequential:
    """The paper's convolutional net, 89 weights on images (1, 14, 14).

    Two strided convolutions with thresholds, then one unit.

    Examples:
        >>> from vitrail.nn import num_weights
        >>> num_weights(paper_conv())
        89
    """
    return nn.Sequential(
        BinaryConv2d(1, 3, 3, stride=2),
        Threshold(window=sqrt(9)),
        BinaryConv2d(3, 2, 3, stride=2),
        Threshold(window=sqrt(27)),
        nn.Flatten(),
        BinaryLinear(8, 1),
    )


def reads_images(module: nn.Module | Program) -> bool:
    """Whether a module has 2-D convolutions, so that examples keep their shape."""
    if isinstance(module, Program):
        return len(module.input_shape) == IMAGE_AXES
    return any(isinstance(part, BinaryConv2d | nn.Conv2d) for part in module.modules())


def has_levels(module: nn.Module | Program) -> bool:
    """Whether a net has activations of a few bits."""
    if isinstance(module, Program):
        return any(isinstance(node, nodes.Levels) for node in module.nodes)
    return any(isinstance(part, Levels) for part in module.modules())


def image_channels(module: nn.Module | Program) -> int | None:
    """The input channels of a module, if its first layer is a convolution; None otherwise."""
    if isinstance(module, Program):
        return module.input_shape[0] if reads_images(module) else None
    while isinstance(module, nn.Sequential) and len(module):
        module = next((part for part in module if not isinstance(part, Augmentation)), module[0])
    return module.in_channels if isinstance(module, BinaryConv2d | nn.Conv2d) else None
