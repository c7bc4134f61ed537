"""The values of bits, 0/1 or −1/+1, and of inputs."""

from __future__ import annotations

import torch
from torch import Tensor

from vitrail.datasets.dataset import Coding

LEVELS = 256  # gray levels, 0 to 255; a power of two, so that sums are exact
LEVEL_TYPES = (torch.uint8, torch.int16)  # of gray levels, and of centred ones


def low_value(coding: Coding) -> int:
    """The value of a zero bit, −1 ("bipolar") or 0 ("binary"); that of a one bit is +1."""
    if coding not in ("bipolar", "binary"):
        raise ValueError(f"unknown coding {coding!r}; choose 'bipolar' (±1) or 'binary' (0/1)")
    return -1 if coding == "bipolar" else 0


def values(bits: Tensor, low: int) -> Tensor:
    """Bits as `low` and 1, float32: sums below 2²⁴ stay exact.

    >>> values(torch.tensor([True, False]), low=-1)
    tensor([ 1., -1.])
    """
    return bits.to(torch.float32) * (1 - low) + low


def numbers(inputs: Tensor) -> Tensor:
    """Inputs as float32; gray levels (uint8) are scaled to the range from 0 to below 1.

    Centred levels (int16, see `centred`) are scaled to the range from −1 to 1.

    >>> numbers(torch.tensor([0, 128], dtype=torch.uint8))
    tensor([0.0000, 0.5000])
    """
    found = inputs.to(torch.float32)
    return found / LEVELS if inputs.dtype in LEVEL_TYPES else found


def centred(levels: Tensor, offset: int) -> Tensor:
    """Gray levels minus an integer, int16. Sums are exact; new images need the same offset.

    Without centring, the sums of a first layer tend to have the same sign for all images.

    Args:
        levels: Gray levels, uint8.
        offset: From 0 to 255, such as the rounded mean of the training images.

    Examples:
        >>> centred(torch.tensor([0, 128], dtype=torch.uint8), 33)
        tensor([-33,  95], dtype=torch.int16)
    """
    if levels.dtype != torch.uint8 or not 0 <= offset < LEVELS:
        raise ValueError(
            f"gray levels are uint8, and the offset is from 0 to {LEVELS - 1}; got "
            f"{levels.dtype} and {offset}"
        )
    return levels.to(torch.int16) - offset


def checked_inputs(inputs: Tensor, levels: bool = False) -> Tensor:
    """Inputs as int8, or an error that names the first value that is not −1, 0 or 1.

    levels: whether gray levels are allowed, which are returned unchanged.
    """
    inputs = torch.as_tensor(inputs)
    if inputs.ndim == 0 or inputs.shape[0] == 0:
        raise ValueError("there are no examples; pass at least one row of inputs")
    known = (inputs == 0) | (inputs == 1)  # NaN equals nothing
    if inputs.dtype.is_signed:  # the largest of an unsigned type equals -1
        known |= inputs == -1
    if not bool(known.all()):
        if (
            levels
            and inputs.dtype in LEVEL_TYPES
            and bool((inputs.to(torch.int32).abs() < LEVELS).all())
        ):
            return inputs.contiguous()
        wrong = inputs[~known][0].item()
        raise ValueError(
            f"inputs must be bits (-1/+1 or 0/1), got {wrong:g}; threshold images, "
            "and encode tables with vitrail.tables.TableEncoder"
        )
    return inputs.to(torch.int8).contiguous()
