"""Nets of the shapes that rows and classes ask for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from torch import nn

from vitrail.nn import Flatten, Program, mlp, program_of
from vitrail.nn.nodes import MAX_SIZE


def multilayer(shape: tuple[int, ...], hidden: Iterable[int], outputs: int) -> Program:
    """A net of fully connected layers that reads examples of a shape."""
    inputs, hidden = math.prod(shape), tuple(hidden)
    most = max(1, MAX_SIZE // inputs)
    for units in hidden:
        if units > most:
            raise ValueError(
                f"a hidden layer of {units} units on {inputs} inputs has too many "
                f"weights; take at most {most} units"
            )
    module = mlp(inputs, hidden, outputs)
    return program_of(module if len(shape) == 1 else nn.Sequential(Flatten(), *module), shape)


def of_module(module: Any, shape: tuple[int, ...], outputs: int) -> Program:
    """A net that the user gave."""
    program = program_of(module, shape)
    if program.num_outputs != outputs:
        raise ValueError(
            f"the module has {program.num_outputs} outputs, expected {outputs} for "
            "these classes; change its last layer or the setting of multiclass"
        )
    return program
