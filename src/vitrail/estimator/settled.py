"""What the first training of a classifier settles, and the rules for what is left to it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from sklearn.utils.validation import check_random_state
from torch import nn

from vitrail.data.bits import BitColumns
from vitrail.data.dataset import Coding
from vitrail.data.encoders import TableEncoder
from vitrail.data.labels import LabelCoder
from vitrail.model import Shape
from vitrail.nn import Program, program_of
from vitrail.settings import AUTO, Plan

GPU_MESSAGES = 5_000_000  # below, a few cores are done before a GPU has started


@dataclass(frozen=True)
class Front:
    """What the first training fixes: how rows and labels become bits and numbers."""

    encoder: TableEncoder | BitColumns
    coder: LabelCoder
    coding: Coding
    bias: int
    pairs: bool
    seed: int

    @property
    def num_classes(self) -> int:
        return len(self.coder.classes)

    @property
    def num_inputs(self) -> int:
        return len(self.encoder.bit_names) + self.bias

    @property
    def num_outputs(self) -> int:
        return 1 if self.pairs or self.num_classes == 2 else self.num_classes


@dataclass(frozen=True)
class Net:
    """What the first training fixes: the net and how it is trained."""

    shape: Shape
    program: Program
    plan: Plan
    device: str
    interrupted: bool  # Ctrl-C came while the net was being chosen


def shape_of(module: nn.Module, num_inputs: int, num_outputs: int) -> tuple[Shape, Program]:
    """A net of the user's own and its shape, if it has the outputs it must have."""
    program = program_of(module, (num_inputs,))
    if program.num_outputs != num_outputs:
        raise ValueError(
            f"the module has {program.num_outputs} outputs, expected {num_outputs} for these "
            "classes; change its last layer or the setting of multiclass"
        )
    return Shape(num_inputs, None, num_outputs, program.num_bits), program


def unless_auto(value: Any, usual: Any) -> Any:
    """What the user chose, or what is usual."""
    return usual if isinstance(value, str) and value == AUTO else value


def seed_of(random_state: Any) -> int:
    """A number as it is; any other random state is asked for one."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def device_for(name: str, num_factors: int, num_weights: int) -> str:
    """The device asked for; "auto" is a GPU where there is one and enough messages to fill it."""
    if name == AUTO:
        large = num_factors * num_weights >= GPU_MESSAGES
        return "cuda" if large and torch.cuda.is_available() else "cpu"
    if name != "cpu" and not (name.startswith("cuda") and torch.cuda.is_available()):
        raise ValueError(f"device {name!r} is not here; choose 'cpu', 'auto', or 'cuda' with a GPU")
    return name
