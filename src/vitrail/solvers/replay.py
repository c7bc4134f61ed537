"""A computation as a CUDA graph.

A batch of a net is hundreds of kernels of microseconds each; launching them takes longer than
running them. A graph records them once; the same kernels then run on other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

WARM_UPS = 3  # runs before recording, in which libraries choose their kernels
_RECORDS = True  # tests compare with what is computed step by step


class Replay:
    """What `compute()` gives, of tensors that are read from the same places every time."""

    def __init__(self, compute: Callable[[], tuple[Tensor, ...]], places: Sequence[Tensor]) -> None:
        self._graph, self._places = torch.cuda.CUDAGraph(), tuple(places)
        with torch.cuda.device(self._places[0].device):
            here, side = torch.cuda.current_stream(), torch.cuda.Stream()
            side.wait_stream(here)
            with torch.cuda.stream(side):
                for _ in range(WARM_UPS):
                    compute()
            here.wait_stream(side)
            with torch.cuda.graph(self._graph):  # in a memory pool of its own
                self._found = compute()

    def __call__(self, *values: Tensor) -> tuple[Tensor, ...]:
        """The results of `values` copied into the places; the next call overwrites them."""
        for place, value in zip(self._places, values, strict=True):
            place.copy_(value)
        self._graph.replay()
        return self._found


def replay(compute: Callable[[], tuple[Tensor, ...]], places: Sequence[Tensor]) -> Replay | None:
    """The computation as a graph; None where torch cannot record it.

    `compute` reads its numbers from `places` and asks no tensor for its value.
    """
    if not _RECORDS or places[0].device.type != "cuda":
        return None
    try:
        return Replay(compute, places)
    except RuntimeError:  # the caller computes it step by step, and says what is wrong if that is
        return None
