"""Worked out once: what steps ask again is kept beside what it was derived from."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Prepared:
    """Things derived from a graph or a block of factors, for as long as that lives.

    A thing is asked for by the function that makes it: packed rows, tables, the kernel that
    serves an update. It is made at the first request.

    >>> kept = Prepared()
    >>> kept.get(sorted, (4, 3)) is kept.get(sorted, (4, 3))
    True
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def get(self, make: Callable[..., T], owner: Any, *details: Hashable) -> T:
        """What `make(owner, *details)` gives. The owner is not kept: it is always the same."""
        name = (make, details)
        if name not in self._made:
            self._made[name] = make(owner, *details)
        return self._made[name]
