"""The bits of a network's parameters, read and written."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitrail.nn.coding import values
from vitrail.nn.layers import BinaryLayer
from vitrail.nn.trace import LEAVES, owners_of


def _owned(module: nn.Module) -> list[BinaryLayer | nn.Parameter]:
    """The owners of the bits in order: binary layers, or the parameters of Linear and Conv."""
    owners = owners_of(module)
    found: dict[int, BinaryLayer | nn.Parameter] = {}
    for part in module.modules():
        if isinstance(part, BinaryLayer):
            found[id(part)] = part
        elif isinstance(part, owners):
            leaves = (getattr(part, name, None) for name in LEAVES)
            found |= {id(leaf): leaf for leaf in leaves if isinstance(leaf, nn.Parameter)}
    return list(found.values())


def _sizes(module: nn.Module) -> list[int]:
    return [
        part.digits * part.latent.numel() if isinstance(part, BinaryLayer) else part.numel()
        for part in _owned(module)
    ]


def num_weights(module: nn.Module) -> int:
    """The number of bits A of a network.

    Args:
        module: Any torch module.

    Examples:
        >>> num_weights(nn.Linear(3, 2, bias=False))
        6
    """
    return sum(_sizes(module))


def get_bits(module: nn.Module) -> Tensor:
    """The network's bits (A,) bool, layer after layer: a parameter above zero is a one.

    Args:
        module: Any torch module.

    Examples:
        >>> from vitrail.nn import mlp
        >>> get_bits(mlp(3)).shape
        torch.Size([3])
    """
    return torch.cat(
        [
            part.bits().flatten() if isinstance(part, BinaryLayer) else part.detach().flatten() > 0
            for part in _owned(module)
        ]
    )


def set_bits(module: nn.Module, bits: Tensor) -> nn.Module:
    """Write bits into the parameters as ±1, so that `module(x)` uses them.

    Args:
        module: Any torch module; it is changed.
        bits: The bits, (A,) bool, e.g. the `best` of a solution.

    Examples:
        >>> from vitrail.nn import mlp
        >>> get_bits(set_bits(mlp(3), torch.tensor([True, False, True])))
        tensor([ True, False,  True])
    """
    sizes = _sizes(module)
    if bits.shape != (sum(sizes),):
        raise ValueError(
            f"the network has {sum(sizes)} weights, got bits of shape {tuple(bits.shape)}"
        )
    for owner, part in zip(_owned(module), torch.split(bits, sizes), strict=True):
        if isinstance(owner, BinaryLayer):
            owner.set_bits(part.view(owner.digits, *owner.latent.shape))
        else:
            with torch.no_grad():
                owner.copy_(values(part, -1).view_as(owner))
    return module
