"""One net that learns a teacher's answers, each row weighted by the teacher's confidence.

Chains of the small net (`vitrail.solvers.chains`) minimise the weight of the rows it answers unlike
the teacher. Half of the chains start at random and cool down, the other half start with hidden
units of the teacher's own networks and stay cold. The best of them is the net.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from vitrail.learning.sampling import SWAPS, neighbours
from vitrail.learning.teacher import Compressor, Student, Teacher
from vitrail.nn import Program, mlp, program_of
from vitrail.random import Key
from vitrail.solvers.chains import Chains, Sample, random_starts, warm_up

WIDTHS = (1, 3, 7, 15, 31)  # hidden units that are tried, odd so that they do not tie
WIDEST = 63
CHAINS = 8
SWEEPS, LEAST = 200, 40  # per chain, and at least, where that is too much work
WORK = 150_000_000  # words of 64 rows that chains process
BETA = 3.0  # for a row of mean weight that the teacher is certain of


class Distillation(Compressor):
    """One net per student, of growing width."""

    name: ClassVar[str] = "one net"

    def __init__(self, teacher: Teacher) -> None:
        """For teachers of plain nets that read rows of 0/1, as chains require."""
        model = teacher.model
        self.teacher, self.nets = teacher, teacher.num_nets
        self.inputs = teacher.one_sided
        self.num_inputs = len(self.inputs.places)
        self.partner = neighbours(self.inputs.encoder, model.bias)
        rows = teacher.rows[:, self.inputs.places].contiguous()
        target = teacher.target[..., 0]  # (R, N)
        weight = teacher.weight * len(teacher.rows)
        self.samples = [
            Sample(rows, (target[:, net] > 0).long(), weight * target[:, net].abs())
            for net in range(self.nets)
        ]

    def sizes(self, most: int) -> list[int]:
        """Numbers of hidden units."""
        largest = min(most // self.cost(1), WIDEST)
        largest -= 1 - largest % 2
        return [*(width for width in WIDTHS if width < largest), largest] if largest > 0 else []

    def cost(self, size: int) -> int:
        """Bits of all nets."""
        return size * (self.num_inputs + 1) * self.nets

    def build(self, size: int) -> Student:
        """The best of several nets of `size` hidden units."""
        program = program_of(mlp(self.num_inputs, (size,), 1), (self.num_inputs,))
        key, cold = Key(0), CHAINS // 2
        anywhere = random_starts(key, CHAINS - cold, self.nets, program.num_bits)
        starts = torch.cat([self._teacher_units(program, cold), anywhere])
        running = Chains(
            key,
            self.samples,
            starts,
            partner=self.partner,
            swaps=SWAPS,
            ordered=self.inputs.encoder.ordered,
        )
        for sweeps, warm, until in warm_up([BETA] * CHAINS, self._sweeps(program)):
            stays = [BETA] * cold
            running.advance(sweeps, stays + warm[cold:], stays + until[cold:])
        best = running.wrong.argmin(0)  # (N,)
        found = running.bits[best, torch.arange(self.nets)]
        votes = torch.ones(1, self.nets, dtype=torch.int64)
        return self.teacher.student(program, found[None], votes, 2 * size, self.inputs)

    def _sweeps(self, program: Program) -> int:
        words = -(-len(self.teacher.rows) // 64)
        work = CHAINS * self.nets * program.num_bits * words
        return max(LEAST, min(SWEEPS, WORK // work))

    def _teacher_units(self, program: Program, count: int) -> Tensor:
        """Starts (count, N, A) of hidden units of the teacher's networks, or random ones."""
        model, (width,) = self.teacher.model, program.hidden or (0,)
        if not model.program.packable:
            return random_starts(Key(1), count, self.nets, program.num_bits)
        networks, (hidden,) = len(model.networks), model.program.hidden or (0,)
        read = model.program.num_inputs
        inner, outer = model.networks.split([hidden * read, hidden], -1)
        weights = inner.reshape(networks, self.nets, hidden, read)[..., self.inputs.places]
        units = torch.cat([weights, outer[..., None]], -1).transpose(1, 2).flatten(0, 1)
        first = torch.linspace(0, len(units), count + 1).long()[:-1]
        places = (first[:, None] + torch.arange(width)) % len(units)
        chosen = units[places].transpose(1, 2)  # (count, N, width, I + 1)
        return torch.cat([chosen[..., :-1].flatten(2), chosen[..., -1]], -1)
