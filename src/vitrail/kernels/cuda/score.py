"""Scores of perceptrons at configurations on the GPU: one program per factor and candidate."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cuda.philox import pieces, power_of_two, warps_of
from vitrail.scopes import Dense

MAX_SLOTS = 1024  # of a row in registers
MAX_CANDIDATES = 2**16 - 1  # programs along the second axis of a grid


@triton.jit
def _score(
    states, start, inputs, labels, out, arity, num_variables, num_factors,
    LOW: tl.constexpr, SLOTS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    row, candidate = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    bits = states + candidate * num_variables + tl.load(start + row)
    total = tl.zeros([SLOTS], tl.int32)
    for part in range(PARTS):
        slots = part * SLOTS + tl.arange(0, SLOTS)
        x = tl.load(inputs + row * arity + slots, mask=slots < arity, other=0).to(tl.int32)
        bit = tl.load(bits + slots, mask=slots < arity, other=0)
        total += tl.where(bit != 0, x, LOW * x)
    positive = tl.sum(total) > 0
    tl.store(out + candidate * num_factors + row, positive == (tl.load(labels + row) == 1))


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons whose variables are consecutive."""
    return factors.perceptron_low is not None and isinstance(factors.scope, Dense)


def satisfied(factors: Network, states: Tensor) -> Tensor:
    """Whether each factor is satisfied at configurations (C, V) bool: (C, F) bool."""
    assert isinstance(factors.scope, Dense)
    num_factors, arity = factors.num_factors, factors.arity
    out = torch.empty(len(states), num_factors, dtype=torch.bool, device=states.device)
    slots = min(MAX_SLOTS, power_of_two(arity))
    states = states.contiguous()
    for first in range(0, len(states) if num_factors else 0, MAX_CANDIDATES):
        some = states[first : first + MAX_CANDIDATES]
        _score[(num_factors, len(some))](
            some, factors.scope.start, factors.rows, factors.labels, out[first:], arity,
            states.shape[1], num_factors, factors.perceptron_low, slots, pieces(arity, slots),
            num_warps=warps_of(slots),
        )  # fmt: skip
    return out
