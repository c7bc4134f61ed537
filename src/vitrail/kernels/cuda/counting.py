"""`counting` on the GPU, 32 draws per word: one launch draws, one per layer scores, one counts."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cuda import network
from vitrail.kernels.cuda.philox import pieces
from vitrail.random import Key

MAX_ARITY = 2**14
MEMORY = 2**30  # bytes of states and of the net's scratch
TILE = 32  # rows and weights per program


@triton.jit
def _bits_set(word):
    """The number of bits set in 32-bit words, int32."""
    word = word.to(tl.uint32)
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) >> 24).to(tl.int32)


@triton.jit
def _tally(
    words, met, count_one, hits_one, hits_all, num_rows, arity, WORDS: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Counts of TILE rows and weights; words are contiguous per weight, counts per row."""
    row = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    slot = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)
    there = row < num_rows
    used = there[:, None] & (slot < arity)[None, :]
    count = tl.zeros([TILE, TILE], tl.int32)
    hits = tl.zeros([TILE, TILE], tl.int32)
    total = tl.zeros([TILE], tl.int32)
    for word in range(WORDS):
        column = row * WORDS + word
        place = slot[None, :] * (num_rows * WORDS) + column[:, None]
        bits = tl.load(words + place, mask=used, other=0)
        good = tl.load(met + column, mask=there, other=0)
        count += _bits_set(bits)
        hits += _bits_set(bits & good[:, None])
        total += _bits_set(good)
    place = row[:, None] * arity + slot[None, :]
    tl.store(count_one + place, count, mask=used)
    tl.store(hits_one + place, hits, mask=used)
    if tl.program_id(1) == 0:
        tl.store(hits_all + row, total, mask=there)


def serves(factors: Factors, samples: int) -> bool:
    """Nets of this package's layers."""
    return factors.arity <= MAX_ARITY and network.layers_of(factors) is not None


def counts(
    key: Key, factors: Network, threshold: Tensor, samples: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Counts of S draws per track: with each weight at one, hits among these, and all hits.

    threshold (F, R, A) int32 → two (F, R, A) int32 and one (F, R) int32.
    """
    threshold = threshold.contiguous()  # and so are results made by empty_like
    num_factors, tracks, arity = threshold.shape
    count_one, hits_one = torch.empty_like(threshold), torch.empty_like(threshold)
    hits_all = torch.empty(num_factors, tracks, dtype=torch.int32, device=threshold.device)
    of_track = network.scratch_bytes(factors, samples)
    for rows, part in factors.chunks(tracks * of_track, MEMORY):
        words = network.packed(key, part, threshold[rows], samples)
        met = network.met(part, words, tracks, samples)
        num_rows = words.shape[1]
        _tally[(pieces(num_rows, TILE), pieces(arity, TILE))](
            words, met, count_one[rows], hits_one[rows], hits_all[rows], num_rows, arity,
            words.shape[2], TILE, num_warps=4,
        )  # fmt: skip
    return count_one, hits_one, hits_all
