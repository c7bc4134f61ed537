"""A computation as a CUDA graph.

A batch of a net runs hundreds of kernels of microseconds each; launching them takes longer than
running them. A graph records the launches once and replays them on other inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

WARM_UPS = 3  # runs before recording, in which libraries choose their kernels
_RECORDS = True  # tests switch it off to compare with ordinary launches


class Replay:
    """A recorded `compute()`, which reads its inputs from the same tensors every time."""

    def __init__(self, compute: Callable[[], tuple[Tensor, ...]], places: Sequence[Tensor]) -> None:
        self._graph, self._places = torch.cuda.CUDAGraph(), tuple(places)
        self._compute = compute  # the graph reads the tensors that it holds, wherever they are
        with torch.cuda.device(self._places[0].device):
            current, side = torch.cuda.current_stream(), torch.cuda.Stream()
            side.wait_stream(current)
            with torch.cuda.stream(side):
                for _ in range(WARM_UPS):
                    compute()
            current.wait_stream(side)
            with torch.cuda.graph(self._graph):  # with a separate memory pool
                self._outputs = compute()

    def __call__(self, *values: Tensor) -> tuple[Tensor, ...]:
        """The outputs for `values`; the next call overwrites them."""
        for place, value in zip(self._places, values, strict=True):
            place.copy_(value)
        self._graph.replay()
        return self._outputs


def replay(compute: Callable[[], tuple[Tensor, ...]], places: Sequence[Tensor]) -> Replay | None:
    """The computation as a graph; None where torch cannot record it.

    `compute` reads its inputs from `places` and copies no value to the CPU.
    """
    if not _RECORDS or places[0].device.type != "cuda":
        return None
    try:
        return Replay(compute, places)
    except RuntimeError:  # the caller then runs `compute` itself and reports any error
        return None
