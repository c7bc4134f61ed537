"""Where chains have been, in a file: chains that were cut go through it again without running.

A chain is a function of its bits and of the number of its next proposal. So the states after every
advance are all there is to keep, and the rest of a run (averages, draws, what is watched) is made
from them a second time, bit for bit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vitrail.ranks import ALONE, World
from vitrail.solvers import checkpoint
from vitrail.solvers.checkpoint import CheckpointError, previous_path

SECONDS = 10.0  # between two writes


@dataclass(frozen=True)
class Visited:
    """Where chains stood after an advance."""

    bits: Tensor  # (C, N, A) bool
    wrong: Tensor  # (C, N) float64
    proposals: int  # so far


class Journal:
    """The states of one run of chains; `digest` tells the run from others."""

    def __init__(self, path: Path, digest: str, world: World = ALONE) -> None:
        self.path, self._digest = path, digest
        self._bits: list[np.ndarray] = []
        self._wrong: list[Tensor] = []
        self._place, self._proposals, self._written = 0, 0, time.monotonic()
        found = checkpoint.read_latest(path)
        if found is not None:
            tensors, meta = found
            if meta.get("run") != digest:
                raise CheckpointError(
                    f"the checkpoint {path} is of another run; choose another file, or remove it"
                )
            self._bits = list(tensors["bits"].numpy())
            self._wrong = list(tensors["wrong"])
        if int(world.broadcast(str(len(self._bits)))) != len(self._bits):
            raise CheckpointError(
                f"ranks find different checkpoints at {path}; put it on a disk that all of them see"
            )

    def next(self, shape: tuple[int, int, int], proposals: int) -> Visited | None:
        """Where the next advance came to, where that is known."""
        place = self._place
        self._place, self._proposals = place + 1, self._proposals + proposals
        if place >= len(self._bits):
            return None
        bits = np.unpackbits(self._bits[place], axis=-1, count=shape[-1]).astype(np.bool_)
        return Visited(torch.from_numpy(bits), self._wrong[place], self._proposals)

    def add(self, bits: Tensor, wrong: Tensor, world: World) -> None:
        """Keep where an advance came to; the file is written now and then, by rank 0."""
        self._bits.append(np.packbits(bits.numpy(), axis=-1))
        self._wrong.append(wrong)
        if world.first and time.monotonic() - self._written >= SECONDS:
            tensors = {
                "bits": torch.from_numpy(np.stack(self._bits)),
                "wrong": torch.stack(self._wrong),
            }
            checkpoint.write(self.path, tensors, {"run": self._digest})
            self._written = time.monotonic()

    def remove(self) -> None:
        """The run has ended: nobody goes on from here."""
        for file in (self.path, previous_path(self.path)):
            file.unlink(missing_ok=True)
