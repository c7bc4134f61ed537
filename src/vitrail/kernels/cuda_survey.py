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
EDGES = 16  # of a factor, in one program of surveys


@triton.jit
def _store_sums(survey, inside, units, num_bins, bins, used, shift, out, at):
    """Integer sums of surveys (EDGES, B): what log means and moments are made of.

    units (5, B) int64: tilts to one and zero, which bins are finite in each product, log-odds.
    """
    scaled = survey.to(tl.float64) * 1048576.0
    # adding 2⁵² rounds to the nearest integer, half to even
    mass = ((scaled + 4503599627370496.0) - 4503599627370496.0).to(tl.int64)
    odds = tl.load(units + 4 * num_bins + bins, mask=used, other=0)[None, :]
    tl.store(out + at, tl.sum(mass, 1), mask=inside)
    for value in tl.static_range(2):
        tilt = tl.load(units + value * num_bins + bins, mask=used, other=0)[None, :]
        finite = tl.load(units + (2 + value) * num_bins + bins, mask=used, other=0)[None, :]
        tilted = mass * tilt
        weight = tilted >> shift
        left = weight * finite
        first = left * odds
        place = out + at + 3 + 4 * value
        tl.store(out + at + 1 + value, tl.sum(tilted, 1), mask=inside)
        tl.store(place, tl.sum(weight, 1), mask=inside)
        tl.store(place + 1, tl.sum(left, 1), mask=inside)
        tl.store(place + 2, tl.sum(first, 1), mask=inside)
        tl.store(place + 3, tl.sum(first * odds, 1), mask=inside)


@triton.jit
def _old_sums(
    survey, rows, units, out, arity, num_bins, shift,
    SUMS: tl.constexpr, EDGES: tl.constexpr, BINS: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64)
    edges = tl.program_id(1) * EDGES + tl.arange(0, EDGES)
    bins = tl.arange(0, BINS)
    inside, used = edges < arity, bins < num_bins
    place = (tl.load(rows + i) * arity + edges)[:, None] * num_bins + bins[None, :]
    values = tl.load(survey + place, mask=inside[:, None] & used[None, :], other=0.0)
    at = (i * arity + edges) * SUMS
    _store_sums(values, inside, units, num_bins, bins, used, shift, out, at)


