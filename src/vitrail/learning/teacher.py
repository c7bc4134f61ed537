"""The outputs of a teacher, a model of many networks, and students that reproduce them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from vitrail.model import Model
from vitrail.model.calibration import rising, soft_table
from vitrail.model.model import outputs_of
from vitrail.model.voting import ONE, clipped_margins, leads, levels, net_probabilities, scores
from vitrail.nn import Program
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import TableEncoder


@dataclass(frozen=True)
class View:
    """Which of the teacher's inputs a student reads, and the encoder that makes them of a row."""

    encoder: TableEncoder | BitColumns
    kept: Tensor  # (I',) int64, ascending

    @staticmethod
    def full(model: Model) -> View:
        return View(model.encoder, torch.arange(model.program.num_inputs))

    @staticmethod
    def of(model: Model, encoder: TableEncoder | BitColumns, bits: Sequence[int]) -> View:
        """The bits of an encoder and the constant inputs."""
        constant = range(len(model.encoder.bit_names), model.program.num_inputs)
        return View(encoder, torch.tensor([*bits, *constant]))

    @staticmethod
    def all(model: Model, cuts: int) -> list[View]:
        """All inputs; and at most `cuts` thresholds per column of numbers, where some have more."""
        views = [View.full(model)]
        if isinstance(model.encoder, TableEncoder) and model.program.packable:
            encoder, kept = model.encoder.coarser(cuts)
            if len(kept) < len(model.encoder.bit_names):
                views.append(View.of(model, encoder, kept))
        return views

    @property
    def constant(self) -> int:
        """The number of constant inputs, which come last."""
        return len(self.kept) - len(self.encoder.bit_names)


@dataclass(frozen=True)
class Student:
    """A small model and the inputs it reads."""

    model: Model
    view: View


class Compressor(Protocol):
    """A method that builds students of several sizes."""

    @property
    def name(self) -> str: ...

    def sizes(self, most: int) -> list[Any]:
        """The sizes worth trying, ascending, of at most `most` bits."""
        ...

    def largest(self, most: int) -> list[Any]:
        """The sizes worth trying where `most` bits may be used."""
        ...

    def cost(self, size: Any) -> int:
        """Bits of all networks of a student."""
        ...

    def build(self, size: Any) -> Student: ...


class Teacher:
    """The outputs of a model on rows (R, I) of weight (R,), restricted to a view of the inputs."""

    def __init__(self, model: Model, rows: Tensor, weight: Tensor) -> None:
        self.model, self._rows, self.weight = model, rows, weight / weight.sum()
        found = []
        for outputs in outputs_of(model.program, model.networks, rows):
            score = scores(leads(outputs), model.votes, model.clip)
            found.append(
                net_probabilities(levels(score, model.votes, model.clip), model.calibration)
            )
        self.probability = torch.cat(found)  # (R, N, O)
        self.target = 2 * self.probability.double() / ONE - 1  # from −1, certainly not, to 1
        self.view = View.full(model)

    def through(self, view: View) -> Teacher:
        """The same outputs, for students that read these inputs."""
        other = copy(self)
        other.__dict__.pop("rows", None)  # cached for the other view
        other.view = view
        return other

    @cached_property
    def rows(self) -> Tensor:
        """The inputs of students, (R, I')."""
        return self._rows[:, self.view.kept].contiguous()

    @property
    def plain(self) -> bool:
        """Whether nets read flat rows and have one output each."""
        program = self.model.program
        return len(program.input_shape) == 1 and program.num_outputs == 1

    @property
    def num_inputs(self) -> int:
        """The number of inputs of a student."""
        return len(self.view.kept)

    def margins(self, program: Program, networks: Tensor, clip: int) -> Tensor:
        """Clipped margins of networks (K, N, A), (R, K, N, O) int16."""
        outputs = outputs_of(program, networks, self.rows)
        return torch.cat([clipped_margins(leads(one), clip).to(torch.int16) for one in outputs])

    def student(
        self,
        program: Program,
        networks: Tensor,
        votes: Tensor,
        clip: int,
        one_curve: bool = False,
    ) -> Student:
        """The student of networks (K, N, A) with votes (K, N), as confident as the teacher.

        No labels are needed: calibration is fitted to the teacher's probabilities, per net, or with
        `one_curve` over all nets, where their scores have one scale: a higher score then means a
        higher probability, whatever the net.
        """
        score = (self.margins(program, networks, clip).double() * votes[None, :, :, None]).sum(1)
        share = score / (clip * votes.sum(0)[:, None])
        nets = range(networks.shape[1])
        if one_curve:
            table = soft_table(share.flatten(1), self.probability.flatten(1), self.weight)
            tables = [rising(table)] * len(nets)
        else:
            tables = [soft_table(share[:, n], self.probability[:, n], self.weight) for n in nets]
        model = replace(
            self.model,
            encoder=self.view.encoder,
            program=program,
            best=networks[0],
            marginals=(networks.double().mean(0) * ONE).round().to(torch.int64),
            networks=networks,
            votes=votes,
            clip=clip,
            calibration=torch.stack(tables),
        )
        return Student(model, self.view)

    def units(self) -> Tensor | None:
        """The hidden units of all networks, as nets of their own on the inputs of students.

        (K·H, N, I' + 1); None where units cannot be separated. The weight of an input that is not
        read is added to that of the nearest input that is: the sign of the sum is kept.
        """
        program = self.model.program
        if not program.packable:
            return None
        count, nets, _ = self.model.networks.shape
        (hidden,), size = program.hidden or (0,), program.num_inputs
        inner, outer = self.model.networks.split([hidden * size, hidden], -1)
        weights = inner.reshape(count, nets, hidden, size)
        if self.num_inputs < size:
            kept = self.view.kept
            nearest = (torch.arange(size)[:, None] - kept).abs().argmin(1)
            sums = torch.zeros(*weights.shape[:-1], len(kept), dtype=torch.int32)
            sums.index_add_(-1, nearest, 2 * weights.to(torch.int32) - 1)
            weights = torch.where(sums == 0, weights[..., kept], sums > 0)
        units = torch.cat([weights, outer[..., None]], -1)
        return units.transpose(1, 2).reshape(count * hidden, nets, -1)
