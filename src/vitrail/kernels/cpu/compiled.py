"""Kernels are compiled at their first call, for one signature, and cached on disk."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from numba import njit

from vitrail import interrupts

ANNOUNCE_AFTER = 2.0  # seconds of compiling until COMPILING is printed; then a stop may interrupt
COMPILING = "vitrail: compiling kernels for this machine (once; they are cached)\n"
NOT_CACHED = (
    "vitrail: there is no writable folder for compiled kernels, so every process compiles them "
    "again; set NUMBA_CACHE_DIR to a writable folder to cache them\n"
)

Arguments = ParamSpec("Arguments")
T = TypeVar("T")
Kernel = Callable[Arguments, T]


def compiled(signature: str, **options: Any) -> Callable[[Kernel], Kernel]:
    """Compile a function for one signature, when it is first called.

    A module has many kernels, of which a problem needs few. Kernels release the interpreter's lock,
    because threads share the rows.
    """

    def decorate(function: Kernel) -> Kernel:
        made: list[Kernel] = []

        @wraps(function)
        def call(*arguments: Any) -> Any:
            if not made:
                with _STORE.lock:
                    if not made:
                        made.append(_STORE.compile(function, signature, options))
            return made[0](*arguments)

        return call

    return decorate


class _Store:
    """The compiled code of this process; kernels are compiled one at a time."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.seconds = 0.0  # spent on compiling and on loading compiled kernels
        self._cached = True  # whether numba has a folder to write to
        self._announced = False  # whether COMPILING has been printed

    def compile(self, function: Kernel, signature: str, options: dict[str, Any]) -> Kernel:
        options = {"nogil": True, "error_model": "numpy", **options}
        begun = time.perf_counter()
        try:
            return self._compile(function, signature, options)
        finally:
            self.seconds += time.perf_counter() - begun

    def _compile(self, function: Kernel, signature: str, options: dict[str, Any]) -> Kernel:
        with interrupts.interruptible_after(ANNOUNCE_AFTER, self._announce):
            if self._cached:
                try:
                    return njit(signature, cache=True, **options)(function)
                except RuntimeError as error:  # a container without a writable home or package
                    if "no locator available" not in str(error):
                        raise
                    self._cached = False
                    sys.stderr.write(NOT_CACHED)
            return njit(signature, **options)(function)

    def _announce(self) -> None:
        if not self._announced:
            self._announced = True
            sys.stderr.write(COMPILING)


_STORE = _Store()


def compiling_seconds() -> float:
    """Seconds that this process has spent on compiling and loading kernels."""
    return _STORE.seconds
