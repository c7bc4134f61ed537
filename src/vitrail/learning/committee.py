"""Committees of a model's own networks, with small integer votes.

Greedy search selects networks whose weighted votes are closest to the output of all together. Every
net has such committees, also one that the other compressors cannot build (several hidden layers,
several outputs, own modules).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from vitrail.learning.teacher import Compressor, Student, Teacher

POOL = 1024  # candidates per net, at most
VOTES = 4  # per member, on average
PASSES = 3  # of search; each reassigns every vote once
SIZES = (2, 4, 8, 16)  # members per net that are tried
SAFE = 1e-9  # avoids division by 0


class CommitteeCompressor(Compressor):
    """Committees of members selected from the teacher's networks."""

    name: ClassVar[str] = "networks"

    def __init__(self, teacher: Teacher) -> None:
        self.teacher, networks = teacher, teacher.model.networks
        places = torch.linspace(0, len(networks) - 1, min(POOL, len(networks))).long()
        self.candidates = networks[places]  # evenly spaced
        model, inputs = teacher.model, teacher.inputs.places
        margins = teacher.margins(model.program, self.candidates, model.clip, inputs)
        self.nets = [
            GreedySelection(margins[:, :, net], teacher.target[:, net], teacher.weight)
            for net in range(teacher.num_nets)
        ]

    def sizes(self, most: int) -> list[int]:
        """Numbers of members per net."""
        largest = min(most // self.cost(1), len(self.candidates))
        return [*(size for size in SIZES if size < largest), largest] if largest else []

    def cost(self, size: int) -> int:
        """Bits of all members."""
        return size * self.candidates[0].numel()

    def build(self, size: int) -> Student:
        """`size` members per net, with their votes and calibration."""
        found = [net.select(size) for net in self.nets]
        votes = torch.tensor([list(one.values()) for one in found]).T
        chosen = [self.candidates[list(one), net] for net, one in enumerate(found)]
        model = self.teacher.model
        return self.teacher.student(model.program, torch.stack(chosen, 1), votes, model.clip)


class GreedySelection:
    """Greedy selection of members of one net whose sum correlates best with a target.

    With everything centred, u the candidates, s the sum so far and t the target, the next member
    maximises (s + u)·t / |s + u|; all products are computed once.
    """

    def __init__(self, margins: Tensor, target: Tensor, weight: Tensor) -> None:
        """margins (rows, P, O) and target (rows, O); entries of a row have equal weight."""
        rows, pool, outputs = margins.shape
        u = margins.transpose(1, 2).reshape(rows * outputs, pool).to(torch.float32)
        w = (weight[:, None].expand(rows, outputs).reshape(-1) / outputs).to(torch.float32)
        t = target.reshape(-1).to(torch.float32)
        u = (u - w @ u) * w.sqrt()[:, None]
        t = (t - w @ t) * w.sqrt()
        self.products = (u.T @ u).double().numpy()  # (P, P)
        self.towards = (u.T @ t).double().numpy()  # (P,)

    def select(self, count: int) -> dict[int, int]:
        """`count` members with their votes: votes are given one by one, then each is reassigned."""
        votes = np.zeros(len(self.towards), np.int64)
        order: list[int] = []
        for left in reversed(range(count * VOTES)):
            order.append(self._next(votes, count, left))
            votes[order[-1]] += 1
        for _ in range(PASSES):
            for place, old in enumerate(order):
                votes[old] -= 1
                order[place] = self._next(votes, count, 0)
                votes[order[place]] += 1
        return {int(place): int(votes[place]) for place in np.flatnonzero(votes)}

    def _next(self, votes: np.ndarray, count: int, left: int) -> int:
        """The next member to get a vote, `left` more to come, so that `count` members have some."""
        chosen = np.flatnonzero(votes)
        total = votes[chosen] @ self.products[chosen]  # products of the sum with every candidate
        towards = float(votes @ self.towards) + self.towards
        square = float(votes[chosen] @ total[chosen]) + 2 * total + self.products.diagonal()
        quality = np.sign(towards) * towards**2 / np.maximum(square, SAFE)
        missing = count - len(chosen)
        if missing <= 0:
            quality[votes == 0] = -np.inf
        elif missing > left:
            quality[chosen] = -np.inf
        return int(quality.argmax())
