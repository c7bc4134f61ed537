"""What exports read of a model, as plain arrays: nothing of how it was trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitrail.data.bits import BitColumns
from vitrail.data.encoders import TableEncoder
from vitrail.nn import Program


class ExportError(ValueError):
    """A model cannot be exported as asked; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Source:
    """K networks of N nets each, with what rows and classes mean to them."""

    encoder: TableEncoder | BitColumns
    classes: tuple[Any, ...]
    value_low: int  # what a zero bit of the encoder stands for: −1 or 0
    bias: int  # constant inputs of +1 after the encoder's bits
    program: Program  # of one net
    pairs: bool  # a net for each pair of classes; otherwise one net
    networks: np.ndarray = field(repr=False)  # (K, N, A) bool
    votes: np.ndarray = field(repr=False)  # (K, N) int64 > 0
    clip: int
    tables: np.ndarray = field(repr=False)  # (N, 257) int64, from 0 to 65535
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def num_bits(self) -> int:
        """Bits that the encoder makes of a row."""
        return len(self.encoder.bit_names)

    @property
    def num_classes(self) -> int:
        return len(self.classes)
