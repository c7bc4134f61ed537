# pyright: reportMissingImports=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportIndexIssue=false, reportArgumentType=false
# (Triton comes with CUDA builds of torch, and its decorator hides the types of kernels.)
"""`counting` on the GPU for factors of any kind: one launch draws, the net scores, one tallies."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Classifiers, Factors
from vitrail.kernels.cuda_draws import MAX_ARITY, configurations
from vitrail.kernels.cuda_philox import warps_of
from vitrail.numerics import chunks
from vitrail.random import Key

MEMORY = 2**30  # bytes of states and of the net's scratch at a time


@triton.jit
def _tally(states, score, count_one, hits_one, arity, SAMPLES: tl.constexpr, SLOTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, SLOTS)
    used = slots < arity
    count = tl.zeros([SLOTS], tl.int32)
    hits = tl.zeros([SLOTS], tl.int32)
    for sample in range(SAMPLES):
        at = (row * SAMPLES + sample) * arity
        bits = tl.load(states + at + slots, mask=used, other=0).to(tl.int32)
        met = tl.load(score + row * SAMPLES + sample).to(tl.int32)
        count += bits
        hits += bits * met
    tl.store(count_one + row * arity + slots, count, mask=used)
    tl.store(hits_one + row * arity + slots, hits, mask=used)


def serves(factors: Factors, samples: int) -> bool:
    """Classifiers of any kind: their scores are 0 or 1."""
    return isinstance(factors, Classifiers) and factors.arity <= MAX_ARITY


def counts(
    key: Key, factors: Factors, threshold: Tensor, samples: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Of S draws a track: those with each weight at one, those that also meet the label, all hits.

    threshold (F, R, A) int32 → two (F, R, A) int32 and one (F, R) int32.
    """
    num_factors, tracks, arity = threshold.shape
    count_one, hits_one = torch.empty_like(threshold), torch.empty_like(threshold)
    hits_all = torch.empty(num_factors, tracks, dtype=torch.int32, device=threshold.device)
    per_factor = tracks * samples * (arity + factors.row_bytes)
    for rows in chunks(num_factors, per_factor, MEMORY):
        whole = rows == slice(0, num_factors)
        index = torch.arange(rows.start, rows.stop, device=threshold.device)
        part = factors if whole else factors.select(index)
        states = configurations(key, part, threshold[rows], samples)
        score = part.score(states)
        _tally[(part.num_factors * tracks,)](
            states, score, count_one[rows], hits_one[rows], arity, samples,
            triton.next_power_of_2(arity), num_warps=warps_of(arity),
        )  # fmt: skip
        hits_all[rows] = score.view(-1, tracks, samples).sum(2, dtype=torch.int32)
    return count_one, hits_one, hits_all
