"""What each setting of a training may be: one table, read before anything is trained.

The classifier checks all of its parameters by it, whichever learner they lead to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import nn

from vitrail.checks import checked_count, checked_path
from vitrail.learning.table import AUTO, SOLVERS, canonical
from vitrail.nn import Program
from vitrail.solvers import Solver, Stage
from vitrail.updates import UPDATES
from vitrail.updates.base import checked_draws

MAX_BIAS, MAX_NETWORKS = 2**12, 2**16  # beyond is a typing error, and takes all memory
CHOICES: dict[str, tuple[str, ...]] = {
    "predictor": (AUTO, "best", "posterior"),
    "multiclass": (AUTO, "argmax", "ovo", "ovr"),
    "inputs": (AUTO, "binary", "bipolar"),
    "update": (AUTO, *UPDATES),
}

Check = Callable[[str, Any], Any]  # of a name and a value


def checked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a training takes them; an error that names the first that it cannot take."""
    checked = {}
    for name, value in settings.items():
        choices = CHOICES.get(name)
        if choices is not None and (not isinstance(value, str) or value not in choices):
            raise ValueError(f"unknown {name} {value!r}; choose one of: {', '.join(choices)}")
        auto = name in OR_AUTO and isinstance(value, str) and value == AUTO
        check = None if auto else CHECKS.get(name)
        checked[name] = value if check is None else check(name, value)
    if checked["module"] is not None and checked["hidden"] not in (AUTO, ()):
        raise ValueError("give hidden layers or a module, not both")
    return checked


def _count(least: int, most: int | None = None) -> Check:
    return lambda name, value: checked_count(name, value, least, most)


def _batch(name: str, value: Any) -> int | None:
    return None if value is None else checked_count(name, value, 1)


def _switch(name: str, value: Any) -> Any:
    if not isinstance(value, bool | np.bool_ | Integral):
        raise TypeError(f"{name} is on or off, got {value!r}; give a boolean")
    return value


def _hidden(name: str, value: Any) -> Any:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(
            f"{name} is 'auto' or the units of each layer, such as (8,), got {value!r}"
        )
    return tuple(checked_count("a hidden layer", units, 1) for units in value)


def _module(name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, nn.Module | Program):
        raise TypeError(f"{name} is a torch module, made already, got {value!r}")
    return value


def _solver(name: str, value: Any) -> str | Solver[Any] | tuple[Stage, ...]:
    if isinstance(value, str):
        return canonical(value)
    if isinstance(value, Solver):
        return value
    if (
        isinstance(value, Sequence)
        and len(value)
        and all(isinstance(stage, Stage) for stage in value)
    ):
        return tuple(value)
    raise ValueError(
        f"{name} must be a name ({', '.join(SOLVERS)}), a solver or stages of vitrail.solvers, "
        f"got {value!r}"
    )


def _beta(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray) and len(value):
        return tuple(_one_beta(name, one) for one in value)  # of chains, in turn
    return _one_beta(name, value)


def _one_beta(name: str, value: Any) -> Any:
    number: Any = value
    if not _number(number) or not number > 0:
        raise ValueError(f"{name} must be positive (math.inf for hard rows), got {value!r}")
    return value


def _damping(name: str, value: Any) -> Any:
    if not _number(value) or not 0 <= value < 1:
        raise ValueError(
            f"{name} is the share of the old message that is kept, at least 0 and below 1, "
            f"got {value!r}"
        )
    return value


def _number(value: Any) -> bool:
    """Whether it is a number that a float can hold."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)
    except OverflowError:
        return False


def checked_device(name: str, value: Any) -> str:
    """ "auto", "cpu" or a GPU that is here."""
    if not isinstance(value, str) or (value not in (AUTO, "cpu") and not _is_gpu(value)):
        raise ValueError(
            f"{name} {value!r} is not here; choose 'cpu', 'auto', or 'cuda' with a GPU"
        )
    return value


def _is_gpu(name: str) -> bool:
    """Whether it is the name of a GPU that is here, such as "cuda" or "cuda:1"."""
    try:
        device = torch.device(name)
    except RuntimeError:
        return False
    return device.type == "cuda" and (device.index or 0) < torch.cuda.device_count()


OR_AUTO: dict[str, Check] = {
    "hidden": _hidden,
    "bias": _count(0, MAX_BIAS),
    "beta": _beta,
    "samples": checked_draws,
    "damping": _damping,
    "batch_size": _batch,
    "epochs": _count(1),
    "restarts": _count(1),
    "polish": _count(0),
    "networks": _count(1, MAX_NETWORKS),
}
"""Settings that may also be "auto"."""

CHECKS: dict[str, Check] = {
    **OR_AUTO,
    "module": _module,
    "solver": _solver,
    "warm_start": _switch,
    "verbose": _switch,
    "device": checked_device,
    "checkpoint": checked_path,
}
