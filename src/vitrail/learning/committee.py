"""Committees of a model's hidden units or networks, with small integer votes.

A unit is a small net of its own. Greedy search selects those whose weighted votes are closest to
the output of all networks together; then bits of the units are flipped wherever that brings the sum
closer. Where labels follow a rule, one network knows it and units of several do not: so complete
networks can be selected by the same search. Nets whose units cannot be separated (no hidden layer,
several, own modules) are kept complete.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from vitrail.learning.teacher import Student, Teacher
from vitrail.nn import Program, mlp, program_of

UNITS = "units"
POOL = 1024  # candidates per net, at most
VOTES = 4  # per member, on average
PASSES = 3  # of search; each reassigns every vote once
SIZES = (2, 4, 8, 16)  # members per net that are tried
ROUNDS = 6  # of flips over all units
FLIPS = 40  # per unit and round, at most
WORTH = 1e-5  # relative improvement that a flip must bring
SAFE = 1e-9  # avoids division by 0


class CommitteeCompressor:
    """Committees of members selected from candidates (P, N, A), which all compute `program`."""

    def __init__(
        self, teacher: Teacher, name: str, program: Program, candidates: Tensor, clip: int
    ):
        self.teacher, self.name, self.program, self.clip = teacher, name, program, clip
        places = torch.linspace(0, len(candidates) - 1, min(POOL, len(candidates))).long()
        self.candidates = candidates[places]  # evenly spaced
        self.each = program.num_bits * candidates.shape[1]
        margins = teacher.margins(program, self.candidates, clip)
        self.nets = [
            GreedySelection(margins[:, :, net], teacher.target[:, net], teacher.weight)
            for net in range(margins.shape[2])
        ]

    @staticmethod
    def units(teacher: Teacher) -> CommitteeCompressor | None:
        """Committees of single hidden units, where nets have several of them."""
        units = teacher.units()
        if units is None or teacher.model.program.hidden == (1,):
            return None
        return CommitteeCompressor(teacher, UNITS, unit_net(teacher.num_inputs), units, 1)

    @staticmethod
    def networks(teacher: Teacher) -> CommitteeCompressor | None:
        """Committees of complete networks, where all inputs are read."""
        model = teacher.model
        if teacher.num_inputs < model.program.num_inputs:
            return None
        return CommitteeCompressor(teacher, "networks", model.program, model.networks, model.clip)

    def sizes(self, most: int) -> list[int]:
        """Numbers of members per net."""
        largest = min(most // self.each, len(self.candidates))
        return [*(size for size in SIZES if size < largest), largest] if largest else []

    def cost(self, size: int) -> int:
        """Bits of all members."""
        return size * self.each

    def largest(self, most: int) -> list[int]:
        """The largest committee."""
        return self.sizes(most)[-1:]

    def build(self, size: int) -> Student:
        """`size` members per net, with their votes and calibration."""
        found = [net.select(size) for net in self.nets]
        votes = torch.tensor([list(one.values()) for one in found]).T
        chosen = [self.candidates[list(one), net] for net, one in enumerate(found)]
        if self.name == UNITS:
            chosen = [self._polish(net, bits, votes[:, net]) for net, bits in enumerate(chosen)]
        return self.teacher.student(self.program, torch.stack(chosen, 1), votes, self.clip)

    def _polish(self, net: int, units: Tensor, votes: Tensor) -> Tensor:
        teacher = self.teacher
        given = (teacher.rows, units, votes, teacher.target[:, net, 0], teacher.weight)
        return torch.from_numpy(polish(*(one.numpy() for one in given)))


def unit_net(num_inputs: int) -> Program:
    """A hidden unit as a net of its own: its weights, and its sign in the next layer."""
    return program_of(mlp(num_inputs, (1,), 1), (num_inputs,))


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


def polish(
    rows: np.ndarray, units: np.ndarray, votes: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Units (K, I + 1) with weights flipped, one by one, while the sum of votes comes closer.

    target (R,), weight (R,) adding up to one. Cost: ROUNDS·K·FLIPS times, three products of the
    rows at the threshold, a few of (R, I), with a vector.
    """
    bits, sign = units.copy(), np.where(units[:, -1], 1, -1)
    edge = rows.astype(np.int64) @ units[:, :-1].T.astype(np.int64)
    edge -= rows.sum(1, dtype=np.int64)[:, None] // 2  # active where above 0
    total = (np.where(edge > 0, 1, -1) * sign) @ votes.astype(np.float64)
    centred = target - weight @ target
    x = rows.astype(np.float32)
    for _ in range(ROUNDS):
        for unit, each in enumerate(sign * votes):
            for _ in range(FLIPS):
                best = _best_flip(x, bits[unit, :-1], edge[:, unit], each, total, centred, weight)
                if best is None:
                    break
                total -= each * np.where(edge[:, unit] > 0, 1, -1)
                edge[:, unit] += rows[:, best] * np.where(bits[unit, best], -1, 1)
                total += each * np.where(edge[:, unit] > 0, 1, -1)
                bits[unit, best] ^= True
    return bits


def _best_flip(
    x: np.ndarray,
    on: np.ndarray,
    edge: np.ndarray,
    each: int,
    total: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
) -> int | None:
    """The weight of a unit whose flip brings the sum closest to its target; None if none does.

    Flipping the weight of input i switches the unit in rows that have the input (x, (R, I)) and
    whose count is at the threshold: from below if the weight is off, from above if it is on. Where
    it does, the sum s changes by d = ±2·each, so all products that correlation needs are sums of
    t, s and 1 over those rows.
    """
    sums = np.stack([weight * target, weight * total, weight]).astype(np.float32)
    rise, fall = (sums[:, at] @ x[at] for at in (np.flatnonzero(edge == k) for k in (0, 1)))
    step = np.where(on, -2.0, 2.0) * each
    moved = np.where(on, fall, rise).astype(np.float64)  # (3, I): t, s and 1
    mean, towards, square = weight @ total, weight @ (target * total), weight @ total**2
    now = np.sign(towards) * towards**2 / max(square - mean**2, SAFE)
    towards = towards + step * moved[0]
    square = square + 2 * step * moved[1] + step**2 * moved[2]
    square = square - (mean + step * moved[2]) ** 2
    quality = np.sign(towards) * towards**2 / np.maximum(square, SAFE)
    best = int(quality.argmax())
    return best if quality[best] > now + WORTH * abs(now) else None
