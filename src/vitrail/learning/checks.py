"""What each setting of a training may be: one table, read before anything is trained.

The classifier checks all of its parameters by it, whichever learner they lead to, and `plan` those
that it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import nn

from vitrail.checks import checked_count, checked_path
from vitrail.learning.problem import AUTO
from vitrail.learning.table import SOLVERS, canonical
from vitrail.nn import Program
from vitrail.solvers import Solver, Stage
from vitrail.updates import UPDATES
from vitrail.updates.base import checked_draws

MAX_BIAS, MAX_NETWORKS = 2**12, 2**16  # beyond is a typing error, and takes all memory

Check = Callable[[str, Any], Any]  # of a name and a value


def checked_setting(name: str, value: Any) -> Any:
    """The value of a setting as a training takes it; an error that names the setting otherwise."""
    return CHECKS[name](name, value)


def is_auto(value: Any) -> bool:
    """Whether a setting is left to the rules."""
    return isinstance(value, str) and value == AUTO


def _or_auto(check: Check) -> Check:
    return lambda name, value: value if is_auto(value) else check(name, value)


def _count(least: int, most: int | None = None) -> Check:
    return lambda name, value: checked_count(name, value, least, most)


def _batch(name: str, value: Any) -> int | None:
    return None if value is None else checked_count(name, value, 1)


def _one_of(*known: str) -> Check:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"unknown {name} {value!r}; choose one of: {', '.join(known)}")
        return value

    return check


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


def _device(name: str, value: Any) -> str:
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


CHECKS: dict[str, Check] = {
    "hidden": _or_auto(_hidden),
    "module": _module,
    "solver": _solver,
    "predictor": _one_of(AUTO, "best", "posterior"),
    "multiclass": _one_of(AUTO, "argmax", "ovo", "ovr"),
    "inputs": _one_of(AUTO, "binary", "bipolar"),
    "bias": _or_auto(_count(0, MAX_BIAS)),
    "update": _one_of(AUTO, *UPDATES),
    "beta": _or_auto(_beta),
    "samples": _or_auto(checked_draws),
    "damping": _or_auto(_damping),
    "batch": _or_auto(_batch),
    "batch_size": _or_auto(_batch),
    "epochs": _or_auto(_count(1)),
    "restarts": _or_auto(_count(1)),
    "polish": _or_auto(_count(0)),
    "networks": _or_auto(_count(1, MAX_NETWORKS)),
    "warm_start": _switch,
    "verbose": _switch,
    "device": _device,
    "checkpoint": checked_path,
}
