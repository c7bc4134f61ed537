"""Evaluation of nets with one hidden layer and one output, on LANES words of rows at a time.

The results are those of `Program.evaluate` for 0/1 inputs, ±1 weights and ±1 units: a unit is
active where more than half of a row's ones have weight +1. A column of inputs has one bit per row,
so counting is adding columns: a tree of full adders adds sixteen, and the counts of all rows are
bit planes, as in `chains`. Only weights of +1 are added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import float32, int32, int64, njit, uint8, uint32, uint64
from numpy.typing import NDArray

from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.threads import over_rows
from vitrail.kernels.cpu.wide import LANES, filled, load, store
from vitrail.kernels.cpu.words import WORD, Words

BLOCK = WORD * LANES  # rows
TREE = 16  # columns added by one tree
LOWER = 4  # planes within the tree; its carry is added to the higher ones

_FULL = uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class Rows:
    """Rows of 0/1, packed in blocks of one wide word."""

    columns: Words  # (blocks, I + 1, LANES), the inputs and a column of zeros
    half: Words  # (blocks, digits, LANES), binary digits of half the number of ones of a row
    number: int

    @staticmethod
    def of(inputs: NDArray[np.int8]) -> Rows:
        """Rows (F, I)."""
        number, num_inputs = inputs.shape
        blocks, digits = -(-number // BLOCK), max(LOWER + 1, num_inputs.bit_length())
        columns = np.zeros((blocks, num_inputs + 1, LANES), np.uint64)
        half = np.zeros((blocks, digits, LANES), np.uint64)
        packed_columns, planes = columns.view(np.uint8), half.view(np.uint8)
        given = np.ascontiguousarray(inputs)
        over_rows(
            lambda begin, end: _pack_rows(given, packed_columns, planes, begin, end),
            blocks,
            BLOCK * num_inputs // 8,
        )
        return Rows(columns, half, number)


@dataclass(frozen=True)
class Nets:
    """Networks, as lists of the inputs that each unit counts."""

    index: NDArray[np.int32]  # offsets of the columns of all units, padded to multiples of TREE
    first: NDArray[np.int64]  # (S·U + 1,) where each unit's offsets begin
    votes: NDArray[np.bool_]  # (S, U)

    @staticmethod
    def of(networks: NDArray[np.bool_], num_hidden: int) -> Nets:
        """Networks (S, A)."""
        num = len(networks)
        num_inputs = networks.shape[1] // num_hidden - 1
        given = np.ascontiguousarray(networks)
        first = np.empty(num * num_hidden + 1, np.int64)
        index = _entries(given, num_inputs, first)
        return Nets(index, first, given[:, num_hidden * num_inputs :].copy())


@compiled("void(int8[:, ::1], uint8[:, :, ::1], uint8[:, :, ::1], int64, int64)")
def _pack_rows(inputs, columns, half, begin, end):
    """Pack eight rows into one byte of each column."""
    num_rows, num_inputs = inputs.shape
    byte = np.empty(num_inputs, np.uint8)
    for block in range(begin, end):
        for octet in range(BLOCK // 8):
            row = block * BLOCK + 8 * octet
            if row >= num_rows:
                break
            byte[:] = 0
            for r in range(min(8, num_rows - row) - 1, -1, -1):
                total = int32(0)
                for i in range(num_inputs):
                    byte[i] = uint8((byte[i] << 1) | uint8(inputs[row + r, i]))
                    total += int32(inputs[row + r, i])
                for digit in range(half.shape[1]):
                    half[block, digit, octet] |= uint8(((total >> (digit + 1)) & 1) << r)
            for i in range(num_inputs):
                columns[block, i, octet] = byte[i]


@compiled("int32[::1](boolean[:, ::1], int64, int64[::1])")
def _entries(networks, num_inputs, first):
    num_hidden = (first.shape[0] - 1) // networks.shape[0]
    first[0] = 0
    for unit in range(first.shape[0] - 1):
        begin = (unit % num_hidden) * num_inputs
        count = int32(0)
        for i in range(begin, begin + num_inputs):
            count += int32(networks[unit // num_hidden, i])
        first[unit + 1] = first[unit] + (count + TREE - 1) // TREE * TREE
    index = np.empty(first[-1] + 1, np.int32)  # one spare entry, which the loop below may write to
    for unit in range(first.shape[0] - 1):
        bits = networks[unit // num_hidden]
        begin, at = (unit % num_hidden) * num_inputs, first[unit]
        for i in range(num_inputs):
            index[at] = i * LANES  # overwritten unless the weight is +1, to avoid a branch
            at += int64(bits[begin + i])
        index[at : first[unit + 1]] = num_inputs * LANES
    return index


@njit(inline="always")
def _full(a, b, c):
    """The sum and the carry of three bits in every row."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@njit(forceinline=True)
def _pair(columns, index, at, ones):
    """Add two columns to the ones; returns the ones and the carry to the twos."""
    return _full(load(columns, index[at]), load(columns, index[at + uint64(1)]), ones)


@njit(forceinline=True)
def _four(columns, index, at, ones, twos):
    ones, a = _pair(columns, index, at, ones)
    ones, b = _pair(columns, index, at + uint64(2), ones)
    twos, carry = _full(a, b, twos)
    return ones, twos, carry


@njit(forceinline=True)
def _eight(columns, index, at, ones, twos, fours):
    ones, twos, a = _four(columns, index, at, ones, twos)
    ones, twos, b = _four(columns, index, at + uint64(4), ones, twos)
    fours, carry = _full(a, b, fours)
    return ones, twos, fours, carry


