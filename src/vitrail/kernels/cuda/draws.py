"""Configurations drawn on the GPU in one launch, for factors of any kind."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Factors
from vitrail.kernels.cuda.philox import ADDRESS, blocks_of, lanes16, warps_of
from vitrail.random import Key

MAX_ARITY = 2**14


@triton.jit(do_not_specialize=ADDRESS)
def _draw(
    threshold, ids, states, arity, tracks, step_number, k0, k1,
    SAMPLES: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, 8 * BLOCKS)
    used = slots < arity
    bounds = tl.load(threshold + row * arity + slots, mask=used, other=0)
    factor = tl.load(ids + row // tracks).to(tl.uint32)
    first = (row % tracks).to(tl.int32) * SAMPLES
    for sample in range(SAMPLES):
        lanes = lanes16(
            factor, first + sample, step_number.to(tl.uint32), k0.to(tl.uint32),
            k1.to(tl.uint32), BLOCKS,
        )  # fmt: skip
        tl.store(states + (row * SAMPLES + sample) * arity + slots, lanes < bounds, mask=used)


def serves(factors: Factors, samples: int) -> bool:
    """Factors of any kind with at most 2¹⁴ weights."""
    return factors.arity <= MAX_ARITY


def configurations(key: Key, factors: Factors, threshold: Tensor, samples: int) -> Tensor:
    """S configurations for each track of cavities: (F, R·S, A) bool; threshold (F, R, A) int32."""
    num_factors, tracks, arity = threshold.shape
    shape = (num_factors, tracks * samples, arity)
    states = torch.empty(shape, dtype=torch.bool, device=threshold.device)
    if states.numel():
        _draw[(num_factors * tracks,)](
            threshold.contiguous(), factors.ids, states, arity, tracks, key.step,
            *key.words(), samples, blocks_of(arity), num_warps=warps_of(arity),
        )  # fmt: skip
    return states
