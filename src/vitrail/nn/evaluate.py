"""Many weight configurations of a network at once, and bits in and out of its parameters."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from vitrail.nn.coding import values
from vitrail.nn.layers import BinaryConv2d, BinaryLayer


def num_weights(module: nn.Module) -> int:
    """How many bits a network has: all its parameters."""
    return sum(parameter.numel() for parameter in module.parameters())


def evaluate(module: nn.Module, bits: Tensor, x: Tensor) -> Tensor:
    """Outputs of `module` for weight configurations.

    bits (f, s, A) bool and x (f, s, …) float32 with f and s each 1 or full → (F, S, …). Layers
    of this package and anything without parameters run without a loop over configurations;
    other modules with parameters run under `torch.func.vmap`, their parameters read as ±1.
    """
    if isinstance(module, nn.Sequential):
        first = 0
        for child in module:
            count = num_weights(child)
            x = evaluate(child, bits[..., first : first + count], x)
            first += count
        return x
    if isinstance(module, BinaryLayer):
        return module.evaluate(bits, x)
    if num_weights(module) == 0:
        return module(x.flatten(0, 1)).unflatten(0, x.shape[:2])
    return _evaluate_any(module, bits, x)


def _evaluate_any(module: nn.Module, bits: Tensor, x: Tensor) -> Tensor:
    shapes = {name: parameter.shape for name, parameter in module.named_parameters()}

    def one(weights: Tensor, example: Tensor) -> Tensor:
        parts = torch.split(weights, [shape.numel() for shape in shapes.values()])
        named = {n: p.view(s) for (n, s), p in zip(shapes.items(), parts, strict=True)}
        return torch.func.functional_call(module, named, (example[None],))[0]

    lead = torch.broadcast_shapes(bits.shape[:2], x.shape[:2])
    weights = values(bits, -1).expand(*lead, -1).flatten(0, 1)
    examples = x.expand(*lead, *x.shape[2:]).flatten(0, 1)
    return torch.func.vmap(one)(weights, examples).unflatten(0, lead)


def scratch_floats(module: nn.Module, input_shape: torch.Size | tuple[int, ...]) -> int:
    """Floats that evaluating one configuration of one example holds: weights and activations."""
    x = torch.zeros(1, 1, *input_shape)
    bits = torch.zeros(1, 1, num_weights(module), dtype=torch.bool)
    total, first = 2 * bits.numel(), 0
    for child in _parts(module):
        count = num_weights(child)
        if isinstance(child, BinaryConv2d):
            places = torch.Size(child.output_size(x.shape[3:])).numel()
            total += places * child.latent[0].numel()
        x = evaluate(child, bits[..., first : first + count], x)
        total += 2 * x.numel()
        first += count
    return total


def _parts(module: nn.Module) -> Iterator[nn.Module]:
    if isinstance(module, nn.Sequential):
        for child in module:
            yield from _parts(child)
    else:
        yield module


def get_bits(module: nn.Module) -> Tensor:
    """The network's weights as bits, (A,) bool: a parameter above zero is a one."""
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()]) > 0


def set_bits(module: nn.Module, bits: Tensor) -> nn.Module:
    """Write bits (A,) into the parameters as ±1, so that `module(x)` uses them; returns it."""
    if bits.shape != (num_weights(module),):
        raise ValueError(
            f"the network has {num_weights(module)} weights, got bits of shape {tuple(bits.shape)}"
        )
    parts = torch.split(values(bits, -1), [p.numel() for p in module.parameters()])
    with torch.no_grad():
        for parameter, part in zip(module.parameters(), parts, strict=True):
            parameter.copy_(part.view_as(parameter))
    return module
