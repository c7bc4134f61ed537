"""Rows and labels as scikit-learn hands them over: checked, and the encoder that suits them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
)

from vitrail.errors import DataError
from vitrail.tables.cells import is_missing
from vitrail.tables.labels import as_labels, require_labels
from vitrail.tables.spelling import CELL_TYPES

LARGEST_SUM = 2.0**53  # of weights; floats count whole numbers up to there


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
    """One label a row, (rows,), of kinds that can be classes."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None; give one label a row")
    with even_rows("labels are one value a row"):
        y = as_labels(y)
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


@contextmanager
def even_rows(rule: str) -> Iterator[None]:
    """numpy's error about lists in cells, as a sentence."""
    try:
        yield
    except ValueError as error:
        if "inhomogeneous" not in str(error) and "array element with a sequence" not in str(error):
            raise
        raise DataError(
            f"{rule}, but some cells hold lists; give text, numbers or booleans"
        ) from None


def check_cells(array: np.ndarray) -> None:
    """Raise scikit-learn's kind of error where a cell is neither text, number nor missing."""
    for value in array.flat:
        if not isinstance(value, CELL_TYPES) and not is_missing(value):
            raise TypeError(
                f"argument must be a string or a number, got {type(value).__name__}; "
                "give text, numbers or booleans"
            )
