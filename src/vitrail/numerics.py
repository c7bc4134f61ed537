"""Numbers that several packages share: limits, the message lattice, the memory budget."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

EXACT_LIMIT = 30.0  # log-odds; sigmoid is one in float32 beyond about 17 and exp(-30) is 1e-13
SAMPLED_LIMIT = math.log(999.0)  # p within [0.001, 0.999]: a few draws without hits prove nothing
LATTICE = 2.0**19  # messages are multiples of 1/LATTICE: 30·2¹⁹ < 2²⁴, so float32 holds them
DEFAULT_MEMORY = 256 * 2**20  # bytes of temporary memory per update


def on_lattice(log_odds: Tensor) -> Tensor:
    """Round to multiples of 2⁻¹⁹, float64; for |x| ≤ 30 the result is exact in float32.

    Sums of such numbers are exact in float64 in any order, so incremental beliefs do not drift and
    do not depend on chunks, threads or ranks.
    """
    return (log_odds.to(torch.float64) * LATTICE).round_().div_(LATTICE)


def flags_fit(largest: float, ranks: int) -> bool:
    """Whether sums up to ±`largest` leave enough bits of an int64 for two flags per rank."""
    return largest * LATTICE * (ranks + 1) ** 2 < 2.0**62


def with_flags(sums: Tensor, flags: Tensor, ranks: int) -> Tensor:
    """Sums (V,) on the lattice and flags (2, V) bool as one int64 each, to be added over ranks."""
    units = (sums * LATTICE).round().to(torch.int64)
    return (units * (ranks + 1) + flags[0]) * (ranks + 1) + flags[1]


def split_flags(added: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    """The sums (V,) float64, and whether any rank has set the flags, (2, V) bool."""
    first = added.div(ranks + 1, rounding_mode="floor")
    counts = torch.stack((first, added)).remainder(ranks + 1)
    return first.div(ranks + 1, rounding_mode="floor").double() / LATTICE, counts > 0


def chunks(rows: int, bytes_per_row: int, memory: int) -> Iterator[slice]:
    """Slices of `rows` whose temporary memory is at most `memory` bytes, or single rows."""
    size = max(1, min(rows, memory // max(1, bytes_per_row)))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def bernoulli_entropy(probability: Tensor) -> Tensor:
    """Entropy in bits of P(1) = probability, elementwise."""
    other = 1 - probability
    return -(torch.xlogy(probability, probability) + torch.xlogy(other, other)) / math.log(2.0)
