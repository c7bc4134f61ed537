"""Conversion of torch modules to nodes."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import fx, nn

from vitrail.nn import nodes
from vitrail.nn.augment import Augmentation
from vitrail.nn.layers import Activation, BinaryLayer, Levels
from vitrail.nn.nodes import Node, Shape
from vitrail.nn.opaque import Opaque

PLAIN = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)  # own the bits if there is no binary layer
POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)
SKIPPED = (nn.Identity, nn.modules.dropout._DropoutNd, Augmentation)  # no change in eval mode
LEAVES = ("weight", "bias", "latent")  # names of parameters with bits

Owners = tuple[type[nn.Module], ...]


def owners_of(module: nn.Module) -> Owners:
    """The types of layers that own the bits: binary layers if there are any, otherwise torch's."""
    binary = any(isinstance(part, BinaryLayer) for part in module.modules())
    return (BinaryLayer,) if binary else PLAIN


def nodes_of(module: nn.Module) -> list[Node]:
    """The nodes of a module in order; one opaque node if its layers do not form a chain."""
    module = copy.deepcopy(module).eval()
    owners = owners_of(module)
    try:
        parts = list(_layers_in_order(module))
    except _NotAChainError:
        return [_opaque(module, owners)]
    layers = [id(part) for part in parts if isinstance(part, nn.Module) and list(part.parameters())]
    if len(set(layers)) < len(layers):  # a layer is used twice
        return [_opaque(module, owners)]
    return [_node(part, owners) for part in parts if not isinstance(part, SKIPPED)]


class _NotAChainError(Exception):
    """The module's layers do not form a chain."""


def _is_layer(module: nn.Module) -> bool:
    """Whether a module is one layer: vitrail's and torch's are, except containers."""
    home = type(module).__module__
    return home in (BinaryLayer.__module__, Augmentation.__module__) or (
        home.startswith("torch.nn") and not isinstance(module, nn.Sequential)
    )


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return _is_layer(m)


def _layers_in_order(module: nn.Module) -> Iterator[nn.Module | Node]:
    """The layers of a module in order."""
    if type(module) is nn.Sequential:
        for part in module:
            yield from _layers_in_order(part)
    elif _is_layer(module):
        yield module
    else:
        yield from _traced_layers(module)


def _traced_layers(module: nn.Module) -> Iterator[nn.Module | Node]:
    """The layers that a user's module calls in `forward`, if they form a chain."""
    try:
        first, *calls, last = _Tracer().trace(module).nodes
    except Exception as error:  # user code may fail in any way under tracing
        raise _NotAChainError from error
    before = first
    for node in [*calls, last]:
        if node.all_input_nodes != [before]:
            raise _NotAChainError
        before = node
    for node in calls:
        if node.op == "call_module" and not node.kwargs:
            yield module.get_submodule(str(node.target))
        elif _flattens(node):
            yield nodes.Flatten()
        else:
            raise _NotAChainError


def _flattens(node: fx.Node) -> bool:
    """Whether a call is x.flatten(1) or torch.flatten(x, 1)."""
    called = node.target in (torch.flatten, "flatten")
    return called and tuple(node.args[1:]) in ((1,), (1, -1)) and not node.kwargs


def _node(part: nn.Module | Node, owners: Owners) -> Node:
    """The node of a layer; opaque if there is no other kind."""
    if isinstance(part, Node):
        return part
    known: Node | None = None
    if isinstance(part, BinaryLayer | Activation | Levels):
        known = part.node()
    elif isinstance(part, nn.Flatten) and (part.start_dim, part.end_dim) == (1, -1):
        known = nodes.Flatten()
    elif isinstance(part, POOLS):
        known = _pool(part)
    elif isinstance(part, owners) and getattr(part, "bias", None) is None:
        known = _plain(part)
    return known or _opaque(part, owners)


def _pool(part: nn.Module) -> Node | None:
    rank = 1 + POOLS.index(type(part))

    def sizes(name: str) -> Shape:
        value = getattr(part, name)
        return (value,) * rank if isinstance(value, int) else tuple(value)

    plain = set(sizes("padding")) == {0} and set(sizes("dilation")) == {1}
    if not plain or getattr(part, "ceil_mode", False) or getattr(part, "return_indices", False):
        return None
    return nodes.MaxPool(sizes("kernel_size"), sizes("stride"))


def _plain(part: nn.Module) -> Node | None:
    """torch's layer without bias, whose weights are read as ±1."""
    if isinstance(part, nn.Linear):
        return nodes.Linear(-1, part.in_features, part.out_features)
    if not isinstance(part, nn.Conv1d | nn.Conv2d | nn.Conv3d) or isinstance(part.padding, str):
        return None
    if set(part.dilation) != {1} or part.padding_mode != "zeros":
        return None
    sizes = (part.kernel_size, part.stride, part.padding)
    return nodes.Conv(-1, part.in_channels, part.out_channels, *sizes, groups=part.groups)


def _opaque(part: nn.Module, owners: Owners) -> Opaque:
    """An opaque node; its bits are the weights of layers that own some."""
    if any(isinstance(inner, BinaryLayer) and inner.digits > 1 for inner in part.modules()):
        raise ValueError(
            "weights of several digits need nets whose layers form a chain; set digits=1, or build "
            "the net as a chain of layers"
        )
    prefixes = [name for name, inner in part.named_modules() if isinstance(inner, owners)]
    owned = {f"{prefix}.{leaf}".lstrip(".") for prefix in prefixes for leaf in LEAVES}
    return Opaque(part, tuple(name for name, _ in part.named_parameters() if name in owned))
