# pyright: reportMissingImports=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportIndexIssue=false, reportArgumentType=false
# (Triton comes with CUDA builds of torch, and its decorator hides the types of kernels.)
"""S4P on the GPU in three launches a chunk: sums of old surveys, tracks to pairs, pairs to surveys.

As on the CPU a track is known by its pair of hits (h_1, h_0) of each weight; the pairs of a chunk
of factors are held as bytes, tallied, and turned into bins and masses by tables.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Factors, Network, Perceptron
from vitrail.kernels.cuda_flip import double, flips, perceptron_low
from vitrail.kernels.cuda_philox import ADDRESS, blocks_of, lanes32, warps_of
from vitrail.kernels.cuda_rows import settled
from vitrail.random import Key, Stream, normal_quantiles, threshold_edges

MAX_SAMPLES = 15  # (S+1)² pairs fit a byte
NUM_SUMS = 11  # integer sums of a survey: mass, tilted masses, and four for each product
EDGES = 4  # of a factor, in one program of surveys: a warp each


@triton.jit
def _sums(survey, units, num_bins, bins, used, shift):
    """Integer sums of surveys (EDGES, n) at bins (n,): what log means and moments are made of.

    units (3, B) int32: tilts to one and to zero, log-odds. No bin is a certainty here, so the sum
    of weights is also the sum of those that are not certain.
    """
    scaled = survey.to(tl.float64) * 1048576.0
    # adding 2⁵² rounds to the nearest integer, half to even
    mass = ((scaled + 4503599627370496.0) - 4503599627370496.0).to(tl.int32).to(tl.int64)
    to_one = mass * tl.load(units + bins, mask=used, other=0)[None, :].to(tl.int64)
    to_zero = mass * tl.load(units + num_bins + bins, mask=used, other=0)[None, :].to(tl.int64)
    odds = tl.load(units + 2 * num_bins + bins, mask=used, other=0)[None, :].to(tl.int64)
    # weights and log-odds have less than 32 bits, and products of such numbers are one instruction
    one, zero = (to_one >> shift).to(tl.int32), (to_zero >> shift).to(tl.int32)
    first_one, first_zero = one.to(tl.int64) * odds, zero.to(tl.int64) * odds
    weight_one, weight_zero = tl.sum(one, 1).to(tl.int64), tl.sum(zero, 1).to(tl.int64)
    return (
        tl.sum(mass, 1), tl.sum(to_one, 1), tl.sum(to_zero, 1),
        weight_one, weight_one, tl.sum(first_one, 1), tl.sum(first_one * odds, 1),
        weight_zero, weight_zero, tl.sum(first_zero, 1), tl.sum(first_zero * odds, 1),
    )  # fmt: skip


@triton.jit
def _old_sums(
    survey, rows, units, out, arity, num_bins, shift, apart,
    SUMS: tl.constexpr, EDGES: tl.constexpr, BINS: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64)
    edges = tl.program_id(1) * EDGES + tl.arange(0, EDGES)
    bins = tl.arange(0, BINS)
    inside, used = edges < arity, bins < num_bins
    place = (tl.load(rows + i) * arity + edges)[:, None] * num_bins + bins[None, :]
    values = tl.load(survey + place, mask=inside[:, None] & used[None, :], other=0.0)
    found = _sums(values, units, num_bins, bins, used, shift)
    for number in tl.static_range(SUMS):
        tl.store(out + number * apart + i * arity + edges, found[number], mask=inside)


@triton.jit(do_not_specialize=(*ADDRESS, "b0", "b1", "c0", "c1"))
def _pairs(
    chances, centre, spread, quantiles, edges, inputs, labels, ids, pairs, limit, arity,
    step_number, k0, k1, b0, b1, c0, c1,
    TRACKS: tl.constexpr, SAMPLES: tl.constexpr, LOW: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Pair number h_1·(S+1) + h_0 of each weight and track: bytes (f, A, R)."""
    row = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, 8 * BLOCKS)
    used = slots < arity
    limit = tl.load(limit)
    chance = tl.load(chances + row * arity + slots, mask=used, other=0)
    at = row * 2 * arity + slots
    centre_one = tl.load(centre + at, mask=used, other=0.0)
    centre_zero = tl.load(centre + at + arity, mask=used, other=0.0)
    spread_one = tl.load(spread + at, mask=used, other=0.0)
    spread_zero = tl.load(spread + at + arity, mask=used, other=0.0)
    x = tl.load(inputs + row * arity + slots, mask=used, other=0).to(tl.int32)
    label, factor = tl.load(labels + row), tl.load(ids + row).to(tl.uint32)
    number = step_number.to(tl.uint32)
    for track in range(TRACKS):
        branch = lanes32(factor, track, number, b0.to(tl.uint32), b1.to(tl.uint32), 2 * BLOCKS).to(
            tl.int64
        )
        noise = lanes32(factor, track, number, c0.to(tl.uint32), c1.to(tl.uint32), 2 * BLOCKS)
        z = tl.load(quantiles + (noise >> 16).to(tl.int32))
        one = branch < chance
        mean = tl.where(one, centre_one, centre_zero)
        cavity = mean + z * tl.where(one, spread_one, spread_zero)
        cavity = tl.minimum(tl.maximum(cavity, -limit), limit)
        bounds = tl.where(used, settled(cavity, edges), 0)
        hits_one, hits_zero, _ = flips(
            bounds, x, label, factor, track * SAMPLES, number, k0.to(tl.uint32), k1.to(tl.uint32),
            SAMPLES, LOW, BLOCKS,
        )  # fmt: skip
        pair = (hits_one * (SAMPLES + 1) + hits_zero).to(tl.uint8)
        tl.store(pairs + (row * arity + slots) * TRACKS + track, pair, mask=used)


