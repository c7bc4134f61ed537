"""Random augmentation of training examples; in eval mode the layers do nothing.

They are the first layers of a module trained by `vitrail.learning.gradients` or by any other loop,
on images (…, channels, height, width) of integers from 0 to 255.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Pair = float | tuple[float, float]  # for both axes, or vertically and horizontally
BRIGHTEST = 255.0
ELASTIC_POINTS = 5  # per axis, between which displacements are smooth


class Augmentation(nn.Module):
    """A layer that acts in training only."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        return self.changed(x).round().clamp(0, BRIGHTEST)

    def changed(self, x: Tensor) -> Tensor:
        """Augmented examples x (B, C, H, W)."""
        raise NotImplementedError


class RandomWarp(Augmentation):
    """Random rotations, shears, scalings, shifts and elastic deformations of images.

    Args:
        shift: Largest shift, as a fraction of half a side.
        scale: Largest relative change of size.
        rotate: Largest angle, in radians.
        shear: Largest horizontal shear, as a fraction of the height.
        elastic: Standard deviation of smooth displacements, as a fraction of half a side.
        edge: Whether pixels from outside repeat the edge; otherwise they are 0.

    Examples:
        >>> RandomWarp().eval()(torch.ones(2, 1, 8, 8)).shape
        torch.Size([2, 1, 8, 8])
    """

    def __init__(
        self,
        shift: Pair = 0.1,
        scale: Pair = 0.08,
        rotate: float = 0.15,
        shear: float = 0.12,
        elastic: Pair = 0.03,
        *,
        edge: bool = False,
    ) -> None:
        super().__init__()
        self.shift, self.scale, self.elastic = _pair(shift), _pair(scale), _pair(elastic)
        self.rotate, self.shear, self.edge = rotate, shear, edge

    def changed(self, x: Tensor) -> Tensor:
        def up_to(most: float) -> Tensor:
            return (2 * torch.rand(len(x), device=x.device) - 1) * most

        angle, shear = up_to(self.rotate), up_to(self.shear)
        down, right = (1 + up_to(most) for most in self.scale)
        y, x_shift = (up_to(most) for most in self.shift)
        cos, sin = angle.cos(), angle.sin()
        rows = torch.stack([cos * right, shear - sin * down, x_shift], 1)
        columns = torch.stack([sin * right, cos * down, y], 1)
        grid = F.affine_grid(torch.stack([rows, columns], 1), list(x.shape), align_corners=False)
        if any(self.elastic):
            spread = torch.tensor(self.elastic[::-1], device=x.device)[:, None, None]
            points = torch.randn(len(x), 2, ELASTIC_POINTS, ELASTIC_POINTS, device=x.device)
            bent = F.interpolate(spread * points, x.shape[2:], mode="bicubic", align_corners=True)
            grid = grid + bent.permute(0, 2, 3, 1)
        padding = "border" if self.edge else "zeros"
        return F.grid_sample(x, grid, padding_mode=padding, align_corners=False)

    def extra_repr(self) -> str:
        return (
            f"shift={self.shift}, scale={self.scale}, rotate={self.rotate}, shear={self.shear}, "
            f"elastic={self.elastic}, edge={self.edge}"
        )


class RandomLevel(Augmentation):
    """Random gain, level, noise and masks, for images or spectrograms.

    Args:
        gain: Largest deviation of the factor from 1.
        level: Largest constant that is added or subtracted.
        tilt: Largest level of a linear change from one side to the other.
        noise: Standard deviation of the noise of every value.
        mask: Largest numbers of adjacent rows and columns that are replaced by the mean.

    Examples:
        >>> RandomLevel().eval()(torch.ones(2, 1, 8, 8)).shape
        torch.Size([2, 1, 8, 8])
    """

    def __init__(
        self,
        gain: float = 0.1,
        level: float = 12.0,
        tilt: float = 10.0,
        noise: float = 4.0,
        mask: Pair = (4.0, 2.0),
    ) -> None:
        super().__init__()
        self.gain, self.level, self.tilt, self.noise = gain, level, tilt, noise
        self.mask = _pair(mask)

    def changed(self, x: Tensor) -> Tensor:
        def up_to(most: float) -> Tensor:
            return (2 * torch.rand(len(x), 1, 1, 1, device=x.device) - 1) * most

        across = torch.linspace(-1, 1, x.shape[3], device=x.device)
        x = x * (1 + up_to(self.gain)) + up_to(self.level) + up_to(self.tilt) * across
        x = x + self.noise * torch.randn_like(x)
        mean = x.mean((2, 3), keepdim=True)
        for axis, most in zip((2, 3), self.mask, strict=True):
            shape = [1, 1, 1, 1]
            shape[axis] = x.shape[axis]
            place = torch.arange(x.shape[axis], device=x.device).view(shape)
            first = torch.rand(len(x), 1, 1, 1, device=x.device) * x.shape[axis]
            length = torch.rand(len(x), 1, 1, 1, device=x.device) * most
            x = torch.where((place >= first) & (place < first + length), mean, x)
        return x

    def extra_repr(self) -> str:
        return (
            f"gain={self.gain}, level={self.level}, tilt={self.tilt}, noise={self.noise}, "
            f"mask={self.mask}"
        )


def _pair(value: Pair) -> tuple[float, float]:
    pair = value if isinstance(value, tuple) else (value, value)
    if len(pair) != 2 or not all(math.isfinite(part) and part >= 0 for part in pair):
        raise ValueError(f"expected a number from 0 on, or one for each axis, got {value!r}")
    return float(pair[0]), float(pair[1])
