"""The choice of compiled kernels for an update: one table, one rule.

Kernels give the same bits as the torch definition; only the time differs. `auto` takes kernels
where there are any, but not before torch has done about as much work as loading them would cost:
small problems never wait for a compiler.

The kernels of a task are a module. `serves(factors, samples)` tests whether it supports these
factors and is called once per block; its other functions return what the torch definitions do.
Rows (f,) int64 are indices into the block; None is the whole block.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from vitrail.factors import Factors

# task → backend → the module that serves it
KERNELS: dict[str, dict[str, str]] = {
    **{
        task: {"numba": f"vitrail.kernels.cpu.{task}", "triton": f"vitrail.kernels.cuda.{task}"}
        for task in ("flip", "counting", "gaussian", "survey", "score")
    },
    "damp": {"numba": "vitrail.kernels.cpu.damping"},
}
DEVICE_OF = {"numba": "cpu", "triton": "cuda"}
REMEDY = {
    "numba": "install numba (pip install numba) or choose backend='auto' or 'torch'",
    "triton": "install torch with CUDA, which brings Triton, or choose backend='auto' or 'torch'",
}
LANES_BEFORE_LOADING = 5_000_000  # lanes that torch draws while kernels are loaded


class BackendError(RuntimeError):
    """The requested backend cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class GaussianCavities:
    """Draws of survey tracks: from a Gaussian of log-odds in each of two products."""

    tracks: int
    limit: float  # of cavities, log-odds

    branch_threshold: Tensor  # (f, A) int64: a 32-bit lane below takes the product over p
    centre: Tensor  # (f, 2, A) float64
    spread: Tensor  # (f, 2, A) float64


_drawn = 0  # lanes that `auto` has left to torch so far


def find(task: str, backend: str, factors: Factors, lanes: int, samples: int) -> Any:
    """The module that serves `task` on these factors, or None for the torch definition.

    lanes: number of 16-bit draws of the call; samples: number of draws per message.
    """
    if backend == "torch":
        return None
    named = backend != "auto"
    device = factors.ids.device.type
    backend = backend if named else "numba" if device == "cpu" else "triton"
    if DEVICE_OF[backend] != device:
        raise BackendError(
            f"backend {backend!r} runs on {DEVICE_OF[backend]}, the factors are on {device}; "
            "move the graph or choose backend='auto'"
        )
    if backend not in KERNELS[task]:
        return _absent(named, f"{task} has no {backend} kernel; choose backend='auto' or 'torch'")
    name = KERNELS[task][backend]
    if backend == "numba" and not named and not _worth_loading(name, lanes):
        return None
    try:
        kernel: Any = sys.modules.get(name) or importlib.import_module(name)
    except ImportError as error:
        return _absent(named, f"backend {backend!r} is not installed ({error}); {REMEDY[backend]}")
    whole, _ = factors.origin()
    if not whole.once_at_beta(kernel.serves, samples):
        kind = type(factors).__name__
        return _absent(
            named,
            f"{backend} has no kernel for {task} on these {kind} factors with {samples} samples; "
            "choose backend='auto' or 'torch'",
        )
    return kernel


def _worth_loading(name: str, lanes: int) -> bool:
    """Whether a module is loaded, or torch has done about as much work as loading would cost."""
    global _drawn
    if name in sys.modules:
        return True
    _drawn += lanes
    return _drawn > LANES_BEFORE_LOADING


def _absent(named: bool, reason: str) -> None:
    if named:
        raise BackendError(reason)