@triton.jit
def _mix(
    survey, rows, pairs, bin_of, place_of, rank, mass_of, damping, units, sums, change, starved,
    arity, num_bins, shift, apart, TRACKS: tl.constexpr, SUMS: tl.constexpr, EDGES: tl.constexpr,
    BINS: tl.constexpr, KNOWN: tl.constexpr, PAIRS: tl.constexpr, MET: tl.constexpr,
    FRESH: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Tally the tracks of EDGES edges of a factor and mix them into their surveys.

    Only the MET bins that some pair of hits stands for get fresh mass; the others fade.
    """
    i = tl.program_id(0).to(tl.int64)
    edges = tl.program_id(1) * EDGES + tl.arange(0, EDGES)
    inside = edges < arity
    kinds, places, bins = tl.arange(0, PAIRS), tl.arange(0, FRESH), tl.arange(0, BINS)
    tracks = tl.arange(0, SLOTS)
    at = (i * arity + edges)[:, None] * TRACKS + tracks[None, :]
    drawn = inside[:, None] & (tracks < TRACKS)[None, :]
    pair = tl.load(pairs + at, mask=drawn, other=255).to(tl.int32)
    tally = tl.zeros([EDGES, PAIRS], tl.int32)
    for kind in range(KNOWN):
        count = tl.sum((drawn & (pair == kind)).to(tl.int32), 1)
        tally = tl.where(kinds[None, :] == kind, count[:, None], tally)
    known = kinds < KNOWN
    ranks = tl.load(rank + kinds, mask=known, other=-1).to(tl.int32)
    most = tl.max(tl.where(tally > 0, ranks[None, :], -1), 1)
    masses = tl.load(
        mass_of + most[:, None].to(tl.int64) * KNOWN + kinds[None, :],
        mask=known[None, :] & (tally > 0), other=0,
    )  # fmt: skip
    mass = tally * masses
    total = tl.sum(mass, 1)
    fresh = tl.zeros([EDGES, FRESH], tl.int64)
    for kind in range(KNOWN):
        mine = tl.sum(tl.where(kinds[None, :] == kind, mass, 0), 1)
        fresh += tl.where(places[None, :] == tl.load(place_of + kind), mine[:, None], 0)
    share = fresh.to(tl.float64) / tl.maximum(total, 1).to(tl.float64)[:, None]

    row = (tl.load(rows + i) * arity + edges)[:, None] * num_bins
    used, met = bins < num_bins, places < MET
    here, there = inside[:, None] & used[None, :], inside[:, None] & met[None, :]
    fresh_bins = tl.load(bin_of + places, mask=met, other=0).to(tl.int32)
    old = tl.load(survey + row + bins[None, :], mask=here, other=0.0)
    old_met = tl.load(survey + row + fresh_bins[None, :], mask=there, other=0.0)
    gamma = tl.load(damping + i)
    live = (total > 0)[:, None]
    faded = tl.where(live, (1.0 - gamma) * old, old)
    faded_met = tl.where(live, (1.0 - gamma) * old_met, old_met)
    new_met = tl.where(live, faded_met + gamma * share.to(tl.float32), old_met)
    tl.debug_barrier()  # all have read before any writes,
    tl.store(survey + row + bins[None, :], faded, mask=here)
    tl.debug_barrier()  # and what fades is written before what is fresh
    tl.store(survey + row + fresh_bins[None, :], new_met, mask=there)

    tile = i * tl.num_programs(1) + tl.program_id(1)
    of_met = tl.load(units + 3 * num_bins + bins, mask=used, other=1)[None, :]
    fading = tl.where(here & (of_met == 0), tl.abs(faded - old), 0.0)
    moved = tl.where(there, tl.abs(new_met - old_met), 0.0)
    largest = tl.maximum(tl.max(fading, 1), tl.max(moved, 1))
    tl.store(change + tile, tl.max(largest, 0))
    tl.store(starved + tile, tl.sum((inside & (total == 0)).to(tl.int32), 0))
    found = _sums(faded, units, num_bins, bins, used, shift)
    lost = _sums(faded_met, units, num_bins, fresh_bins, met, shift)
    won = _sums(new_met, units, num_bins, fresh_bins, met, shift)
    for number in tl.static_range(SUMS):
        value = found[number] - lost[number] + won[number]
        tl.store(sums + number * apart + i * arity + edges, value, mask=inside)


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons that share one beta."""
    few = samples <= MAX_SAMPLES and perceptron_low(factors) is not None
    return few and factors.log_means(samples).shape[0] == 1


class Sheets:
    """The tables of a grid and of the pairs of hits, on the device."""

    def __init__(self, units: Any, bins: Tensor, rank: Tensor, mass: Tensor) -> None:
        self.num_bins, self.shift = units.tilt.shape[1], units.shift
        self.fresh, places = bins.unique(return_inverse=True)  # bins that some pair stands for
        self.places, self.rank, self.mass = places.to(torch.int32), rank, mass.contiguous()
        met = torch.zeros_like(units.log_odds)
        met[self.fresh] = 1
        rows = [units.tilt, units.log_odds[None], met[None]]
        self.units = torch.cat(rows).to(torch.int32).contiguous()  # (4, B)


def sums(survey: Tensor, rows: Tensor, sheets: Sheets) -> Tensor:
    """Integer sums (11, f, A) of the surveys (F, A, B) float32 at rows (f,)."""
    num, arity = len(rows), survey.shape[1]
    out = torch.empty(NUM_SUMS, num, arity, dtype=torch.int64, device=survey.device)
    if num:
        _old_sums[(num, triton.cdiv(arity, EDGES))](
            survey, rows, sheets.units, out, arity, sheets.num_bins, sheets.shift, num * arity,
            NUM_SUMS, EDGES, triton.next_power_of_2(sheets.num_bins), num_warps=EDGES,
        )  # fmt: skip
    return out


def update(
    key: Key,
    stream: Stream,
    factors: Perceptron | Network,
    survey: Tensor,
    rows: Tensor,
    chances: Tensor,
    centre: Tensor,
    spread: Tensor,
    damping: Tensor,
    limit: float,
    samples: int,
    survey_samples: int,
    sheets: Sheets,
) -> tuple[Tensor, Tensor, Tensor]:
    """New surveys of the factors at rows (f,), in place; see the twin in `cpu_survey`."""
    num, arity = chances.shape
    device, tiles = survey.device, triton.cdiv(arity, EDGES)
    out = torch.empty(NUM_SUMS, num, arity, dtype=torch.int64, device=device)
    change = torch.zeros(num, tiles, dtype=torch.float32, device=device)
    starved = torch.zeros(num, tiles, dtype=torch.int64, device=device)
    if num:
        pairs = torch.empty(num, arity, survey_samples, dtype=torch.uint8, device=device)
        _pairs[(num,)](
            chances.contiguous(), centre.contiguous(), spread.contiguous(),
            normal_quantiles(device), threshold_edges(device),
            factors.inputs.flatten(1).contiguous(), factors.labels, factors.ids, pairs,
            double(limit, device), arity, key.step, *key.of(stream).words(),
            *key.of(Stream.BRANCH).words(), *key.of(Stream.CAVITY).words(), survey_samples,
            samples, perceptron_low(factors), blocks_of(arity), num_warps=warps_of(arity),
            enable_fp_fusion=False,
        )  # fmt: skip
        num_pairs, num_fresh = len(sheets.rank), len(sheets.fresh)
        _mix[(num, tiles)](
            survey, rows, pairs, sheets.fresh, sheets.places, sheets.rank, sheets.mass,
            damping.to(torch.float32), sheets.units, out, change, starved, arity,
            sheets.num_bins, sheets.shift, num * arity, survey_samples, NUM_SUMS, EDGES,
            triton.next_power_of_2(sheets.num_bins), num_pairs, triton.next_power_of_2(num_pairs),
            num_fresh, triton.next_power_of_2(num_fresh), triton.next_power_of_2(survey_samples),
            num_warps=EDGES, enable_fp_fusion=False,
        )  # fmt: skip
    return out, change.amax(1).double(), starved.sum(1)
