"""The outputs of a teacher, a model of many networks, and students that reproduce them.

Every net has committees of its own networks, also one that the other compressors cannot build
(several hidden layers, several outputs, own modules).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from vitrail.model import Model
from vitrail.model.calibration import rising, soft_table
from vitrail.model.model import outputs_of
from vitrail.model.voting import (
    ONE,
    clipped_margins,
    levels,
    net_probabilities,
    raw_margins,
    scores,
)
from vitrail.nn import Program
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import TableEncoder

POOL = 1024  # candidates per net, at most
VOTES = 4  # per member, on average
PASSES = 3  # of search; each reassigns every vote once
SIZES = (2, 4, 8, 16)  # members per net that are tried
SAFE = 1e-9  # avoids division by 0


@dataclass(frozen=True)
class Inputs:
    """Which of the teacher's inputs a student reads, and the encoder that makes them of a row."""

    encoder: TableEncoder | BitColumns
    places: Tensor  # (I',) int64, ascending


class Compressor(Protocol):
    """A method that builds students of several sizes."""

    name: ClassVar[str]

    def sizes(self, most: int) -> list[Any]:
        """The sizes worth trying, ascending, of at most `most` bits."""
        ...

    def largest(self, most: int) -> list[Any]:
        """The sizes worth trying where `most` bits may be used."""
        return self.sizes(most)[-1:]

    def cost(self, size: Any) -> int:
        """Bits of all networks of a student."""
        ...

    def build(self, size: Any) -> Student: ...


@dataclass(frozen=True)
class Student:
    """A small model, and its inputs among those of the teacher."""

    model: Model
    places: Tensor  # (I',) int64

    def answers(self, rows: Tensor) -> Tensor:
        """Class numbers (R,) on rows of all inputs (R, I)."""
        return self.model.answers_of(rows[:, self.places]).numbers


class Teacher:
    """The outputs of a model on rows (R, I) of weight (R,)."""

    def __init__(self, model: Model, rows: Tensor, weight: Tensor) -> None:
        self.model, self.rows, self.weight = model, rows, weight / weight.sum()
        found = []
        for outputs in outputs_of(model.program, model.networks, rows):
            score = scores(raw_margins(outputs), model.votes, model.clip)
            found.append(
                net_probabilities(levels(score, model.votes, model.clip), model.calibration)
            )
        self.probability = torch.cat(found)  # (R, N, O)
        self.target = 2 * self.probability.double() / ONE - 1  # from −1, certainly not, to 1
        self.num_nets = model.networks.shape[1]
        self.inputs = Inputs(model.encoder, torch.arange(model.program.num_inputs))
        self.one_sided = self.inputs  # those that small models need
        if isinstance(model.encoder, TableEncoder):
            encoder, places = model.encoder.one_sided()
            constant = range(len(model.encoder.bit_names), model.program.num_inputs)
            self.one_sided = Inputs(encoder, torch.tensor([*places, *constant]))

    @property
    def plain(self) -> bool:
        """Whether nets read flat rows and have one output each."""
        program = self.model.program
        return len(program.input_shape) == 1 and program.num_outputs == 1

    def margins(self, program: Program, networks: Tensor, clip: int, places: Tensor) -> Tensor:
        """Clipped margins of networks (K, N, A) that read these inputs, (R, K, N, O) int16."""
        outputs = outputs_of(program, networks, self.rows[:, places].contiguous())
        margins = (clipped_margins(raw_margins(one), clip) for one in outputs)
        return torch.cat([one.to(torch.int16) for one in margins])

    def student(
        self,
        program: Program,
        networks: Tensor,
        votes: Tensor,
        clip: int,
        inputs: Inputs | None = None,
        one_curve: bool = False,
    ) -> Student:
        """The student of networks (K, N, A) with votes (K, N), as confident as the teacher.

        inputs: those that it reads; None for all. No labels are needed: calibration is fitted to
        the teacher's probabilities, per net, or with `one_curve` over all nets, where their scores
        have one scale: a higher score then means a higher probability, whatever the net.
        """
        inputs = inputs or self.inputs
        margins = self.margins(program, networks, clip, inputs.places)
        score = (margins.double() * votes[None, :, :, None]).sum(1)
        share = score / (clip * votes.sum(0)[:, None])
        nets = range(self.num_nets)
        if one_curve:
            table = soft_table(share.flatten(1), self.probability.flatten(1), self.weight)
            tables = [rising(table)] * len(nets)
        else:
            tables = [soft_table(share[:, n], self.probability[:, n], self.weight) for n in nets]
        model = replace(
            self.model,
            encoder=inputs.encoder,
            program=program,
            best=networks[0],
            marginals=(networks.double().mean(0) * ONE).round().to(torch.int64),
            networks=networks,
            votes=votes,
            clip=clip,
            calibration=torch.stack(tables),
        )
        return Student(model, inputs.places)


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
