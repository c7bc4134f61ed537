"""Checks on the arguments of the makers."""

from __future__ import annotations

import numpy as np


def checked_count(name: str, value: int, least: int, most: int | None = None) -> int:
    """`value` if it is an integer in its range, else an error that names the argument."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}; pass a whole number")
    if value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be {bounds}, got {value}; choose another")
    return int(value)
