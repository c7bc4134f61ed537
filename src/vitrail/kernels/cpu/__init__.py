"""Kernels that numba compiles for the processor."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path


def forget_stale(folder: Path) -> None:
    """Remove kernels that numba compiled before some source in the folder was last changed.

    Numba keeps them beside their source and looks at the date of that one file, but kernels are
    built into one another: an edit of one would leave the old code in all the others.
    """
    with suppress(OSError):
        newest = max((path.stat().st_mtime for path in folder.glob("*.py")), default=0.0)
        if newest > time.time():  # a clock that was set back: nothing here can be trusted
            return
        for path in (folder / "__pycache__").glob("*.nb[ic]"):
            if path.stat().st_mtime < newest:
                path.unlink(missing_ok=True)


forget_stale(Path(__file__).parent)
