"""What a whole model says of rows, and small models that are to say the same."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from vitrail.data.bits import BitColumns
from vitrail.data.encoders import TableEncoder
from vitrail.model import Model, outputs_of
from vitrail.model.calibration import rising, soft_table
from vitrail.model.voting import ONE, chances, leads, levels, members, scores
from vitrail.nn import Program


@dataclass(frozen=True)
class View:
    """Which of its inputs a model's small brother reads, and what makes them of a row."""

    encoder: TableEncoder | BitColumns
    left: Tensor  # (I',) int64, rising

    @staticmethod
    def full(model: Model) -> View:
        return View(model.encoder, torch.arange(model.program.num_inputs))

    @staticmethod
    def of(model: Model, encoder: TableEncoder | BitColumns, bits: Sequence[int]) -> View:
        """What an encoder of these bits and the constant inputs say."""
        constant = range(len(model.encoder.bit_names), model.program.num_inputs)
        return View(encoder, torch.tensor([*bits, *constant]))

    @staticmethod
    def all(model: Model, cuts: int) -> list[View]:
        """All inputs; and where columns of numbers have more than so many cuts, so many of them."""
        views = [View.full(model)]
        if isinstance(model.encoder, TableEncoder) and model.program.packable:
            encoder, left = model.encoder.coarser(cuts)
            if len(left) < len(model.encoder.bit_names):
                views.append(View.of(model, encoder, left))
        return views

    @property
    def constant(self) -> int:
        """How many of the inputs are constant, the last ones."""
        return len(self.left) - len(self.encoder.bit_names)


@dataclass(frozen=True)
class Small:
    """A small model and what it reads."""

    model: Model
    view: View


class Way(Protocol):
    """A way to make small models, of any of several sizes."""

    @property
    def name(self) -> str: ...

    def sizes(self, most: int) -> list[Any]:
        """Those worth trying, rising, of at most so many bits."""
        ...

    def largest(self, most: int) -> list[Any]:
        """Those worth trying where so many bits may be used."""
        ...

    def cost(self, size: Any) -> int:
        """Bits of all its networks."""
        ...

    def made(self, size: Any) -> Small: ...


class Whole:
    """What the whole model says on rows (R, I), which weigh (R,), as seen by a small one."""

    def __init__(self, model: Model, rows: Tensor, weight: Tensor) -> None:
        self.model, self._rows, self.weight = model, rows, weight / weight.sum()
        found = []
        for outputs in outputs_of(model.program, model.networks, rows):
            score = scores(leads(outputs), model.votes, model.clip)
            found.append(chances(levels(score, model.votes, model.clip), model.calibration))
        self.chance = torch.cat(found)  # (R, N, O)
        self.wanted = 2 * self.chance.double() / ONE - 1  # from −1, surely not, to 1
        self.view = View.full(model)

    def through(self, view: View) -> Whole:
        """The same, for small models that read this much of rows."""
        other = copy(self)
        other.__dict__.pop("rows", None)  # those of the view before
        other.view = view
        return other

    @cached_property
    def rows(self) -> Tensor:
        """What small models read, (R, I')."""
        return self._rows[:, self.view.left].contiguous()

    @property
    def plain(self) -> bool:
        """Whether nets read flat rows and have one output each."""
        program = self.model.program
        return len(program.input_shape) == 1 and program.num_outputs == 1

    @property
    def num_inputs(self) -> int:
        """Of a small model."""
        return len(self.view.left)

    def said(self, program: Program, networks: Tensor, clip: int) -> Tensor:
        """Clipped margins of networks (K, N, A), (R, K, N, O) int16."""
        said = outputs_of(program, networks, self.rows)
        return torch.cat([members(leads(one), clip).to(torch.int16) for one in said])

    def small(
        self,
        program: Program,
        networks: Tensor,
        votes: Tensor,
        clip: int,
        one_curve: bool = False,
    ) -> Small:
        """The model of networks (K, N, A) with votes (K, N), as sure of rows as the whole one is.

        No labels are needed: calibration is fitted to the chances that all networks together gave,
        of each net, or where scores of all nets mean the same, of all: the higher score then has
        the higher chance, whatever the nets.
        """
        score = (self.said(program, networks, clip).double() * votes[None, :, :, None]).sum(1)
        share = score / (clip * votes.sum(0)[:, None])
        nets = range(networks.shape[1])
        if one_curve:
            table = soft_table(share.flatten(1), self.chance.flatten(1), self.weight)
            tables = [rising(table)] * len(nets)
        else:
            tables = [soft_table(share[:, n], self.chance[:, n], self.weight) for n in nets]
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
        return Small(model, self.view)

    def units(self) -> Tensor | None:
        """The hidden units of all networks, as nets of their own that read what small ones do.

        (K·H, N, I' + 1); None where units cannot be taken apart. An input that is not read hands
        its weight to the nearest one that is: of several weights the sign of their sum counts.
        """
        program = self.model.program
        if not program.packable:
            return None
        count, nets, _ = self.model.networks.shape
        (hidden,), size = program.hidden or (0,), program.num_inputs
        inner, outer = self.model.networks.split([hidden * size, hidden], -1)
        weights = inner.reshape(count, nets, hidden, size)
        if self.num_inputs < size:
            left = self.view.left
            heirs = (torch.arange(size)[:, None] - left).abs().argmin(1)
            sums = torch.zeros(*weights.shape[:-1], len(left), dtype=torch.int32)
            sums.index_add_(-1, heirs, 2 * weights.to(torch.int32) - 1)
            weights = torch.where(sums == 0, weights[..., left], sums > 0)
        units = torch.cat([weights, outer[..., None]], -1)
        return units.transpose(1, 2).reshape(count * hidden, nets, -1)
