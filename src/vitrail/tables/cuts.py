"""Where a column of numbers is cut, and how its numbers are held when they are compared.

A microcontroller holds a number as int32 or float32. So that it decides as Python does, cells and
thresholds are rounded to that type before they are compared. Whole numbers are int32: x > 54.5 is
x ≥ 55, exactly. Others are float32. Only where float32 would make one of training values that a
threshold parts is a column held as float64.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

NumberType = Literal["int32", "float32", "float64"]
NUMBER_TYPES: tuple[NumberType, ...] = get_args(NumberType)

MOST_WHOLE = 2**31 - 1  # the smallest int32 stands for no number in exported code

THRESHOLD_BUDGET = 256  # thresholds that the columns share out among them
FEWEST_THRESHOLDS, MOST_THRESHOLDS = 4, 32  # of a column
FEW_COLUMNS = 4  # up to which columns get twice as many: a line through two of them has fine steps
SMALL = 1000  # rows below which finer cuts than half of these fit noise


def affordable_thresholds(columns: int, rows: int) -> int:
    """How many thresholds a column of numbers gets: few columns can afford many, as can many rows.

    columns, rows: how many columns of numbers and how many training rows there are.
    """
    most = MOST_THRESHOLDS * (2 if columns <= FEW_COLUMNS else 1) // (2 if rows < SMALL else 1)
    return min(most, max(FEWEST_THRESHOLDS, THRESHOLD_BUDGET // max(1, columns)))


def rounded(numbers: Any, kind: NumberType) -> np.ndarray:
    """Numbers as a column compares them, held in float64, which all three types fit in.

    float32: the nearest, its largest for what is out of range. Whole numbers lie on neither side
    of a threshold by rounding, so int32 leaves numbers as they are.
    """
    numbers = np.asarray(numbers, np.float64)
    if kind != "float32":
        return numbers
    most = np.finfo(np.float32).max
    return np.clip(numbers, -most, most).astype(np.float32).astype(np.float64)


def number_type(values: np.ndarray, cuts: np.ndarray) -> NumberType:
    """How a column holds its numbers; values (L,) ascending, cuts: where each new bin begins."""
    if (values == np.round(values)).all() and abs(values).max() <= MOST_WHOLE:
        return "int32"
    single = rounded(values, "float32")
    return "float32" if (single[cuts - 1] < single[cuts]).all() else "float64"


def bins(values: np.ndarray, counts: np.ndarray, most: int) -> np.ndarray:
    """Where at most `most` thresholds go: each lies below values[i], i ascending, from 1 on.

    Quantiles, but a value that fills several of them (many zeros, say) leaves its cuts to the
    rest: the fullest bin is halved again. values, counts: (L,) distinct, ascending, and how often
    each occurs.
    """
    rows = np.concatenate([[0], np.cumsum(counts)])  # rows[i]: how many lie below values[i]
    if len(values) <= most + 1:
        return np.arange(1, len(values))
    found = [(0, len(values))]
    while len(found) <= most:
        fullest = max(found, key=lambda b: rows[b[1]] - rows[b[0]] if b[1] - b[0] > 1 else 0)
        low, high = fullest
        if high - low == 1 or (rows[high] - rows[low]) * 2 * (most + 1) < rows[-1]:
            break  # what is left to halve is too small to tell much
        middle = (rows[low] + rows[high]) / 2
        cut = low + 1 + int(np.searchsorted(rows[low + 1 : high - 1], middle))
        if cut > low + 1 and middle - rows[cut - 1] <= rows[cut] - middle:
            cut -= 1
        place = found.index(fullest)
        found[place : place + 1] = [(low, cut), (cut, high)]
    return np.array([low for low, _ in found[1:]], np.intp)


def between(low: float, high: float, kind: NumberType) -> float:
    """The shortest decimal in the middle half of (low, high): 54.5 rather than 54.49999.

    Of numbers held as the type, those up to low are not above it, those from high on are.
    """
    low, high = float(rounded(low, kind)), float(rounded(high, kind))
    middle = low / 2 + high / 2
    quarter = high / 4 - low / 4
    for digits in range(1, 18):
        short = float(f"{middle:.{digits}g}")
        held = float(rounded(short, kind))
        if abs(short - middle) <= quarter and low <= short and low <= held < high:
            return short
    return low
