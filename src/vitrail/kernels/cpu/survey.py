"""S4P on the CPU: one pass over each factor, which replaces its surveys in place.

A step with gaussian cavities and flips of perceptrons. Tracks are counted by their pair of hits
(h_1, h_0), of which there are (S+1)², and tables give the bin and the mass of each pair, so that
only integers lie between a draw and the histogram. Nothing of size F·A·survey_samples is stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit, uint32
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.flip import MAX_FAN_IN, network_arrays
from vitrail.kernels.cpu.perceptron import flips, signed_inputs
from vitrail.kernels.cpu.philox import draw_address, fill, tile
from vitrail.kernels.cpu.rows import buffers, find_thresholds
from vitrail.kernels.cpu.threads import over_rows
from vitrail.kernels.dispatch import GaussianCavities
from vitrail.random import Key, Stream, normal_quantiles, threshold_edges

MAX_SAMPLES = 15  # counts of (S+1)² pairs per edge
NUM_SUMS = 11  # integer sums of a survey: mass, tilted masses, and four for each product


@njit(inline="always")
def _sums(survey, tilt, odds, shift, out):
    """Integer sums of a survey (B,) float32, from which log means and moments are computed.

    No bin is certain here, so the sum of weights is also that of the weights of uncertain bins.
    """
    mass, one, zero = np.int64(0), np.int64(0), np.int64(0)
    w1, a1, q1 = np.int64(0), np.int64(0), np.int64(0)
    w0, a0, q0 = np.int64(0), np.int64(0), np.int64(0)
    for b in range(survey.shape[0]):
        m = np.int64(np.rint(np.float64(survey[b]) * 1048576.0))
        tilted_one, tilted_zero = m * tilt[0, b], m * tilt[1, b]
        mass += m
        one += tilted_one
        zero += tilted_zero
        weight = tilted_one >> shift
        w1 += weight
        weight *= odds[b]
        a1 += weight
        q1 += weight * odds[b]
        weight = tilted_zero >> shift
        w0 += weight
        weight *= odds[b]
        a0 += weight
        q0 += weight * odds[b]
    out[0], out[1], out[2] = mass, one, zero
    out[3], out[4], out[5], out[6] = w1, w1, a1, q1
    out[7], out[8], out[9], out[10] = w0, w0, a0, q0


@compiled(
    "void(int64, int64, float32[:, :, ::1], int64[::1], int64[:, ::1], int64[::1], int64,"
    " int64[:, :, ::1])"
)
def _all_sums(begin, end, survey, rows, tilt, odds, shift, out):
    for i in range(begin, end):
        for a in range(survey.shape[1]):
            _sums(survey[rows[i], a], tilt, odds, shift, out[i, a])


@njit(inline="always")
def _mixed(survey, old, tally, common, bin_of, rank, mass_of, keep, gamma, fresh):
    """Mix counts of pairs into a survey (B,); returns its largest change, −1 without mass."""
    most = np.int64(-1)
    for p in range(rank.shape[0]):
        if tally[p] + common[p] > 0 and rank[p] > most:
            most = rank[p]
    total = np.int64(0)
    for p in range(rank.shape[0]):
        count = np.int64(tally[p]) + np.int64(common[p])
        if count > 0:
            mass = count * mass_of[most, p]
            fresh[bin_of[p]] += mass
            total += mass
    if total == 0:
        return np.float32(-1.0)
    for b in range(survey.shape[0]):
        old[b] = survey[b]
        survey[b] = keep * survey[b]
    # only few bins get new mass
    for p in range(rank.shape[0]):
        b = bin_of[p]
        if fresh[b] != 0:
            survey[b] = survey[b] + gamma * np.float32(np.float64(fresh[b]) / np.float64(total))
            fresh[b] = 0
    change = np.float32(0.0)
    for b in range(survey.shape[0]):
        moved = abs(survey[b] - old[b])
        change = moved if moved > change else change
    return change


@njit(inline="always")
def _cavities(branch, noise, branch_threshold, centre, spread, quantiles, limit, cavity):
    """A track of cavities: one lane chooses the product, another gives the normal draw."""
    for a in range(cavity.shape[0]):
        z = quantiles[noise[a] >> uint32(16)]
        one = centre[0, a] + z * spread[0, a]
        zero = centre[1, a] + z * spread[1, a]
        x = one if np.int64(branch[a]) < branch_threshold[a] else zero
        x = x if x > -limit else -limit
        cavity[a] = x if x < limit else limit


@compiled(
    "void(int64, int64, float32[:, :, ::1], int64[::1], int64[:, ::1], float64[:, :, ::1],"
    " float64[:, :, ::1], float32[::1], float64, float64[::1], float64[::1],"
    " int64[::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64,"
    " int8[:, ::1], int64[::1], int64[::1], int64, int64, int64,"
    " int64, uint32[::1], uint32[::1], uint32, uint32, uint32,"
    " uint32[::1], uint32[::1], uint32[:, ::1], int64[:, :, ::1], float32[::1], int64[::1])"
)
def _update(
    begin, end, survey, rows, branch_threshold, centre, spread, gammas, limit, edges, quantiles,
    bin_of, rank, mass_of, tilt, odds, shift,
    inputs, labels, ids, low, samples, tracks,
    together, blocks, numbers, number, k0, k1,
    wide_blocks, wide_numbers, wide_keys, sums, change, starved,
):  # fmt: skip
    arity, bins = survey.shape[1], survey.shape[2]
    row = buffers(arity, arity, 0, blocks.shape[0])[:6]
    signed, one_more, zero_more = row[2:5]
    cavity, threshold = np.empty(arity, np.float64), np.empty(arity, np.int32)
    branch = np.empty(4 * wide_blocks.shape[0], np.uint32)
    noise = np.empty(4 * wide_blocks.shape[0], np.uint32)
    tally = np.zeros((arity, rank.shape[0]), np.uint16)
    common = np.zeros(rank.shape[0], np.uint16)
    fresh, old = np.zeros(bins, np.int64), np.empty(bins, np.float32)
    step, hits = np.int32(1 - low), samples + 1
    for i in range(begin, end):
        f = rows[i]
        constant = signed_inputs(inputs[f], labels[f], low, signed)
        factor = uint32(ids[f])
        tally[:] = 0
        common[:] = 0
        for r in range(tracks):
            fill(
                branch, wide_blocks, wide_numbers, r, factor, number,
                wide_keys[0, 0], wide_keys[0, 1],
            )  # fmt: skip
            fill(
                noise, wide_blocks, wide_numbers, r, factor, number,
                wide_keys[1, 0], wide_keys[1, 1],
            )  # fmt: skip
            _cavities(
                branch, noise, branch_threshold[i], centre[i], spread[i], quantiles, limit, cavity
            )
            find_thresholds(cavity, edges, threshold)
            shared, sensitive = flips(
                threshold, row, constant, step, samples, r * samples,
                (together, blocks, numbers), (factor, number, k0, k1),
            )  # fmt: skip
            if not sensitive:
                common[shared * hits + shared] += np.uint16(1)
                continue
            for a in range(arity):
                pair = uint32((shared + one_more[a]) * hits + shared + zero_more[a])
                tally[a, pair] += np.uint16(1)
        gamma = gammas[i]
        keep = np.float32(1.0) - gamma
        largest = np.float32(0.0)
        empty = 0
        for a in range(arity):
            mine = survey[rows[i], a]
            moved = _mixed(mine, old, tally[a], common, bin_of, rank, mass_of, keep, gamma, fresh)
            empty += moved < 0
            largest = max(largest, moved)
            _sums(mine, tilt, odds, shift, sums[i, a])
        change[i] = largest
        starved[i] = empty


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons that share one beta."""
    few = samples <= MAX_SAMPLES and factors.arity <= MAX_FAN_IN
    return few and factors.perceptron_low is not None and factors.log_means(samples).shape[0] == 1


