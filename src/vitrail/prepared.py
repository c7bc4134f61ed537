"""Values that are computed once from an object and kept as long as it lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")


class Prepared:
    """A base of graphs and factors: packed rows, tables and kernels are prepared once.

    Graphs and factors that differ in prior and beta alone share what is prepared.
    """

    @cached_property
    def _prepared(self) -> dict[Hashable, Any]:
        return {}

    def once(self, make: Callable[..., T], *details: Hashable) -> T:
        """`make(self, *details)`, computed at the first request; it must not depend on beta."""
        return self._kept(self._prepared, make, details)

    def _kept(self, values: dict[Hashable, Any], make: Callable[..., T], details: Any) -> T:
        name = make, details
        if name not in values:
            values[name] = make(self, *details)
        return values[name]
