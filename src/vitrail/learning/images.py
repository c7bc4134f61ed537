"""Images as nets read them: several bits per pixel, and channels of ones after them.

A net says by the channels that its first convolution reads how images become bits. Of C channels
of pixels, k bits each, and one channel of ones it reads k·C + 1. Where all of a window is
background, ones let a unit say what its weights say, which else were a tie in all images.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from torch import nn

from vitrail.errors import counted
from vitrail.nn import Program
from vitrail.nn.nets import image_channels, reads_images
from vitrail.tables.bits import MOST_CUTS, BitColumns


@dataclass(frozen=True)
class Reading:
    """How a net reads images."""

    shape: tuple[int, ...]  # (channels, height, width), of bits and ones together
    cuts: int = 1  # bits per pixel
    ones: int = 0  # constant inputs after the bits

    def encoder(self, table: Any) -> BitColumns:
        """What makes bits of the pixels of a table."""
        return BitColumns.of_images(table, self.cuts)


def reading(
    table: Any, shape: tuple[int, ...] | None, module: nn.Module | Program | None, ones: int | None
) -> Reading | None:
    """How a net reads rows that are images; None where they are none, or it does not care.

    shape: of an image (channels, height, width), where rows came as such; a table may know it too.
    ones: constant inputs as the user wants them; None is none where the module reads as many
    channels as there are, else one channel of them.
    """
    drawn = getattr(table, "image_shape", None)
    if drawn is not None and module is not None:
        shape = (1, *drawn) if reads_images(module) else None
    if shape is None:
        return None
    given, size = shape[0], prod(shape[1:])
    wanted = None if module is None else image_channels(module)
    if wanted is None:
        return Reading(shape, 1, ones or 0)
    if ones is None:
        ones = 0 if wanted == given else size
    constant, beside = divmod(ones, size)
    if beside:
        raise ValueError(
            f"bias counts ones after the pixels of images, {size} a channel, got {ones}; "
            f"give 0 or {size}"
        )
    cuts, rest = divmod(wanted - constant, given)
    if rest or not 1 <= cuts <= MOST_CUTS:
        nearest = given * min(MOST_CUTS, max(1, round((wanted - constant) / given))) + constant
        raise ValueError(
            f"images of {counted(given, 'channel')} are read as k·{given} + {constant}, k bits per "
            f"pixel and {counted(constant, 'channel')} of ones, and the module's first convolution "
            f"reads {wanted}; give it {nearest}, or another bias"
        )
    return Reading((wanted, *shape[1:]), cuts, ones)


def flat_images(images: Any, expected: tuple[int, ...] | None) -> np.ndarray:
    """Images (rows, channels, height, width) as rows of pixels, of the shape they must have."""
    if expected is not None and tuple(images.shape[1:]) != expected:
        raise ValueError(
            f"expected images of shape {expected} as in training, got {tuple(images.shape[1:])}; "
            "resize them"
        )
    return np.asarray(images).reshape(len(images), -1)
