"""The states of chains in a file: an interrupted run replays them instead of running again.

A chain is a function of its bits and of the number of its next proposal. So only the states after
every advance are stored; everything else (averages, draws, diagnostics) is recomputed from them,
bit for bit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vitrail.solvers.checkpoint import Checkpoint, remove

SECONDS = 10.0  # between two writes


@dataclass(frozen=True)
class ChainStates:
    """States of the chains after an advance."""

    bits: Tensor  # (C, N, A) bool
    wrong: Tensor  # (C, N) float64
    proposals: int  # so far


class Journal:
    """The states of one run of chains, in a file that rank 0 writes every few seconds."""

    def __init__(self, file: Checkpoint) -> None:
        self.file = file
        self._bits: list[np.ndarray] = []
        self._wrong: list[Tensor] = []
        self._place, self._proposals, self._written = 0, 0, time.monotonic()
        found = file.load()
        if found is not None:
            self._bits = list(found[0]["bits"].numpy())
            self._wrong = list(found[0]["wrong"])

    def next(self, shape: tuple[int, int, int], proposals: int) -> ChainStates | None:
        """The recorded states after the next advance; None beyond the end of the record."""
        place = self._place
        self._place, self._proposals = place + 1, self._proposals + proposals
        if place >= len(self._bits):
            return None
        bits = np.unpackbits(self._bits[place], axis=-1, count=shape[-1]).astype(np.bool_)
        return ChainStates(torch.from_numpy(bits), self._wrong[place], self._proposals)

    def add(self, bits: Tensor, wrong: Tensor) -> None:
        """Record the states after an advance."""
        self._bits.append(np.packbits(bits.numpy(), axis=-1))
        self._wrong.append(wrong)
        if time.monotonic() - self._written >= SECONDS:
            states = torch.from_numpy(np.stack(self._bits))
            self.file.save({"bits": states, "wrong": torch.stack(self._wrong)})
            self._written = time.monotonic()

    def remove(self) -> None:
        """Delete the file of a finished run; the first rank does."""
        if self.file.world.first:
            remove(self.file.path)