@triton.jit(do_not_specialize=(*ADDRESS, "b0", "b1", "c0", "c1"))
def _pairs(
    chances, centre, spread, quantiles, edges, inputs, labels, ids, pairs, limit, arity,
    step_number, k0, k1, b0, b1, c0, c1,
    TRACKS: tl.constexpr, SAMPLES: tl.constexpr, LOW: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Pair number h_1·(S+1) + h_0 of each track and weight: bytes (f, R, A)."""
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
        tl.store(pairs + (row * TRACKS + track) * arity + slots, pair, mask=used)


@triton.jit
def _mix(
    survey, rows, pairs, bin_of, rank, mass_of, damping, units, sums, change, starved,
    arity, num_bins, shift, TRACKS: tl.constexpr, SUMS: tl.constexpr, EDGES: tl.constexpr,
    BINS: tl.constexpr, KNOWN: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """Tally the tracks of EDGES edges of a factor and mix them into their surveys."""
    i = tl.program_id(0).to(tl.int64)
    edges = tl.program_id(1) * EDGES + tl.arange(0, EDGES)
    inside = edges < arity
    kinds = tl.arange(0, PAIRS)
    tally = tl.zeros([EDGES, PAIRS], tl.int32)
    for track in range(TRACKS):
        at = (i * TRACKS + track) * arity + edges
        pair = tl.load(pairs + at, mask=inside, other=0).to(tl.int32)
        tally += (pair[:, None] == kinds[None, :]).to(tl.int32)
    known = kinds < KNOWN
    ranks = tl.load(rank + kinds, mask=known, other=-1).to(tl.int32)
    most = tl.max(tl.where(tally > 0, ranks[None, :], -1), 1)
    masses = tl.load(
        mass_of + most[:, None].to(tl.int64) * KNOWN + kinds[None, :],
        mask=known[None, :] & (tally > 0), other=0,
    )  # fmt: skip
    mass = tally * masses
    total = tl.sum(mass, 1)
    bins = tl.arange(0, BINS)
    used = bins < num_bins
    fresh = tl.zeros([EDGES, BINS], tl.int64)
    for kind in range(KNOWN):
        mine = tl.sum(tl.where(kinds[None, :] == kind, mass, 0), 1)
        fresh += tl.where(bins[None, :] == tl.load(bin_of + kind).to(tl.int32), mine[:, None], 0)
    place = (tl.load(rows + i) * arity + edges)[:, None] * num_bins + bins[None, :]
    here = inside[:, None] & used[None, :]
    old = tl.load(survey + place, mask=here, other=0.0)
    gamma = tl.load(damping + i)
    share = fresh.to(tl.float64) / tl.maximum(total, 1).to(tl.float64)[:, None]
    new = (1.0 - gamma) * old + gamma * share.to(tl.float32)
    new = tl.where((total > 0)[:, None], new, old)
    tl.store(survey + place, new, mask=here)
    tile = i * tl.num_programs(1) + tl.program_id(1)
    tl.store(change + tile, tl.max(tl.max(tl.where(here, tl.abs(new - old), 0.0), 1), 0))
    tl.store(starved + tile, tl.sum((inside & (total == 0)).to(tl.int32), 0))
    _store_sums(new, inside, units, num_bins, bins, used, shift, sums, (i * arity + edges) * SUMS)


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons that share one beta."""
    few = samples <= MAX_SAMPLES and perceptron_low(factors) is not None
    return few and factors.log_means(samples).shape[0] == 1


class Sheets:
    """The tables of a grid and of the pairs of hits, on the device."""

    def __init__(self, units: Any, bins: Tensor, rank: Tensor, mass: Tensor) -> None:
        self.bins, self.rank, self.mass = bins, rank, mass.contiguous()
        self.units = torch.cat([units.tilt, units.finite, units.log_odds[None]]).contiguous()
        self.shift = units.shift

    @property
    def num_bins(self) -> int:
        return self.units.shape[1]


def sums(survey: Tensor, rows: Tensor, sheets: Sheets) -> Tensor:
    """Integer sums (11, f, A) of the surveys (F, A, B) float32 at rows (f,)."""
    num, arity = len(rows), survey.shape[1]
    out = torch.empty(num, arity, NUM_SUMS, dtype=torch.int64, device=survey.device)
    if num:
        _old_sums[(num, triton.cdiv(arity, EDGES))](
            survey, rows, sheets.units, out, arity, sheets.num_bins, sheets.shift,
            NUM_SUMS, EDGES, triton.next_power_of_2(sheets.num_bins), num_warps=4,
        )  # fmt: skip
    return out.movedim(-1, 0)


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
    out = torch.empty(num, arity, NUM_SUMS, dtype=torch.int64, device=device)
    change = torch.zeros(num, tiles, dtype=torch.float32, device=device)
    starved = torch.zeros(num, tiles, dtype=torch.int64, device=device)
    if num:
        pairs = torch.empty(num, survey_samples, arity, dtype=torch.uint8, device=device)
        _pairs[(num,)](
            chances.contiguous(), centre.contiguous(), spread.contiguous(),
            normal_quantiles(device), threshold_edges(device),
            factors.inputs.flatten(1).contiguous(), factors.labels, factors.ids, pairs,
            double(limit, device), arity, key.step, *key.of(stream).words(),
            *key.of(Stream.BRANCH).words(), *key.of(Stream.CAVITY).words(), survey_samples,
            samples, perceptron_low(factors), blocks_of(arity), num_warps=warps_of(arity),
            enable_fp_fusion=False,
        )  # fmt: skip
        num_pairs = len(sheets.bins)
        _mix[(num, tiles)](
            survey, rows, pairs, sheets.bins, sheets.rank, sheets.mass,
            damping.to(torch.float32), sheets.units, out, change, starved, arity,
            sheets.num_bins, sheets.shift, survey_samples, NUM_SUMS, EDGES,
            triton.next_power_of_2(sheets.num_bins), num_pairs, triton.next_power_of_2(num_pairs),
            num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip
    return out.movedim(-1, 0), change.amax(1).double(), starved.sum(1)
