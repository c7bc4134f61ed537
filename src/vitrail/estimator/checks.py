"""Checks before training: settings, labels, weights.

One table says what each setting may be, whichever learner it leads to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
)
from torch import nn

from vitrail.checks import checked_count, checked_path
from vitrail.errors import DataError
from vitrail.learning.table import AUTO, EFFORTS, SOLVERS, canonical
from vitrail.nn import Program
from vitrail.solvers import Solver, Stage
from vitrail.tables.cells import is_missing
from vitrail.tables.labels import as_labels, require_labels
from vitrail.tables.spelling import CELL_TYPES
from vitrail.updates import UPDATES
from vitrail.updates.base import checked_draws

LARGEST_SUM = 2.0**53  # of weights; floats count whole numbers up to there
MAX_BIAS, MAX_NETWORKS = 2**12, 2**16  # larger values are typing errors that would take all memory
CHOICES: dict[str, tuple[str, ...]] = {
    "predictor": (AUTO, "best", "posterior"),
    "multiclass": (AUTO, "argmax", "ovo", "ovr"),
    "inputs": (AUTO, "binary", "bipolar"),
    "update": (AUTO, *UPDATES),
    "effort": (AUTO, *EFFORTS),
}

LISTS = "but some cells hold lists; give text, numbers or booleans"

Check = Callable[[str, Any], Any]  # of a name and a value


def checked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Checked settings; an error names the first invalid one."""
    checked = {}
    for name, value in settings.items():
        choices = CHOICES.get(name)
        if choices is not None and (not isinstance(value, str) or value not in choices):
            raise ValueError(f"unknown {name} {value!r}; choose one of: {', '.join(choices)}")
        auto = name in OR_AUTO and isinstance(value, str) and value == AUTO
        check = None if auto or (name in OR_NONE and value is None) else CHECKS.get(name)
        checked[name] = value if check is None else check(name, value)
    if checked["module"] is not None and checked["hidden"] not in (AUTO, ()):
        raise ValueError("give hidden layers or a module, not both")
    return checked


def _count(least: int, most: int | None = None) -> Check:
    return lambda name, value: checked_count(name, value, least, most)


def _instance(kinds: Any, what: str) -> Check:
    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"{name} is {what}, got {value!r}")
        return value

    return check


def _hidden(name: str, value: Any) -> Any:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(
            f"{name} is 'auto' or the units of each layer, such as (8,), got {value!r}"
        )
    return tuple(checked_count("a hidden layer", units, 1) for units in value)


def _memory(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 1 <= float(value) < math.inf:
        raise ValueError(f"{name} is a number of rows from 1, 'auto' or None, got {value!r}")
    return float(value)


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
    "batch_size": _count(1),
    "epochs": _count(1),
    "restarts": _count(1),
    "polish": _count(0),
    "networks": _count(1, MAX_NETWORKS),
    "memory": _memory,
    "solver": _solver,
    "device": checked_device,
}
"""Settings that may also be "auto"."""
OR_NONE = {"batch_size", "memory", "module", "checkpoint"}
"""Settings that may also be None."""

CHECKS: dict[str, Check] = {
    **OR_AUTO,
    "module": _instance(nn.Module | Program, "a torch module, not a class"),
    "warm_start": _instance(bool | np.bool_ | Integral, "on or off"),
    "verbose": _instance(bool | np.bool_ | Integral, "on or off"),
    "checkpoint": checked_path,
}


def checked_weights(y: np.ndarray, sample_weight: Any) -> np.ndarray:
    """One weight per row, (rows,) float64, at least 0 and not all 0: how many rows it counts as.

    Whole numbers are counts. Others, such as weights that add up to one, say only how rows compare:
    the scale is chosen so that rows of positive weight count as one row each on average. Without
    that, weights of 1/n would leave the evidence of a single row, and the prior would answer.
    """
    weight = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("every sample weight is zero; give at least one row a positive weight")
    if (weight != np.floor(weight)).any():
        weight = weight / weight.max()  # equal weights become exactly 1
        weight /= weight[weight > 0].mean()
    if weight.sum() > LARGEST_SUM:
        raise ValueError(
            f"sample weights must add up to {LARGEST_SUM:.0e} at most, got {weight.sum():.1e}; "
            "scale them down"
        )
    return weight


def checked_labels(y: Any, table: Any) -> np.ndarray:
    """One label per row, (rows,), of kinds that can be classes."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None; give labels")
    try:
        y = as_labels(y)
    except ValueError:  # lists of different lengths
        raise DataError(f"labels are one value per row, {LISTS}") from None
    y = column_or_1d(y, warn=True)  # frames of others know no scikit-learn
    if y.dtype.kind == "f" and np.isnan(y).any():
        gone = np.flatnonzero(np.isnan(y))
        raise DataError(  # "Input y contains NaN" is what scikit-learn's own tests look for
            f"Input y contains NaN: the label is missing in {len(gone)} of {len(y)} rows, first in "
            f"row {gone[0] + 1}; fill it in or leave these rows out"
        )
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_consistent_length(table, y)
    require_labels(y)
    check_classification_targets(y)
    return y


def check_cells(array: np.ndarray) -> None:
    """Raise scikit-learn's kind of error where a cell is neither text, number nor missing."""
    for value in array.flat:
        if not isinstance(value, CELL_TYPES) and not is_missing(value):
            raise TypeError(
                f"argument must be a string or a number, got {type(value).__name__}; "
                "give text, numbers or booleans"
            )
