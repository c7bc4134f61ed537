"""Committees of what a model has: single hidden units, or whole networks, with small votes.

A unit is a small net of its own. Greedy search picks those whose votes, whole numbers, add up to
nearly what all networks say together; then bits of the units are flipped wherever that brings the
sum nearer. Where labels follow a rule, one network knows it and units of many do not: so whole
networks can be picked by the same search. Nets whose units cannot be taken apart (no hidden layer,
several, own modules) are kept whole.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from vitrail.fitting.teacher import Small, Whole
from vitrail.nn import Program, mlp, program_of

UNITS = "units"
POOL = 1024  # candidates of a net
VOTES = 4  # all of a committee, for each member
PASSES = 3  # of search, each member being put to the test once
SIZES = (2, 4, 8, 16)  # members of a net that are tried
ROUNDS = 6  # of flips, over all units
FLIPS = 40  # of a unit in a round
WORTH = 1e-5  # part by which a flip must bring the sum nearer
SAFE = 1e-9


class Picked:
    """Committees of members picked from candidates (P, N, A), which all compute `program`."""

    def __init__(self, whole: Whole, name: str, program: Program, candidates: Tensor, clip: int):
        self.whole, self.name, self.program, self.clip = whole, name, program, clip
        places = torch.linspace(0, len(candidates) - 1, min(POOL, len(candidates))).long()
        self.candidates = candidates[places]  # evenly from first to last
        self.each = program.num_bits * candidates.shape[1]
        said = whole.said(program, self.candidates, clip)
        self.nets = [
            Picker(said[:, :, net], whole.wanted[:, net], whole.weight)
            for net in range(said.shape[2])
        ]

    @staticmethod
    def units(whole: Whole) -> Picked | None:
        """Of single hidden units, where nets have several of them."""
        units = whole.units()
        if units is None or whole.model.program.hidden == (1,):
            return None
        return Picked(whole, UNITS, unit_net(whole.num_inputs), units, 1)

    @staticmethod
    def networks(whole: Whole) -> Picked | None:
        """Of whole networks, where all inputs are read."""
        model = whole.model
        if whole.num_inputs < model.program.num_inputs:
            return None
        return Picked(whole, "networks", model.program, model.networks, model.clip)

    def sizes(self, most: int) -> list[int]:
        """Numbers of members."""
        largest = min(most // self.each, len(self.candidates))
        return [*(size for size in SIZES if size < largest), largest] if largest else []

    def cost(self, size: int) -> int:
        """Bits of all members."""
        return size * self.each

    def largest(self, most: int) -> list[int]:
        """The most members."""
        return self.sizes(most)[-1:]

    def made(self, size: int) -> Small:
        """So many members a net, with their votes and tables."""
        found = [net.picked(size) for net in self.nets]
        votes = torch.tensor([list(one.values()) for one in found]).T
        chosen = [self.candidates[list(one), net] for net, one in enumerate(found)]
        if self.name == UNITS:
            chosen = [self._polished(net, bits, votes[:, net]) for net, bits in enumerate(chosen)]
        return self.whole.small(self.program, torch.stack(chosen, 1), votes, self.clip)

    def _polished(self, net: int, units: Tensor, votes: Tensor) -> Tensor:
        whole = self.whole
        given = (whole.rows, units, votes, whole.wanted[:, net, 0], whole.weight)
        return torch.from_numpy(polished(*(one.numpy() for one in given)))


def unit_net(num_inputs: int) -> Program:
    """A hidden unit as a net of its own: its weights, and its sign in the layer behind."""
    return program_of(mlp(num_inputs, (1,), 1), (num_inputs,))


class Picker:
    """Greedy choice of members of one net whose sum correlates best with what is wanted.

    With everything centred, u candidates, s the sum so far and t what is wanted, the next member
    makes (s + u)·t / |s + u| largest; all products are made once.
    """

    def __init__(self, said: Tensor, wanted: Tensor, weight: Tensor) -> None:
        """said (rows, P, O) and wanted (rows, O); entries of a row weigh alike."""
        rows, pool, outputs = said.shape
        u = said.transpose(1, 2).reshape(rows * outputs, pool).to(torch.float32)
        w = (weight[:, None].expand(rows, outputs).reshape(-1) / outputs).to(torch.float32)
        t = wanted.reshape(-1).to(torch.float32)
        u = (u - w @ u) * w.sqrt()[:, None]
        t = (t - w @ t) * w.sqrt()
        self.products = (u.T @ u).double().numpy()  # (P, P)
        self.towards = (u.T @ t).double().numpy()  # (P,)

    def picked(self, count: int) -> dict[int, int]:
        """`count` members with their votes: one vote after the other, then each given anew."""
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
        """Who gets a vote beside these, where `left` more will be given: `count` must have one."""
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


def polished(
    rows: np.ndarray, units: np.ndarray, votes: np.ndarray, wanted: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Units (K, I + 1) with weights flipped, one by one, while the sum of votes comes nearer.

    wanted (R,), weight (R,) adding up to one. Cost: ROUNDS·K·FLIPS times, three products of the
    rows at the edge, a few of (R, I), with a vector.
    """
    bits, sign = units.copy(), np.where(units[:, -1], 1, -1)
    edge = rows.astype(np.int64) @ units[:, :-1].T.astype(np.int64)
    edge -= rows.sum(1, dtype=np.int64)[:, None] // 2  # active where above 0
    total = (np.where(edge > 0, 1, -1) * sign) @ votes.astype(np.float64)
    target = wanted - weight @ wanted
    x = rows.astype(np.float32)
    for _ in range(ROUNDS):
        for unit, each in enumerate(sign * votes):
            for _ in range(FLIPS):
                best = _best_flip(x, bits[unit, :-1], edge[:, unit], each, total, target, weight)
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
    """The weight of a unit whose flip brings the sum nearest to its target; None where none does.

    Flipping the weight of input i switches the unit in rows that have the input (x, (R, I)) and
    whose count stands at the edge: from below if the weight is off, from above if it is on. Where
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
