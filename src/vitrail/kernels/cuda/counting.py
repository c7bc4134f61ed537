"""`counting` on the GPU: one launch draws, the net scores, one launch tallies.

Nets of this package's layers take 32 draws in a word, a launch a layer; any other classifier is
scored by torch from bytes.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Classifiers, Factors
from vitrail.kernels.cuda import network
from vitrail.kernels.cuda.draws import MAX_ARITY, configurations
from vitrail.kernels.cuda.philox import pieces, power_of_two, warps_of
from vitrail.numerics import chunks
from vitrail.random import Key

MEMORY = 2**30  # bytes of states and of the net's scratch at a time
TILE = 32  # rows, and weights, of one program of counts


@triton.jit
def _bits_set(word):
    """Bits set in words of 32, int32."""
    word = word.to(tl.uint32)
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) >> 24).to(tl.int32)


@triton.jit
def _tally_words(
    words, met, count_one, hits_one, hits_all, num_rows, arity, WORDS: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Counts of TILE rows and weights; words are side by side for a weight, counts for a row."""
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
    key: Key, factors: Classifiers, threshold: Tensor, samples: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Of S draws a track: those with each weight at one, those that also meet the label, all hits.

    threshold (F, R, A) int32 → two (F, R, A) int32 and one (F, R) int32.
    """
    threshold = threshold.contiguous()  # and so are the results like it
    num_factors, tracks, arity = threshold.shape
    count_one, hits_one = torch.empty_like(threshold), torch.empty_like(threshold)
    hits_all = torch.empty(num_factors, tracks, dtype=torch.int32, device=threshold.device)
    own = network.layers_of(factors) is not None
    of_track = samples * (arity + factors.row_bytes)
    if own:
        of_track = network.scratch_bytes(factors, samples)
    fill = _from_words if own else _from_bytes
    for rows in chunks(num_factors, tracks * of_track, MEMORY):
        whole = rows == slice(0, num_factors)
        index = torch.arange(rows.start, rows.stop, device=threshold.device)
        part = factors if whole else factors.select(index)
        fill(key, part, threshold[rows], samples, count_one[rows], hits_one[rows], hits_all[rows])
    return count_one, hits_one, hits_all


def _from_words(
    key: Key, factors: Classifiers, threshold: Tensor, samples: int, count_one: Tensor,
    hits_one: Tensor, hits_all: Tensor,
) -> None:  # fmt: skip
    """Fill the three counts of these factors, 32 draws in a word."""
    tracks, arity = threshold.shape[1:]
    words = network.packed(key, factors, threshold, samples)
    met = network.met(factors, words, tracks, samples)
    rows = words.shape[1]
    if rows:
        _tally_words[(pieces(rows, TILE), pieces(arity, TILE))](
            words, met, count_one, hits_one, hits_all, rows, arity, words.shape[2], TILE,
            num_warps=4,
        )  # fmt: skip


def _from_bytes(
    key: Key, factors: Classifiers, threshold: Tensor, samples: int, count_one: Tensor,
    hits_one: Tensor, hits_all: Tensor,
) -> None:  # fmt: skip
    """The same for a net of any modules, a byte for each bit."""
    tracks, arity = threshold.shape[1:]
    states = configurations(key, factors, threshold, samples)
    score = factors.score(states)
    if len(states):
        _tally[(factors.num_factors * tracks,)](
            states, score, count_one, hits_one, arity, samples, power_of_two(arity),
            num_warps=warps_of(arity),
        )  # fmt: skip
    hits_all[:] = score.view(-1, tracks, samples).sum(2, dtype=torch.int32)
