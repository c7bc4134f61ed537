"""Checks of arguments."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np


def checked_count(name: str, value: int, least: int, most: int | None = None) -> int:
    """`value` if it is an integer in the range, otherwise an error that names the argument."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}; pass a whole number")
    if value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be {bounds}, got {value}; choose another")
    return int(value)


def checked_path(name: str, value: Any) -> Path | None:
    """`value` as a path, or None; an error that names the argument for anything else."""
    if value is not None and (not isinstance(value, str | PathLike) or not str(value)):
        raise TypeError(f"{name} must be a path, got {value!r}")
    return None if value is None else Path(value)


def check_made(value: object, by: str, maker: str) -> None:
    """Raise a TypeError if a value lacks the attribute `by`, so that `maker` has not made it."""
    if not hasattr(value, by):
        raise TypeError(f"expected what {maker} makes, got {type(value).__name__}")


def checked_number(name: str, value: float, least: float = 0.0) -> float:
    """`value` if it is a number of at least `least`, otherwise an error naming the argument."""
    if not isinstance(value, Real) or isinstance(value, bool) or not float(value) >= least:
        raise ValueError(f"{name} must be a number of at least {least:g}, got {value!r}")
    return float(value)


def checked_choice(name: str, value: str, choices: Iterable[str]) -> str:
    """`value` if it is one of the choices, otherwise an error that lists them."""
    choices = tuple(choices)
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}; choose one of: {', '.join(choices)}")
    return value


def checked_share(name: str, value: float) -> float:
    """`value` if it is above 0 and at most 1, otherwise an error that names the argument."""
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {value}")
    return value


def checked_positive(name: str, value: float) -> float:
    """`value` if it is a finite number above 0, otherwise an error that names the argument."""
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a positive number, got {value}")
    return float(value)
