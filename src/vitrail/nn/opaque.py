"""Nodes that only their own module can evaluate, under `torch.func.vmap`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import chain

import torch
from torch import Tensor, nn

from vitrail.nn.coding import values
from vitrail.nn.nodes import Node, Shape


@dataclass(frozen=True, eq=False)
class Opaque(Node):
    """Any module. `names` are the parameters that are bits; all else is constant.

    Bits are passed to the module as ±1; vitrail's layers use their sign in their own coding.
    """

    module: nn.Module  # a copy in eval mode
    names: tuple[str, ...]

    @property
    def num_bits(self) -> int:
        return sum(self._shapes[name].numel() for name in self.names)

    @property
    def fan_in(self) -> int:
        """Weights per output unit of its last layer."""
        matrices = [self._shapes[name] for name in self.names if len(self._shapes[name]) > 1]
        return matrices[-1][1:].numel() if matrices else 1

    @cached_property
    def _shapes(self) -> dict[str, torch.Size]:
        return {name: parameter.shape for name, parameter in self.module.named_parameters()}

    @cached_property
    def constants(self) -> dict[str, Tensor]:
        """Parameters and buffers that are not bits, by name."""
        named = chain(self.module.named_parameters(), self.module.named_buffers())
        return {name: value.detach() for name, value in named if name not in self.names}

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the module's code, layout and constants."""
        digest = sha256(repr(self.module).encode())
        for part in self.module.modules():
            digest.update(type(part).__qualname__.encode())
            if not type(part).__module__.startswith(("torch.", "vitrail.")):
                digest.update(_source(type(part)).encode())
        for name, value in sorted(self.constants.items()):
            digest.update(f"{name}{value.dtype}{tuple(value.shape)}".encode())
            digest.update(value.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def output_shape(self, shape: Shape) -> Shape:
        bits = torch.zeros(1, 2, self.num_bits, dtype=torch.bool)
        try:
            with torch.no_grad():
                return tuple(self.evaluate(bits, torch.zeros(1, 1, *shape)).shape[2:])
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            reason = str(error).split("\n")[0].split(". ")[0].rstrip(".")
            raise ValueError(
                f"{type(self.module).__name__} cannot be evaluated for many weights at once on "
                f"examples of shape {shape} ({reason}); check the shapes, and leave out code "
                "that reads single numbers (if on a value, .item()), draws, or changes buffers"
            ) from error

    def evaluate(self, bits: Tensor, x: Tensor) -> Tensor:
        constants = {name: value.to(x.device) for name, value in self.constants.items()}
        if not self.names:
            flat = torch.func.functional_call(self.module, constants, (x.flatten(0, 1),))
            return flat.unflatten(0, x.shape[:2])
        sizes = [self._shapes[name].numel() for name in self.names]

        def one(weights: Tensor, example: Tensor) -> Tensor:
            parts = zip(self.names, torch.split(weights, sizes), strict=True)
            named = {name: part.view(self._shapes[name]) for name, part in parts}
            return torch.func.functional_call(self.module, {**constants, **named}, example[None])[0]

        lead = torch.broadcast_shapes(bits.shape[:2], x.shape[:2])
        weights = values(bits, -1).expand(*lead, -1).flatten(0, 1)
        examples = x.expand(*lead, *x.shape[2:]).flatten(0, 1)
        return torch.func.vmap(one)(weights, examples).unflatten(0, lead)


def _source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):  # without a source file, the code itself is used
        codes = [f.__code__ for f in vars(kind).values() if inspect.isfunction(f)]
        return repr([(code.co_code, code.co_consts, code.co_names) for code in codes])
