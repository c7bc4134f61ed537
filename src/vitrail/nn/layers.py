"""Layers whose weights are bits, as torch modules.

Each has latent real weights, multiplies by their signs and passes gradients straight through
(Hubara et al. 2016), so it can be trained by any torch optimiser. The rest of vitrail uses its
`node`.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitrail.checks import checked_count
from vitrail.datasets.dataset import Coding
from vitrail.nn import nodes
from vitrail.nn.coding import low_value
from vitrail.nn.nodes import (
    MAX_DIGITS,
    MAX_OFFSET,
    MAX_SCALE,
    MAX_SHIFT,
    Conv,
    Linear,
    Node,
    Shape,
    Step,
    Weighted,
    step,
)

LEVELS_MOMENTUM = 0.05  # of running means and variances
FINEST = 8  # offsets are multiples of 2⁻⁸ of the range of levels, or coarser
MIN_VARIANCE = 1e-3  # of sums of integers


class BinaryLayer(nn.Module):
    """A layer whose weights are the signs of latent real weights.

    Args:
        shape: Shape of the weights.
        coding: Value of a zero bit: −1 ("bipolar") or 0 ("binary").
        digits: Bits per weight; two give −3, −1, 1 and 3, or 0 to 3 in binary coding.
    """

    def __init__(self, shape: Shape, coding: Coding, digits: int = 1) -> None:
        super().__init__()
        self.low = low_value(coding)
        self.coding: Coding = coding
        self.digits = checked_count("digits", digits, 1, MAX_DIGITS)
        self.latent = nn.Parameter(torch.empty(shape).uniform_(-1.0, 1.0))

    @property
    def weight(self) -> Tensor:
        """The weights: ±1, or 0/1 in binary coding; other integers for several digits."""
        return step(self.latent, self.low, digits=self.digits)

    def bits(self) -> Tensor:
        """The bits of the weights, (digits, …) bool."""
        number = step(self.latent.detach(), 0, digits=self.digits).to(torch.int64)
        return torch.stack([number >> digit & 1 for digit in range(self.digits)]) > 0

    def set_bits(self, bits: Tensor) -> None:
        """Set the weights to these bits (digits, …)."""
        parts = 2**self.digits
        number = sum(2**digit * part.to(self.latent.dtype) for digit, part in enumerate(bits))
        with torch.no_grad():
            self.latent.copy_((2 * number + 1 - parts) / (parts - 1))

    @abstractmethod
    def node(self) -> Weighted:
        """The layer as a node of a program."""


class BinaryLinear(BinaryLayer):
    """A linear layer without bias: h_o = Σ_i w_oi·x_i. Weights in the order (out, in).

    Args:
        in_features: Number of inputs.
        out_features: Number of units.
        coding: Value of a zero bit: −1 ("bipolar") or 0 ("binary").
        digits: Bits per weight; two give −3, −1, 1 and 3, or 0 to 3 in binary coding.

    Examples:
        >>> BinaryLinear(3, 2)(torch.ones(4, 3)).shape
        torch.Size([4, 2])
    """

    def __init__(
        self, in_features: int, out_features: int, coding: Coding = "bipolar", *, digits: int = 1
    ) -> None:
        super().__init__((out_features, in_features), coding, digits)
        self.in_features, self.out_features = in_features, out_features

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)

    def node(self) -> Linear:
        return Linear(self.low, self.in_features, self.out_features, digits=self.digits)

    def extra_repr(self) -> str:
        digits = f", digits={self.digits}" if self.digits > 1 else ""
        return f"{self.in_features}, {self.out_features}, coding={self.coding!r}{digits}"


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
        *,
        groups: int = 1,
        digits: int = 1,
    ) -> None:
        sizes = [self._sizes(size) for size in (kernel_size, stride, padding)]
        checked_count("groups", groups, 1, in_channels)
        super().__init__((out_channels, in_channels // groups, *sizes[0]), coding, digits)
        self.groups = groups
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
        return convolve(x, self.weight, None, self.stride, self.padding, 1, self.groups)

    def node(self) -> Conv:
        channels = self.in_channels, self.out_channels
        sizes = self.kernel_size, self.stride, self.padding
        return Conv(self.low, *channels, *sizes, digits=self.digits, groups=self.groups)

    def extra_repr(self) -> str:
        more = {"groups": self.groups, "digits": self.digits}
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, coding={self.coding!r}"
            + "".join(f", {name}={count}" for name, count in more.items() if count > 1)
        )


class BinaryConv1d(_BinaryConv):
    """1-D convolution without bias; zero padding. Weights in the order (out, in, step in time).

    Args:
        in_channels: Number of input channels.
        out_channels: Number of output channels.
        kernel_size: One number, or one for each axis.
        stride: One number, or one for each axis.
        padding: Zeros on each side: one number, or one for each axis.
        coding: Value of a zero bit: −1 ("bipolar") or 0 ("binary").
        groups: Groups of channels: outputs of a group read the inputs of the same group. With one
            group per input channel it is a depthwise convolution.
        digits: Bits per weight; two give −3, −1, 1 and 3, or 0 to 3 in binary coding.

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
    """A step at zero. Gradients pass for |x| up to `window`, which message passing does not use.

    Sums of n signs have a standard deviation of √n, so this package's nets have windows of √n.
    """

    low: int

    def __init__(self, window: float = 1.0) -> None:
        super().__init__()
        self.window = window

    def node(self) -> Node:
        """The step as a node of a program."""
        return Step(self.low, self.window)

    def forward(self, x: Tensor) -> Tensor:
        return step(x, self.low, self.window)

    def extra_repr(self) -> str:
        return "" if self.window == 1 else f"window={self.window:g}"


