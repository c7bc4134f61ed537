"""Which compiled twin serves an update: one table, one rule.

A twin gives the same bits as the torch definition, so choosing one changes the time and nothing
else. `auto` takes a twin where there is one, but not before the definition has done about as
much work as loading the twin would cost: a small problem never pays for a compiler.
"""

from __future__ import annotations

import importlib
import sys
import threading
from types import ModuleType

from vitrail.factors import Factors

# task → backend → the module that serves it, each with serves(factors, samples) -> bool
TWINS = {
    "flip": {"numba": "vitrail.kernels.cpu.flip", "triton": "vitrail.kernels.cuda.flip"},
    "counting": {
        "numba": "vitrail.kernels.cpu.counting",
        "triton": "vitrail.kernels.cuda.counting",
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
COMPILING = 2.0  # seconds of loading after which a line says what is going on

_drawn = 0  # lanes that `auto` left to torch so far


class BackendError(RuntimeError):
    """A backend asked for by name cannot serve; the message says why and what to do."""


def find(task: str, backend: str, factors: Factors, lanes: int, samples: int) -> ModuleType | None:
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
    if wanted == "numba" and not named and name not in sys.modules and not _worth_loading(lanes):
        return None
    try:
        twin = load(name)
    except ImportError as error:
        return _absent(named, f"backend {wanted!r} is not here ({error}); {REMEDY[wanted]}")
    if not factors.tables.get(twin.serves, samples):
        kind = type(factors).__name__
        return _absent(
            named,
            f"{wanted} has no kernel for {task} on these {kind} factors with {samples} samples; "
            "choose backend='auto' or 'torch'",
        )
    return twin


def load(name: str) -> ModuleType:
    """Import a module of kernels; a line on standard error where compiling takes long."""
    if name in sys.modules:
        return sys.modules[name]
    line = "vitrail: compiling kernels for this machine (once; they are kept)\n"
    notice = threading.Timer(COMPILING, lambda: sys.stderr.write(line))
    notice.daemon = True
    notice.start()
    try:
        return importlib.import_module(name)
    finally:
        notice.cancel()


def _worth_loading(lanes: int) -> bool:
    global _drawn
    _drawn += lanes
    return _drawn > PATIENCE


def _absent(named: bool, reason: str) -> None:
    if named:
        raise BackendError(reason)
