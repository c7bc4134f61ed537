"""Layers whose weights are bits, as torch modules.

Each holds latent real weights, multiplies by their signs and passes gradients straight through
(Hubara et al. 2016), so it trains under any torch optimiser. What everything else knows of a
layer is its `node`.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitrail.datasets.dataset import Coding
from vitrail.nn.coding import low_value
from vitrail.nn.nodes import Conv, Linear, Node, Shape, Step, Weighted, step


class BinaryLayer(nn.Module):
    """A layer with bits: latent real weights, their sign counts.

    Args:
        shape: Of the weights.
        coding: What a zero bit stands for: −1 ("bipolar") or 0 ("binary").
    """

    def __init__(self, shape: Shape, coding: Coding) -> None:
        super().__init__()
        self.low = low_value(coding)
        self.coding: Coding = coding
        self.latent = nn.Parameter(torch.empty(shape).uniform_(-1.0, 1.0))

    @property
    def weight(self) -> Tensor:
        """The weights as they count: ±1, or 0/1 in binary coding."""
        return step(self.latent, self.low)

    @abstractmethod
    def node(self) -> Weighted:
        """The layer as a part of a program."""


class BinaryLinear(BinaryLayer):
    """A linear layer without bias: h_o = Σ_i w_oi·x_i. Weights in the order (out, in).

    Args:
        in_features: Inputs of each unit.
        out_features: Units.
        coding: What a zero bit stands for: −1 ("bipolar") or 0 ("binary").

    Examples:
        >>> BinaryLinear(3, 2)(torch.ones(4, 3)).shape
        torch.Size([4, 2])
    """

    def __init__(self, in_features: int, out_features: int, coding: Coding = "bipolar") -> None:
        super().__init__((out_features, in_features), coding)
        self.in_features, self.out_features = in_features, out_features

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)

    def node(self) -> Linear:
        return Linear(self.low, self.in_features, self.out_features)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, coding={self.coding!r}"


class _BinaryConv(BinaryLayer):
    """A convolution without bias, padded with zeros. Weights in the order (out, in, *kernel)."""

    rank: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Shape,
        stride: int | Shape = 1,
        padding: int | Shape = 0,
        coding: Coding = "bipolar",
    ) -> None:
        sizes = [self._sizes(size) for size in (kernel_size, stride, padding)]
        super().__init__((out_channels, in_channels, *sizes[0]), coding)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding = sizes

    def _sizes(self, size: int | Shape) -> Shape:
        sizes = (size,) * self.rank if isinstance(size, int) else tuple(size)
        if len(sizes) != self.rank:
            raise ValueError(
                f"{type(self).__name__} takes one number or {self.rank} of them, got {size}"
            )
        return sizes

    def forward(self, x: Tensor) -> Tensor:
        convolve = F.conv1d if self.rank == 1 else F.conv2d
        return convolve(x, self.weight, None, self.stride, self.padding)

    def node(self) -> Conv:
        channels = self.in_channels, self.out_channels
        return Conv(self.low, *channels, self.kernel_size, self.stride, self.padding)

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, coding={self.coding!r}"
        )


class BinaryConv1d(_BinaryConv):
    """1-D convolution without bias; zero padding. Weights in the order (out, in, step in time).

    Args:
        in_channels: Channels of the inputs.
        out_channels: Channels of the outputs.
        kernel_size: One number, or one for each axis.
        stride: One number, or one for each axis.
        padding: Zeros on each side: one number, or one for each axis.
        coding: What a zero bit stands for: −1 ("bipolar") or 0 ("binary").

    Examples:
        >>> BinaryConv1d(1, 4, kernel_size=5, stride=2)(torch.ones(8, 1, 25)).shape
        torch.Size([8, 4, 11])
    """

    rank = 1


class BinaryConv2d(_BinaryConv):
    """2-D convolution without bias; zero padding. Weights in the order (out, in, row, column).

    Parameters are those of `BinaryConv1d`.

    Examples:
        >>> BinaryConv2d(1, 3, kernel_size=3, stride=2)(torch.ones(8, 1, 14, 14)).shape
        torch.Size([8, 3, 6, 6])
    """

    rank = 2


class Activation(nn.Module):
    """A step at zero. `window` is how far from it gradients pass; message passing does not use it.

    Sums of n signs spread like √n, so the nets of this package have windows of √n.
    """

    low: int

    def __init__(self, window: float = 1.0) -> None:
        super().__init__()
        self.window = window

    def node(self) -> Node:
        """The step as a part of a program."""
        return Step(self.low, self.window)

    def forward(self, x: Tensor) -> Tensor:
        return step(x, self.low, self.window)

    def extra_repr(self) -> str:
        return "" if self.window == 1 else f"window={self.window:g}"


class Sign(Activation):
    """+1 where x > 0, −1 elsewhere; `window` is how far from zero gradients pass.

    Examples:
        >>> Sign()(torch.tensor([2.0, 0.0, -1.0]))
        tensor([ 1., -1., -1.])
    """

    low = -1


class Threshold(Activation):
    """1 where x > 0, 0 elsewhere; `window` is how far from zero gradients pass.

    Examples:
        >>> Threshold()(torch.tensor([2.0, 0.0, -1.0]))
        tensor([1., 0., 0.])
    """

    low = 0
