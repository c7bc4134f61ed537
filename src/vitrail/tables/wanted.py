"""Which rows of a file are wanted, so that readers may leave the others unread."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Wanted = Callable[[int, int], np.ndarray]
"""Of `count` rows from `first` on, those that are wanted: ascending, counted from `first`."""


def everything(first: int, count: int) -> np.ndarray:
    """All rows."""
    return np.arange(count)
