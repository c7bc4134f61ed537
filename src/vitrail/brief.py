"""Objects in one line, for a prompt or a notebook: long tensors appear as their shape."""

from __future__ import annotations

from typing import Any

MOST_NUMBERS = 4  # of a tensor that are printed


def brief(thing: object, **facts: Any) -> str:
    """`Name(fact=value, …)`; facts that are None are left out.

    Examples:
        >>> import torch
        >>> brief(1, energy=torch.tensor([2.5]), marginals=torch.ones(36), width=None)
        'int(energy=2.5, marginals=(36,) float32)'
    """
    texts = (f"{name}={_text(value)}" for name, value in facts.items() if value is not None)
    return f"{type(thing).__name__}({', '.join(texts)})"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        shown = [*map(_text, value[:MOST_NUMBERS]), *["…"] * (len(value) > MOST_NUMBERS)]
        return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"
    if not hasattr(value, "shape"):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    if value.numel() > MOST_NUMBERS:
        return f"{tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    numbers = ", ".join(_text(number) for number in value.flatten().tolist())
    return numbers if value.numel() == 1 else f"[{numbers}]"
