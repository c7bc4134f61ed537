"""A small committee that answers as many networks do: what goes onto a device.

What is kept of a posterior are single hidden units, or whole networks. A unit is a small net of
its own, and greedy search picks those whose votes, whole numbers, add up to nearly the same scores
as those of all networks; then bits of the units are flipped wherever that brings the sum nearer.
Where labels follow a rule, one network knows it and units of many do not: so whole networks are
picked by the same search, and of both the one is kept that agrees with the model on more rows.
Nets whose units cannot be taken apart (no hidden layer, several, own modules) are kept whole.

Scores are compared on rows given and on rows made of them: two rows are crossed, every column
being taken from the second with a chance of 3 in 10. No labels are needed: the calibration table
is fitted to the chances that all networks together gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail.data.checks import check_made, checked_count
from vitrail.data.draws import Purpose, random_words
from vitrail.data.encoders import TableEncoder
from vitrail.model import Model, outputs_of
from vitrail.model.calibration import soft_table
from vitrail.model.voting import ONE, chances, leads, levels, members, scores
from vitrail.nn import Program, mlp, program_of

ROWS = 1000  # of those given that are looked at
MADE = 2000  # rows made to choose by, and as many to judge by
CROSSED = 0.3  # chance of a column to come from another row
POOL = 1024  # candidates of a net
VOTES = 4  # all of a committee, for each member
PASSES = 3  # of search, each member being put to the test once
SIZES = (2, 4, 8, 16, 32, 64)  # members of a net that are tried
NEAR = 0.01  # of agreement that the default gives away against the largest of them
ROUNDS = 3  # of flips, over all units
FLIPS = 8  # of a unit in a round
WORTH = 1e-5  # part by which a flip must bring the sum nearer
SAFE = 1e-9
OF_THE_WHOLE = {  # notes that are not true of the small model
    "train_accuracy", "test_accuracy", "test_rows", "seconds", "steps", "evaluations", "status",
    "found_by", "mixing",
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """A committee on the curve of agreement against bits."""

    members: int  # of a net
    bits: int  # of all nets
    agreement: float  # share of rows answered as by the whole model
    accuracy: float | None  # on rows with labels, where some were given


def compress(model: Model, rows: Any, labels: Any = None, *, bits: int | None = None) -> Model:
    """A committee that says nearly what the model says, in at most `bits` bits.

    Args:
        model: A model of many networks, as the default predictor makes it.
        rows: A table like that of training, with or without labels; training rows will do.
        labels: Of these rows, to measure accuracy with; the choice does not look at them.
        bits: The most weights in all; None is the smallest committee that agrees with the model
            as often as the largest does that is tried, but for one row in a hundred.

    Returns:
        The small model. Its record says under "compressed" how agreement grows with bits.

    Examples:
        >>> from vitrail import BinaryNetClassifier
        >>> rows, labels = [[0, 1], [1, 0]] * 5, ["no", "yes"] * 5
        >>> model = BinaryNetClassifier(random_state=0).fit(rows, labels).model_
        >>> compress(model, rows).networks.numel() < model.networks.numel()
        True
    """
    check_made(model, "answers_of", "`load_model` or `BinaryNetClassifier.fit(…).model_`")
    if len(model.networks) < 2:
        raise ValueError(
            "expected a model of many networks, got one that answers with a single network; fit it "
            "with predictor='posterior'"
        )
    given = model.inputs(rows)
    if not len(given):
        raise ValueError("got no rows to compress by; give some that are like those of training")
    kinds = _kinds(model.program)
    least = min(kind.num_bits for kind in kinds) * model.networks.shape[1]
    if bits is not None and checked_count("bits", bits, 1) < least:
        raise ValueError(
            f"{bits} bits are too few: a committee of one member a net has {least}; give as many"
        )
    known = given[:: -(-len(given) // ROWS)]
    seen = torch.cat([known, crossed(known, columns_of(model), MADE, seed=0)])
    weight = torch.ones(len(seen), dtype=torch.float64)
    weight[: len(known)] = MADE / len(known)  # real rows count as much as those made of them
    unseen = torch.cat([known, crossed(known, columns_of(model), MADE, seed=1)])
    answers = model.answers_of(unseen).numbers
    truth = None if labels is None else torch.from_numpy(model.labels.encode(np.asarray(labels)))
    if truth is not None and len(truth) != len(given):
        raise ValueError(f"expected one label for each of {len(given)} rows, got {len(truth)}")
    whole = _Whole(model, seen, weight)
    curve: list[tuple[Size, Model]] = []
    largest: list[tuple[Size, Model]] = []  # of each kind
    for kind in kinds:
        search = _Search(whole, kind)
        for count in _counts((bits or SIZES[-1] * least) // search.each, search.pool):
            small = search.committee(count)
            agreement = float((small.answers_of(unseen).numbers == answers).double().mean())
            right = None
            if truth is not None:
                right = float((small.answers_of(given).numbers == truth).double().mean())
            curve.append((Size(count, count * search.each, agreement, right), small))
        largest += curve[-1:]
    curve.sort(key=lambda point: point[0].bits)
    size, small = max(largest, key=lambda point: point[0].agreement)
    if bits is None:
        near = max(size.agreement for size, _ in curve) - NEAR
        size, small = next((size, small) for size, small in curve if size.agreement >= near)
    notes = {
        "networks": len(model.networks),
        "bits_of_all": model.networks.numel(),
        "chosen": size.members,
        "curve": [vars(point) for point, _ in curve],
    }
    record = {name: value for name, value in model.record.items() if name not in OF_THE_WHOLE}
    return replace(small, record={**record, "compressed": notes})


def _counts(most: int, pool: int) -> list[int]:
    """The numbers of members that are tried."""
    largest = min(most, pool)
    return [*(count for count in SIZES if count < largest), largest] if largest else []


def columns_of(model: Model) -> list[slice]:
    """The bits of each column of the table; constants belong to none."""
    if not isinstance(model.encoder, TableEncoder):
        return [model.encoder.bits_of(place) for place in range(len(model.encoder.names))]
    found, first = [], 0
    for code in model.encoder.columns:
        found.append(slice(first, first := first + len(code.bit_names)))
    return found


def crossed(rows: Tensor, columns: Sequence[slice], count: int, seed: int) -> Tensor:
    """`count` rows, each of one of `rows` with some columns of another, (count, I)."""
    words = random_words(seed, Purpose.ROWS, count * (2 + len(columns))).reshape(count, -1)
    first, second = (torch.from_numpy((words[:, k] % len(rows)).astype(np.int64)) for k in (0, 1))
    taken = torch.from_numpy(words[:, 2:] < np.uint64(CROSSED * 2**64))
    made, other = rows[first].clone(), rows[second]
    for number, column in enumerate(columns):
        made[:, column] = torch.where(taken[:, number, None], other[:, column], made[:, column])
    return made


def _kinds(program: Program) -> list[Program]:
    """What one member may compute: a hidden unit where there is one layer of them, or the net."""
    if not program.packable or program.hidden == (1,):
        return [program]
    return [program_of(mlp(program.num_inputs, (1,), 1), program.input_shape), program]


def _units(networks: Tensor, num_inputs: int) -> Tensor:
    """The hidden units of networks (K, N, A) as nets of their own, (K·H, N, I + 1)."""
    count, nets, num_bits = networks.shape
    hidden = num_bits // (num_inputs + 1)
    first = networks[..., : hidden * num_inputs].reshape(count, nets, hidden, num_inputs)
    units = torch.cat([first, networks[..., hidden * num_inputs :, None]], -1)
    return units.transpose(1, 2).reshape(count * hidden, nets, num_inputs + 1)


class _Whole:
    """What the whole model says on rows."""

    def __init__(self, model: Model, rows: Tensor, weight: Tensor) -> None:
        self.model, self.rows, self.weight = model, rows, weight / weight.sum()
        wanted, chance = [], []
        for outputs in outputs_of(model.program, model.networks, rows):
            score = scores(leads(outputs), model.votes, model.clip)
            level = levels(score, model.votes, model.clip)
            wanted.append(score.double() / (model.clip * model.votes.sum(0)[:, None]))
            chance.append(chances(level, model.calibration))
        self.wanted, self.chance = torch.cat(wanted), torch.cat(chance)  # (rows, N, O)


class _Search:
    """What every size shares: what candidates say on the rows."""

    def __init__(self, whole: _Whole, program: Program) -> None:
        model = whole.model
        self.whole, self.model, self.program = whole, model, program
        self.apart = program != model.program
        networks = _units(model.networks, program.num_inputs) if self.apart else model.networks
        places = torch.linspace(0, len(networks) - 1, min(POOL, len(networks))).long()
        self.candidates = networks[places]  # evenly from first to last
        self.pool = len(self.candidates)
        self.each = program.num_bits * networks.shape[1]
        self.clip = 1 if self.apart else model.clip
        said = self._said(self.candidates)
        self.nets = [
            Picker(said[:, :, net], whole.wanted[:, net], whole.weight)
            for net in range(said.shape[2])
        ]

    def committee(self, count: int) -> Model:
        """So many members a net, with their votes and tables."""
        found = [net.picked(count) for net in self.nets]
        votes = torch.tensor([list(one.values()) for one in found]).T
        chosen = [self.candidates[list(one), net] for net, one in enumerate(found)]
        if self.apart:
            chosen = [self._polished(net, bits, votes[:, net]) for net, bits in enumerate(chosen)]
        networks = torch.stack(chosen, 1)
        score = (self._said(networks).double() * votes[None, :, :, None]).sum(1)
        share = score / (self.clip * votes.sum(0)[:, None])
        tables = [
            soft_table(share[:, net], self.whole.chance[:, net], self.whole.weight)
            for net in range(networks.shape[1])
        ]
        return replace(
            self.model,
            program=self.program,
            best=networks[0],
            marginals=(networks.double().mean(0) * ONE).round().to(torch.int64),
            networks=networks,
            votes=votes,
            clip=self.clip,
            calibration=torch.stack(tables),
        )

    def _said(self, networks: Tensor) -> Tensor:
        """Clipped margins on the rows, (rows, K, N, O) int16."""
        said = outputs_of(self.program, networks, self.whole.rows)
        return torch.cat([members(leads(one), self.clip).to(torch.int16) for one in said])

    def _polished(self, net: int, units: Tensor, votes: Tensor) -> Tensor:
        whole = self.whole
        wanted = whole.wanted[:, net, 0].numpy()
        found = polished(
            whole.rows.numpy(), units.numpy(), votes.numpy(), wanted, whole.weight.numpy()
        )
        return torch.from_numpy(found)


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
