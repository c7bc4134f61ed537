"""Annealed bit-flip search of small tables of energies, with incremental evaluation.

Each factor keeps the number of its configuration, so a proposal looks up two energies for each
factor of the flipped variable. Draws are those of `anneal`: a search is a pure function of
(seed, step, problem, chain).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import uint32
from numpy.typing import NDArray

from vitrail.kernels.cpu.anneal import accepted
from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import philox
from vitrail.kernels.cpu.threads import over_rows


@dataclass(frozen=True)
class EnergyTables:
    """Factors of any arity one after another, and the places of each variable in them."""

    energies: NDArray[np.float64]  # all tables, flat
    first: NDArray[np.int64]  # (F,) where the table of a factor begins
    uses: NDArray[np.int64]  # (N + 1,) where the places of a variable begin
    factor: NDArray[np.int64]  # of each place, the factor
    bit: NDArray[np.int64]  # of each place, 1 << its number in the factor


@compiled(
    "int64(float64[::1], int64[::1], int64[::1], int64[::1], int64[::1], boolean[::1],"
    " boolean[::1], float64, float64, float64, int64, int64[::1], int64[::1], uint32[::1])",
)
def _chain(
    energies, first, uses, factor, bit, bits, best, lowest, start, end, proposals, free, address,
    key,
):  # fmt: skip
    """One chain in place: bits end at its last state, `best` at its best one.

    It ends early at the energy `lowest`; returns how many proposals it made.
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
        q = free[(np.int64(which) * free.shape[0]) >> 32]
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


def anneal_energies(
    tables: EnergyTables,
    starts: NDArray[np.bool_],
    proposals: int,
    temperatures: tuple[float, float],
    lowest: float,
    key: tuple[int, int],
    address: tuple[int, int],
    free: NDArray[np.int64],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], int]:
    """The best and the last state from each row of `starts` (R, N), and proposals in all.

    lowest: energy at which a chain ends. address: step and problem. free: what may flip.
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
                free,
                np.array([chain, problem, step], np.int64),
                words,
            )

    over_rows(search, len(last), 8 * proposals)
    return best, last, int(made.sum())
