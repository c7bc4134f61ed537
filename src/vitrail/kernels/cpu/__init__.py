"""Kernels that numba compiles for the processor."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path


def remove_stale(folder: Path) -> None:
    """Remove kernels that numba compiled before the last change of any source in the folder.

    Numba compares a compiled kernel with the date of its own source file only, but kernels inline
    one another: after an edit of one, the others would still contain its old code.
    """
    with suppress(OSError):
        newest = max((path.stat().st_mtime for path in folder.glob("*.py")), default=0.0)
        if newest > time.time():  # the clock was set back: dates cannot be compared
            return
        for path in (folder / "__pycache__").glob("*.nb[ic]"):
            if path.stat().st_mtime < newest:
                path.unlink(missing_ok=True)


remove_stale(Path(__file__).parent)
