"""Layers whose weights are bits.

Each layer can be used in two ways. As an ordinary torch module it holds latent real weights,
multiplies by their signs and passes gradients straight through (Hubara et al. 2016), so it
trains under any torch optimiser. And `evaluate` applies many weight configurations at once:

    bits (f, s, n) bool, x (f, s, …)  →  (F, S, …),   f and s being 1 or full, broadcasting

Weights that are shared by all examples (f = 1) or inputs that are shared by all configurations
(s = 1) stay size 1, so that the contraction becomes one matrix product.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitrail.data.dataset import Coding
from vitrail.nn.coding import low_value, values


class _StraightThrough(torch.autograd.Function):
    """[x > 0] on the way forward; the identity within |x| ≤ window on the way back."""

    @staticmethod
    def forward(ctx, x: Tensor, low: int, window: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.window = window
        return (x > 0).to(x.dtype) * (1 - low) + low

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        return grads[0] * (x.abs() <= ctx.window), None, None


def step(x: Tensor, low: int, window: float = 1.0) -> Tensor:
    """1 where x > 0, `low` elsewhere (a tie is not positive), with straight-through gradient."""
    result = _StraightThrough.apply(x, low, window)
    assert isinstance(result, Tensor)
    return result


class BinaryLayer(nn.Module):
    """A layer with bits: latent real weights, their sign counts."""

    def __init__(self, shape: tuple[int, ...], coding: Coding) -> None:
        super().__init__()
        self.low = low_value(coding)
        self.coding: Coding = coding
        self.latent = nn.Parameter(torch.empty(shape).uniform_(-1.0, 1.0))

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        raise TypeError(f"{type(self).__name__} does not say how to evaluate bits")


class BinaryLinear(BinaryLayer):
    """h_o = Σ_i w_oi·x_i, no bias. Weights in the order (out, in)."""

    def __init__(self, in_features: int, out_features: int, coding: Coding = "bipolar") -> None:
        super().__init__((out_features, in_features), coding)
        self.in_features, self.out_features = in_features, out_features

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, step(self.latent, self.low))

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        if x.shape[2:] != (self.in_features,):
            raise ValueError(
                f"BinaryLinear expects {self.in_features} inputs per example, got shape "
                f"{tuple(x.shape[2:])}; flatten images or correct in_features"
            )
        weights = values(bits, self.low).unflatten(-1, (self.out_features, self.in_features))
        return torch.einsum("fsoi,fsi->fso", weights, x)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, coding={self.coding!r}"


class BinaryConv2d(BinaryLayer):
    """2-D convolution without bias; zero padding. Weights in the order (out, in, row, column)."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        coding: Coding = "bipolar",
    ) -> None:
        kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
        super().__init__((out_channels, in_channels, *kernel), coding)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel
        self.stride = (stride, stride) if isinstance(stride, int) else stride
        self.padding = (padding, padding) if isinstance(padding, int) else padding

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, step(self.latent, self.low), None, self.stride, self.padding)

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        if x.ndim != 5 or x.shape[2] != self.in_channels:
            raise ValueError(
                f"BinaryConv2d expects images ({self.in_channels}, height, width), got shape "
                f"{tuple(x.shape[2:])}; reshape the inputs or correct in_channels"
            )
        image = x.shape[3:]
        (pad_y, pad_x), (rows, columns) = self.padding, self.kernel_size
        # windows by strides: F.unfold starts its threads anew for every image
        windows = F.pad(x, (pad_x, pad_x, pad_y, pad_y))
        windows = windows.unfold(3, rows, self.stride[0]).unfold(4, columns, self.stride[1])
        patches = windows.permute(0, 1, 2, 5, 6, 3, 4).flatten(5).flatten(2, 4)
        weights = values(bits, self.low).unflatten(-1, (self.out_channels, patches.shape[2]))
        out = torch.einsum("fsok,fskl->fsol", weights, patches)
        return out.unflatten(-1, self.output_size(image))

    def output_size(self, image: torch.Size | tuple[int, ...]) -> tuple[int, ...]:
        """Height and width after the convolution."""
        sizes = zip(image, self.kernel_size, self.stride, self.padding, strict=True)
        return tuple((size + 2 * pad - kernel) // stride + 1 for size, kernel, stride, pad in sizes)

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, coding={self.coding!r}"
        )


class Activation(nn.Module):
    """A step at zero. `window` is how far from it gradients pass; message passing does not use it.

    Sums of n signs spread like √n, and a window of 1 would stop nearly all gradients of a wide
    layer: the nets of this package have windows of √n.
    """

    def __init__(self, window: float = 1.0) -> None:
        super().__init__()
        self.window = window

    def extra_repr(self) -> str:
        return "" if self.window == 1 else f"window={self.window:g}"


class Sign(Activation):
    """+1 where x > 0, −1 elsewhere."""

    def forward(self, x: Tensor) -> Tensor:
        return step(x, -1, self.window)


class Threshold(Activation):
    """1 where x > 0, 0 elsewhere."""

    def forward(self, x: Tensor) -> Tensor:
        return step(x, 0, self.window)
