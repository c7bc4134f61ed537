"""Philox4x32-10 on the GPU: the same bits as `vitrail.random.philox`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

# arguments that must not be specialised: Triton would compile in the value 1
ADDRESS = ("step_number", "k0", "k1")
_CALLS = 256  # per program
_LOOPS = 64


@triton.jit
def philox(c0, c1, c2, c3, k0, k1):
    """Four uint32 tensors of the counter (c0, c1, c2, c3), uint32 of one shape."""
    for _ in tl.static_range(10):
        p0, p1 = c0.to(tl.uint64) * 0xD2511F53, c2.to(tl.uint64) * 0xCD9E8D57
        c0, c1 = (p1 >> 32).to(tl.uint32) ^ c1 ^ k0, p1.to(tl.uint32)
        c2, c3 = (p0 >> 32).to(tl.uint32) ^ c3 ^ k1, p0.to(tl.uint32)
        k0 += 0x9E3779B9
        k1 += 0xBB67AE85
    return c0, c1, c2, c3


@triton.jit
def lanes16(factor, sample, step, k0, k1, BLOCKS: tl.constexpr):
    """The first 8·BLOCKS 16-bit lanes of a draw, int32 (8·BLOCKS,) in the order of slots."""
    blocks = tl.arange(0, BLOCKS).to(tl.uint32)
    zero = tl.zeros([BLOCKS], tl.uint32)
    w0, w1, w2, w3 = philox(blocks, zero + sample, zero + factor, zero + step, k0, k1)
    low = tl.join(tl.join(w0 & 0xFFFF, w2 & 0xFFFF), tl.join(w1 & 0xFFFF, w3 & 0xFFFF))
    high = tl.join(tl.join(w0 >> 16, w2 >> 16), tl.join(w1 >> 16, w3 >> 16))
    return tl.reshape(tl.join(low, high), [8 * BLOCKS]).to(tl.int32)


@triton.jit
def columns(row, BLOCKS: tl.constexpr):
    """Slots (8·BLOCKS,) as eight tensors (BLOCKS,): slot 8·b + j is at b of the j-th."""
    even, odd = tl.split(tl.reshape(row, [BLOCKS, 4, 2]))
    s04, s26 = tl.split(tl.reshape(even, [BLOCKS, 2, 2]))
    s15, s37 = tl.split(tl.reshape(odd, [BLOCKS, 2, 2]))
    s0, s4 = tl.split(s04)
    s2, s6 = tl.split(s26)
    s1, s5 = tl.split(s15)
    s3, s7 = tl.split(s37)
    return s0, s1, s2, s3, s4, s5, s6, s7


@triton.jit
def in_order(parts, BLOCKS: tl.constexpr):
    """The slots (8·BLOCKS,) of eight parts; the inverse of `columns`."""
    even = tl.join(tl.join(parts[0], parts[4]), tl.join(parts[2], parts[6]))
    odd = tl.join(tl.join(parts[1], parts[5]), tl.join(parts[3], parts[7]))
    return tl.reshape(tl.join(even, odd), [8 * BLOCKS])


@triton.jit
def lane_columns16(factor, sample, step, k0, k1, part, BLOCKS: tl.constexpr):
    """`columns` of the part-th `lanes16` in the upper halves of words; lower halves are arbitrary.

    Such a word is below bound << 16 exactly where its lane is below the bound, so no mask is
    needed, and each lane stays in the thread that made it.
    """
    blocks = (part * BLOCKS + tl.arange(0, BLOCKS)).to(tl.uint32)
    zero = tl.zeros([BLOCKS], tl.uint32)
    w0, w1, w2, w3 = philox(blocks, zero + sample, zero + factor, zero + step, k0, k1)
    return w0 << 16, w0, w1 << 16, w1, w2 << 16, w2, w3 << 16, w3


@triton.jit
def lanes32(factor, sample, step, k0, k1, BLOCKS: tl.constexpr):
    """The first 4·BLOCKS 32-bit lanes of a draw, uint32 (4·BLOCKS,) in the order of slots."""
    blocks = tl.arange(0, BLOCKS).to(tl.uint32)
    zero = tl.zeros([BLOCKS], tl.uint32)
    w0, w1, w2, w3 = philox(blocks, zero + sample, zero + factor, zero + step, k0, k1)
    return tl.reshape(tl.join(tl.join(w0, w2), tl.join(w1, w3)), [4 * BLOCKS])


def power_of_two(size: int) -> int:
    """The least power of two of at least `size`; Triton's own function slows launches down."""
    return 1 << max(0, size - 1).bit_length()


def pieces(total: int, size: int) -> int:
    """The number of pieces of this size that cover the total."""
    return -(-total // size)


def blocks_of(slots: int) -> int:
    """The number of calls that cover the slots, a power of two as Triton requires."""
    return power_of_two(pieces(slots, 8))


def warps_of(slots: int) -> int:
    """Warps per row: one per 256 slots, from 1 to 16."""
    return min(16, max(1, power_of_two(slots) // 256))


@triton.jit
def _discard(sink, CALLS: tl.constexpr, LOOPS: tl.constexpr):
    calls = tl.arange(0, CALLS).to(tl.uint32)
    zero = tl.zeros([CALLS], tl.uint32)
    row = zero + tl.program_id(0).to(tl.uint32)
    total = zero
    for loop in range(LOOPS):
        w0, w1, w2, w3 = philox(calls, zero + loop, row, zero, zero + 1, zero + 2)
        total ^= w0 ^ w1 ^ w2 ^ w3
    tl.store(sink + tl.program_id(0), tl.xor_sum(total).to(tl.int32))


def bare_philox(lanes: int) -> int:
    """Make about `lanes` 16-bit lanes, for timing; returns the exact number."""
    each = 8 * _CALLS * _LOOPS
    programs = max(1, lanes // each)
    sink = torch.empty(programs, dtype=torch.int32, device="cuda")
    _discard[(programs,)](sink, _CALLS, _LOOPS, num_warps=1)
    return programs * each
