"""Rows and labels as scikit-learn hands them over: checked, and the encoder that suits them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
)

from vitrail.data.bits import PIXEL_RANGE, BitColumns, bit_range
from vitrail.data.cells import CELL_TYPES, column_names, is_missing
from vitrail.data.encoders import TableEncoder
from vitrail.data.labels import require_labels
from vitrail.data.tables import Table

ThresholdsOf = Callable[[int, TableEncoder], int]


def fitted_encoder(
    table: Any, weight: np.ndarray, thresholds_of: ThresholdsOf | None = None
) -> tuple[TableEncoder | BitColumns, tuple[float, float] | None]:
    """Bits as they are; a table by what the rows that count hold. With the range of bits.

    thresholds_of: how many thresholds a column of numbers gets, by the rows and an encoder with
    the usual number.
    """
    if isinstance(table, Table):
        if table.image_shape is not None:
            return BitColumns(tuple(table.columns), *PIXEL_RANGE), PIXEL_RANGE
        rows = np.flatnonzero(weight)
        return _fitted_table(table.take(rows), weight[rows], thresholds_of), None
    frame = hasattr(table, "columns")
    values = table.to_numpy() if frame else table
    names = tuple(column_names(table))
    found = bit_range(values)
    if found is not None:
        return BitColumns(names, *found), found
    return _fitted_table(table[weight > 0], weight[weight > 0], thresholds_of), None


def _fitted_table(
    table: Any, weight: np.ndarray, thresholds_of: ThresholdsOf | None
) -> TableEncoder:
    usual = TableEncoder.fit(table, weight=weight)
    if thresholds_of is None:
        return usual
    return TableEncoder.fit(table, thresholds=thresholds_of(len(weight), usual), weight=weight)


def checked_weights(y: np.ndarray, sample_weight: Any) -> np.ndarray:
    """One weight a row, (rows,) float64, at least 0 and not all 0."""
    weight = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("every sample weight is zero; give at least one row a positive weight")
    return weight


def checked_labels(y: Any, table: Any) -> np.ndarray:
    """One label a row, (rows,), of kinds that can be classes."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None; give one label a row")
    y = column_or_1d(np.asarray(y), warn=True)  # frames of others know no scikit-learn
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
