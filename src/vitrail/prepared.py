"""Worked out once: what steps ask again is kept beside what it was derived from."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

OwnerT = TypeVar("OwnerT")
T = TypeVar("T")
Arguments = ParamSpec("Arguments")


class Prepared(Generic[OwnerT]):
    """Things derived from a graph or a block of factors, for as long as it lives.

    A thing is asked for by the function that makes it: packed rows, tables, the kernel that serves
    an update with its arguments laid out. It is made at the first request.

    >>> Prepared([3, 4]).get(sum)
    7
    """

    def __init__(self, owner: OwnerT) -> None:
        self._owner = owner
        self._made: dict[Hashable, Any] = {}

    def get(
        self,
        make: Callable[Concatenate[OwnerT, Arguments], T],
        *details: Arguments.args,
        **named: Arguments.kwargs,
    ) -> T:
        """What `make(owner, *details)` gives; details must be hashable."""
        name = (make, details, *sorted(named.items()))
        if name not in self._made:
            self._made[name] = make(self._owner, *details, **named)
        return self._made[name]
