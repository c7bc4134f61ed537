"""Which compiled twin serves an update: one table, one rule.

A twin gives the same bits as the torch definition, so choosing one changes the time and nothing
else. `auto` takes a twin where there is one, but not before the definition has done about as
much work as loading the twin would cost: a small problem never pays for a compiler.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any, Literal, overload

from vitrail.factors import Factors
from vitrail.kernels.protocols import (
    CountingKernels,
    DampingKernels,
    DrawKernels,
    FlipKernels,
    GaussianKernels,
    PoolKernels,
    ScoreKernels,
    SurveyKernels,
)

Task = Literal["flip", "damp", "counting", "gaussian", "survey", "score", "pool", "draw"]

# task → backend → the module that serves it, each with serves(factors, samples) -> bool
TWINS: dict[Task, dict[str, str]] = {
    "flip": {"numba": "vitrail.kernels.cpu.flip", "triton": "vitrail.kernels.cuda.flip"},
    "damp": {"numba": "vitrail.kernels.cpu.damping"},
    "counting": {
        "numba": "vitrail.kernels.cpu.counting",
        "triton": "vitrail.kernels.cuda.counting",
    },
    "gaussian": {
        "numba": "vitrail.kernels.cpu.gaussian",
        "triton": "vitrail.kernels.cuda.gaussian",
    },
    "survey": {"numba": "vitrail.kernels.cpu.survey", "triton": "vitrail.kernels.cuda.survey"},
    "score": {"numba": "vitrail.kernels.cpu.score", "triton": "vitrail.kernels.cuda.score"},
    "pool": {"triton": "vitrail.kernels.cuda.network"},
    "draw": {"triton": "vitrail.kernels.cuda.draws"},
}
DEVICE_OF = {"numba": "cpu", "triton": "cuda"}
REMEDY = {
    "numba": "install numba (pip install numba) or choose backend='auto' or 'torch'",
    "triton": "install torch with CUDA, which brings Triton, or choose backend='auto' or 'torch'",
}
PATIENCE = 5_000_000  # lanes drawn by torch in about the time it takes to load a twin


class BackendError(RuntimeError):
    """A backend asked for by name cannot serve; the message says why and what to do."""


class Store:
    """The modules of kernels that this process has loaded, and when to load one."""

    def __init__(self) -> None:
        self._drawn = 0  # lanes that `auto` left to torch so far

    def load(self, name: str) -> ModuleType:
        """The module of that name; its kernels are compiled when they are first called."""
        return sys.modules.get(name) or importlib.import_module(name)

    def worth_loading(self, name: str, lanes: int) -> bool:
        """Whether a module is here already, or about as much work was done without it."""
        if name in sys.modules:
            return True
        self._drawn += lanes
        return self._drawn > PATIENCE


STORE = Store()


@overload
def find(
    task: Literal["flip"], backend: str, factors: Factors, lanes: int, samples: int
) -> FlipKernels | None: ...
@overload
def find(
    task: Literal["damp"], backend: str, factors: Factors, lanes: int, samples: int
) -> DampingKernels | None: ...
@overload
def find(
    task: Literal["counting"], backend: str, factors: Factors, lanes: int, samples: int
) -> CountingKernels | None: ...
@overload
def find(
    task: Literal["gaussian"], backend: str, factors: Factors, lanes: int, samples: int
) -> GaussianKernels | None: ...
@overload
def find(
    task: Literal["survey"], backend: str, factors: Factors, lanes: int, samples: int
) -> SurveyKernels | None: ...
@overload
def find(
    task: Literal["score"], backend: str, factors: Factors, lanes: int, samples: int
) -> ScoreKernels | None: ...
@overload
def find(
    task: Literal["pool"], backend: str, factors: Factors, lanes: int, samples: int
) -> PoolKernels | None: ...
@overload
def find(
    task: Literal["draw"], backend: str, factors: Factors, lanes: int, samples: int
) -> DrawKernels | None: ...


def find(task: Task, backend: str, factors: Factors, lanes: int, samples: int) -> Any:
    """The module that serves `task` on these factors, or None for the torch definition.

    lanes: how many 16-bit draws the call is about to make; samples: how many for each message.
    """
    if backend == "torch":
        return None
    named = backend != "auto"
    device = factors.ids.device.type
    wanted = backend if named else "numba" if device == "cpu" else "triton"
    if DEVICE_OF[wanted] != device:
        raise BackendError(
            f"backend {wanted!r} runs on {DEVICE_OF[wanted]}, the factors are on {device}; "
            "move the graph or choose backend='auto'"
        )
    if wanted not in TWINS[task]:
        return _absent(named, f"{task} has no {wanted} kernel; choose backend='auto' or 'torch'")
    name = TWINS[task][wanted]
    if wanted == "numba" and not named and not STORE.worth_loading(name, lanes):
        return None
    try:
        twin = STORE.load(name)
    except ImportError as error:
        return _absent(named, f"backend {wanted!r} is not here ({error}); {REMEDY[wanted]}")
    whole, _ = factors.origin()
    if not whole.once_at_beta(twin.serves, samples):
        kind = type(factors).__name__
        return _absent(
            named,
            f"{wanted} has no kernel for {task} on these {kind} factors with {samples} samples; "
            "choose backend='auto' or 'torch'",
        )
    return twin


def _absent(named: bool, reason: str) -> None:
    if named:
        raise BackendError(reason)