class Sign(Activation):
    """+1 where x > 0, −1 elsewhere; gradients pass for |x| up to `window`.

    Examples:
        >>> Sign()(torch.tensor([2.0, 0.0, -1.0]))
        tensor([ 1., -1., -1.])
    """

    low = -1


class Threshold(Activation):
    """1 where x > 0, 0 elsewhere; gradients pass for |x| up to `window`.

    Examples:
        >>> Threshold()(torch.tensor([2.0, 0.0, -1.0]))
        tensor([1., 0., 0.])
    """

    low = 0


class Gate(Activation):
    """1 where |x| > width, 0 elsewhere: inactive for inputs that differ from the weights.

    Nets of such units forget less of the earlier part of a stream.

    Examples:
        >>> Gate(1.0)(torch.tensor([2.0, 0.5, -3.0]))
        tensor([1., 0., 1.])
    """

    def __init__(self, width: float) -> None:
        super().__init__(width)

    def node(self) -> nodes.Gate:
        return nodes.Gate(self.window)

    def forward(self, x: Tensor) -> Tensor:
        return step(x.abs() - self.window, 0, self.window)


class Levels(nn.Module):
    """Quantisation to integers from 0 to 2^bits − 1: batch norm, then rounding and clipping.

    In training each channel is normalised to mean 0 and variance 1 over the batch, then to a
    learned scale and offset; gradients pass straight through the rounding where values are not
    clipped. In eval mode all numbers are integers, as in its node: scale and offset are one product
    and one shift.

    Args:
        channels: Number of channels, or of units of a linear layer.
        bits: Bits per activation, from 1 to 8.

    Examples:
        >>> Levels(2, bits=2)(torch.tensor([[-5.0, 1.0], [5.0, 2.0]])).detach()
        tensor([[0., 0.],
                [2., 2.]])
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, channels: int, bits: int = 4) -> None:
        super().__init__()
        self.channels, self.bits = channels, checked_count("bits", bits, 1, 8)
        self.top = 2**bits - 1
        self.gain = nn.Parameter(torch.full((channels,), self.top / 3))
        self.start = nn.Parameter(torch.full((channels,), self.top / 4))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return self.node().evaluate(torch.empty(0), x[None])[0]
        axes = [0, *range(2, x.ndim)]
        mean, variance = x.mean(axes), x.var(axes, unbiased=False)
        with torch.no_grad():
            self.mean.lerp_(mean, LEVELS_MOMENTUM)
            self.variance.lerp_(variance, LEVELS_MOMENTUM)
        each = (-1, *(1,) * (x.ndim - 2))
        centred = (x - mean.view(each)) * self._gain(variance).view(each)
        y = (centred + self.start.view(each)).clamp(-0.5, self.top + 0.5)
        return y + (y.round().clamp(0, self.top) - y).detach()

    def _gain(self, variance: Tensor) -> Tensor:
        """Levels per unit of the sums, (channels,)."""
        return self.gain.abs() / torch.sqrt(variance + MIN_VARIANCE)

    @torch.no_grad()
    def node(self) -> nodes.Levels:
        """The levels as a node of a program, with the shifts that minimise rounding errors.

        Errors of a scale are weighted by the variance of its channel.
        """
        mean, variance = self.mean.double(), self.variance.double()
        start, gain = self.start.double(), self._gain(variance)
        found: list[tuple[float, int, int, Tensor, Tensor]] = []
        for shift in range(MAX_SHIFT + 1):
            scale = (gain * 2.0**shift).round().clamp(1, MAX_SCALE)
            wanted = start - scale * 2.0**-shift * mean + 0.5
            of_scale = ((scale * 2.0**-shift - gain).square() * variance).sum()
            for fine in range(max(0, shift + self.bits - FINEST), shift + 1):
                offset = (wanted * 2.0 ** (shift - fine)).round().clamp(-MAX_OFFSET, MAX_OFFSET)
                of_offset = (offset * 2.0 ** (fine - shift) - wanted).square().sum()
                found.append((float(of_scale + of_offset), shift, fine, scale, offset))
        _, shift, fine, *sizes = min(found, key=lambda one: one[0])
        scale, offset = (tuple(int(number) for number in part.tolist()) for part in sizes)
        return nodes.Levels(self.top, shift, fine, scale, offset)

    def extra_repr(self) -> str:
        return f"{self.channels}, bits={self.bits}"