@njit(forceinline=True, error_model="numpy")
def _agreeing(columns, half, index, first, votes, network, planes, agree, value):
    """Count the units of a network that agree with their output weight, into value (BLOCK,).

    columns (I + 1, LANES) and half (digits, LANES) of one block; planes and agree are scratch for
    counts of inputs and of units.
    """
    digits, num_hidden = half.shape[0], votes.shape[1]
    agree[:] = uint64(0)
    for unit in range(num_hidden):
        planes[:] = uint64(0)
        none = filled(uint64(0))
        ones, twos, fours, eights = none, none, none, none
        begin, end = first[network * num_hidden + unit], first[network * num_hidden + unit + 1]
        high = LOWER
        for tree in range(begin, end, TREE):
            at = uint64(tree)  # unsigned: negative indices need no check
            ones, twos, fours, a = _eight(columns, index, at, ones, twos, fours)
            ones, twos, fours, b = _eight(columns, index, at + uint64(8), ones, twos, fours)
            eights, carry = _full(a, b, eights)
            trees = (tree - begin) // TREE + 1
            if (trees >> (high - LOWER)) != 0 and high < digits:
                high += 1  # fewer trees cannot carry further
            for digit in range(LOWER, high):
                plane = load(planes, digit * LANES)
                store(planes, digit * LANES, plane ^ carry)
                carry = plane & carry
        store(planes, 0, ones)
        store(planes, LANES, twos)
        store(planes, 2 * LANES, fours)
        store(planes, 3 * LANES, eights)
        more = none
        for digit in range(digits):
            count, limit = load(planes, digit * LANES), load(half, digit * LANES)
            more = (count & ~limit) | (~(count ^ limit) & more)
        carry = more if votes[network, unit] else ~more
        for digit in range(agree.shape[0] // LANES):
            plane = load(agree, digit * LANES)
            store(agree, digit * LANES, plane ^ carry)
            carry = plane & carry
    value[:] = int32(0)
    half_words = agree.view(np.uint32)  # 32-bit lanes throughout the loop
    for digit in range(agree.shape[0] // LANES):
        for part in range(2 * LANES):
            plane = half_words[digit * 2 * LANES + part]
            for row in range(32):
                bit = (plane >> uint32(row)) & uint32(1)
                value[part * 32 + row] += int32(bit << uint32(digit))


@njit(forceinline=True)
def _scratch(digits, num_hidden):
    """Planes of inputs and of units, and values."""
    high = 1
    while (num_hidden >> high) != 0:
        high += 1
    planes, agree = np.empty(digits * LANES, np.uint64), np.empty(high * LANES, np.uint64)
    return planes, agree, np.empty(BLOCK, np.int32)


@compiled(
    "void(uint64[:, :, ::1], uint64[:, :, ::1], int32[::1], int64[::1], boolean[:, ::1],"
    " float32[:, ::1], int64, int64)"
)
def _outputs(columns, half, index, first, votes, out, begin, end):
    num_hidden = votes.shape[1]
    planes, agree, value = _scratch(half.shape[1], num_hidden)
    for block in range(begin, end):
        start = block * BLOCK
        for network in range(votes.shape[0]):
            _agreeing(
                columns[block], half[block], index, first, votes, network, planes, agree, value
            )
            for row in range(min(BLOCK, out.shape[0] - start)):
                out[start + row, network] = float32(2 * value[row] - num_hidden)


@compiled(
    "void(uint64[:, :, ::1], uint64[:, :, ::1], int32[::1], int64[::1], boolean[:, ::1],"
    " int32[:, ::1], int32, int64[:, ::1], int64[:, ::1], int64, int64)"
)
def _tally(columns, half, index, first, votes, counts, clip, score, high, begin, end):
    num_hidden, (networks, nets) = int32(votes.shape[1]), counts.shape
    planes, agree, value = _scratch(half.shape[1], num_hidden)
    total, over = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    for block in range(begin, end):
        start = block * BLOCK
        for net in range(nets):
            total[:] = int32(0)
            over[:] = int32(0)
            for network in range(networks):
                _agreeing(
                    columns[block], half[block], index, first, votes, network * nets + net,
                    planes, agree, value,
                )  # fmt: skip
                count = counts[network, net]
                for row in range(BLOCK):
                    lead = int32(int32(value[row] << 1) - num_hidden)
                    margin = min(max(int32(int32(lead << 1) - int32(1)), int32(-clip)), clip)
                    total[row] += int32(count * margin)
                    over[row] += count if lead > int32(0) else int32(0)
            for row in range(min(BLOCK, score.shape[0] - start)):
                score[start + row, net] = total[row]
                high[start + row, net] = over[row]


def outputs(inputs: NDArray[np.int8], nets: Nets) -> NDArray[np.float32]:
    """Rows (F, I) of 0/1 and S networks → (F, S)."""
    rows = Rows.of(inputs)
    out = np.empty((rows.number, len(nets.votes)), np.float32)
    given = (rows.columns, rows.half, nets.index, nets.first, nets.votes)
    over_rows(
        lambda begin, end: _outputs(*given, out, begin, end),
        len(rows.columns),
        WORD * len(nets.index),
    )
    return out


def tally(
    inputs: NDArray[np.int8], nets: Nets, votes: NDArray[np.int64], clip: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Scores and votes for class 1, (F, N) each, of networks (K·N, A) with votes (K, N).

    `model.voting.tally` for one output; sums of votes times clip are below 2³¹.
    """
    rows, counts = Rows.of(inputs), np.ascontiguousarray(votes, np.int32)
    score, high = np.empty((2, rows.number, votes.shape[1]), np.int64)
    given = (rows.columns, rows.half, nets.index, nets.first, nets.votes, counts, clip)
    over_rows(
        lambda begin, end: _tally(*given, score, high, begin, end),
        len(rows.columns),
        WORD * len(nets.index),
    )
    return score, high
