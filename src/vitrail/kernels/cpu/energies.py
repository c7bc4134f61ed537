"""Annealed bit-flip search of small tables of energies, with incremental evaluation.

The index of each factor's configuration is stored, so a proposal looks up two energies per factor
of the flipped variable. Draws are those of `anneal`: a search is a pure function of (seed, step,
problem, chain).

Configurations are then recombined in pairs. The variables in which two of them differ form
components that share no factor, so each component can be taken from the better of the two (after
Houdayer 2001, who exchanges such clusters in two dimensions). Differences from the complement of
the other are used as well, because spins without a field can be inverted together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit, uint32
from numpy.typing import NDArray

from vitrail.kernels.cpu.anneal import accepted
from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import philox
from vitrail.kernels.cpu.threads import over_rows

MIN_GAIN = 1e-9  # larger than rounding errors, so that recombination ends


@dataclass(frozen=True)
class EnergyTables:
    """Tables of factors of any arity, concatenated, and the uses of each variable in them."""

    energies: NDArray[np.float64]  # all tables, flat
    first: NDArray[np.int64]  # (F,) offset of each factor's table
    uses: NDArray[np.int64]  # (N + 1,) offset of each variable's uses
    factor: NDArray[np.int64]  # the factor of each use
    bit: NDArray[np.int64]  # 1 << the variable's position in that factor


@compiled(
    "int64(float64[::1], int64[::1], int64[::1], int64[::1], int64[::1], boolean[::1],"
    " boolean[::1], float64, float64, float64, int64, int64[::1], uint32[::1])",
)
def _chain(
    energies, first, uses, factor, bit, bits, best, lowest, start, end, proposals, address, key,
):  # fmt: skip
    """Run one chain in place: `bits` becomes its last state, `best` its best one.

    It ends early at the energy `lowest`; returns the number of proposals.
    """
    chain, problem, step = uint32(address[0]), uint32(address[1]), uint32(address[2])
    at = first.copy()
    for q in range(bits.shape[0]):
        if bits[q]:
            for use in range(uses[q], uses[q + 1]):
                at[factor[use]] += bit[use]
    energy = 0.0
    for f in range(at.shape[0]):
        energy += energies[at[f]]
    best_energy = energy
    best[:] = bits
    temperature = start
    cooling = (end / start) ** (1.0 / max(1, proposals - 1))
    which, coin, next_which, next_coin = uint32(0), uint32(0), uint32(0), uint32(0)
    for proposal in range(proposals):
        if best_energy <= lowest:
            return proposal
        if proposal % 2 == 0:
            which, coin, next_which, next_coin = philox(
                uint32(proposal // 2), chain, problem, step, key[0], key[1]
            )
        else:
            which, coin = next_which, next_coin
        q = (np.int64(which) * bits.shape[0]) >> 32
        sign = -1 if bits[q] else 1
        after = energy
        for use in range(uses[q], uses[q + 1]):
            now = at[factor[use]]
            after += energies[now + sign * bit[use]] - energies[now]
        if accepted(energy, after, temperature, coin):
            for use in range(uses[q], uses[q + 1]):
                at[factor[use]] += sign * bit[use]
            energy = after
            bits[q] = not bits[q]
            if energy < best_energy:
                best_energy = energy
                best[:] = bits
        temperature *= cooling
    return proposals


@njit
def _root(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@compiled("int64(float64[::1], int64[::1], int64[::1], int64[::1], int64[::1], boolean[:, ::1])")
def _recombine(energies, first, uses, factor, bit, states):
    """Copy components between states until none lowers the energy; returns how many changed."""
    num_states, num = states.shape
    parent, gain = np.empty(num, np.int64), np.empty(num, np.float64)
    head = np.empty(first.shape[0], np.int64)
    here, there = np.empty(first.shape[0], np.int64), np.empty(first.shape[0], np.int64)
    taken, seen_last = 0, -1
    while taken != seen_last:
        seen_last = taken
        for pair in range(num_states * num_states * 2):
            a, b, turned = pair // 2 // num_states, pair // 2 % num_states, pair % 2 == 1
            if a == b:
                continue
            head[:] = -1
            here[:] = first
            there[:] = first
            for v in range(num):
                parent[v] = v
                gain[v] = 0.0
                differs = (states[a, v] != states[b, v]) != turned
                for use in range(uses[v], uses[v + 1]):
                    f = factor[use]
                    here[f] += bit[use] * states[a, v]
                    there[f] += bit[use] * (states[a, v] != differs)
                    if differs:
                        if head[f] < 0:
                            head[f] = v
                        else:
                            parent[_root(parent, v)] = _root(parent, head[f])
            for f in range(first.shape[0]):
                if head[f] >= 0:
                    gain[_root(parent, head[f])] += energies[there[f]] - energies[here[f]]
            for v in range(num):
                differs = (states[a, v] != states[b, v]) != turned
                if differs and gain[_root(parent, v)] < -MIN_GAIN:
                    states[a, v] = not states[a, v]
                    taken += 1
    return taken


def anneal_energies(
    tables: EnergyTables,
    starts: NDArray[np.bool_],
    proposals: int,
    temperatures: tuple[float, float],
    lowest: float,
    key: tuple[int, int],
    address: tuple[int, int],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], int]:
    """The best and the last state from each row of `starts` (R, N), and the number of proposals.

    lowest: energy at which a chain ends. address: (step, problem).
    """
    last = np.array(starts, np.bool_, order="C")
    best, words = last.copy(), np.array(key, np.uint32)
    made = np.zeros(len(last), np.int64)
    step, problem = address

    def search(begin: int, end: int) -> None:
        for chain in range(begin, end):
            made[chain] = _chain(
                tables.energies,
                tables.first,
                tables.uses,
                tables.factor,
                tables.bit,
                last[chain],
                best[chain],
                lowest,
                *temperatures,
                proposals,
                np.array([chain, problem, step], np.int64),
                words,
            )

    over_rows(search, len(last), 8 * proposals)
    flat = tables.energies, tables.first, tables.uses, tables.factor, tables.bit
    pool = np.concatenate([best, last])
    _recombine(*flat, pool)
    return pool[: len(best)], last, int(made.sum())