class Tables:
    """Tables of a grid and of pairs of hits, as arrays."""

    def __init__(self, units: Any, bins: Tensor, rank: Tensor, mass: Tensor) -> None:
        self.pairs = bins.numpy(), rank.numpy(), mass.numpy()
        self.units = units.tilt.contiguous().numpy(), units.log_odds.numpy(), units.shift


def sums(survey: Tensor, rows: Tensor, tables: Tables) -> Tensor:
    """Integer sums (11, f, A) of the surveys (F, A, B) float32 at rows (f,).

    Of masses, of masses tilted to one and to zero, and the eight of moments.
    """
    out = torch.empty(len(rows), survey.shape[1], NUM_SUMS, dtype=torch.int64)
    arguments = survey.numpy(), rows.numpy(), *tables.units, out.numpy()
    work = survey[:1].numel()
    over_rows(lambda begin, end: _all_sums(begin, end, *arguments), len(rows), work)
    return out.movedim(-1, 0)


def update(
    key: Key,
    samples: int,
    factors: Network,
    rows: Tensor,
    survey: Tensor,
    cavities: GaussianCavities,
    gamma: Tensor,
    tables: Tables,
) -> tuple[Tensor, Tensor, Tensor]:
    """Update the surveys of the factors at rows (f,) of survey (F, A, B) in place, with `samples`
    draws of the key's stream per message.

    Returns the integer sums (11, f, A) of the new surveys, the largest change of a bin (f,), and
    the number of edges without mass (f,).
    """
    num, arity = cavities.branch_threshold.shape
    out = torch.empty(num, arity, NUM_SUMS, dtype=torch.int64)
    change, starved = torch.empty(num), torch.empty(num, dtype=torch.int64)
    keys = [key.of(Stream.BRANCH).words(), key.of(Stream.CAVITY).words()]
    arguments: tuple[Any, ...] = (
        survey.numpy(),
        rows.numpy(),
        cavities.branch_threshold.contiguous().numpy(),
        cavities.centre.contiguous().numpy(),
        cavities.spread.contiguous().numpy(),
        gamma.to(torch.float32).numpy(),
        cavities.limit,
        threshold_edges(survey.device).numpy(),
        normal_quantiles(survey.device).numpy(),
        *tables.pairs,
        *tables.units,
        *network_arrays(factors),
        factors.perceptron_low,
        samples,
        cavities.tracks,
        *draw_address(key, arity, samples),
        *tile(arity, 1, lanes=4)[1:],
        np.array(keys, np.uint32),
        out.numpy(),
        change.numpy(),
        starved.numpy(),
    )
    work = cavities.tracks * arity * (samples + 8)
    over_rows(lambda begin, end: _update(begin, end, *arguments), num, work)
    return out.movedim(-1, 0), change.double(), starved
