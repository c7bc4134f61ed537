"""Bits in and out of a network's parameters."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitrail.nn.coding import values
from vitrail.nn.trace import LEAVES, owners_of


def bit_parameters(module: nn.Module) -> list[nn.Parameter]:
    """The parameters that are bits, in order: those of binary layers, or of Linear and Conv."""
    owners = owners_of(module)
    kept = {
        id(leaf)
        for part in module.modules()
        if isinstance(part, owners)
        for name in LEAVES
        if isinstance(leaf := getattr(part, name, None), nn.Parameter)
    }
    return [parameter for parameter in module.parameters() if id(parameter) in kept]


def num_weights(module: nn.Module) -> int:
    """How many bits A a network has.

    Args:
        module: Any torch module.

    Examples:
        >>> num_weights(nn.Linear(3, 2, bias=False))
        6
    """
    return sum(parameter.numel() for parameter in bit_parameters(module))


def get_bits(module: nn.Module) -> Tensor:
    """The network's bits (A,) bool, layer after layer: a parameter above zero is a one.

    Args:
        module: Any torch module.

    Examples:
        >>> from vitrail.nn import mlp
        >>> get_bits(mlp(3)).shape
        torch.Size([3])
    """
    return torch.cat([part.detach().flatten() for part in bit_parameters(module)]) > 0


def set_bits(module: nn.Module, bits: Tensor) -> nn.Module:
    """Write bits into the parameters as ±1, so that `module(x)` uses them.

    Args:
        module: Any torch module; it is changed.
        bits: What to write, (A,) bool, e.g. the `best` of a solution.

    Examples:
        >>> from vitrail.nn import mlp
        >>> get_bits(set_bits(mlp(3), torch.tensor([True, False, True])))
        tensor([ True, False,  True])
    """
    parameters = bit_parameters(module)
    sizes = [parameter.numel() for parameter in parameters]
    if bits.shape != (sum(sizes),):
        raise ValueError(
            f"the network has {sum(sizes)} weights, got bits of shape {tuple(bits.shape)}"
        )
    with torch.no_grad():
        for parameter, part in zip(parameters, torch.split(values(bits, -1), sizes), strict=True):
            parameter.copy_(part.view_as(parameter))
    return module
