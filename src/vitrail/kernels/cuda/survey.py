"""S4P on the GPU, three launches per chunk: sums of old surveys, pairs of tracks, new surveys.

As on the CPU, a track is represented by its pair of hits (h_1, h_0) of each weight; the pairs of a
chunk of factors are stored as bytes, counted, and converted to bins and masses by tables. A program
for surveys is one warp, so that sums over bins stay within it; counts of several kinds of pairs are
fields of one word, so that one sum over the tracks counts them all.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cuda.flip import double, find_thresholds
from vitrail.kernels.cuda.perceptron import flips
from vitrail.kernels.cuda.philox import ADDRESS, blocks_of, lanes32, pieces, power_of_two, warps_of
from vitrail.kernels.dispatch import GaussianCavities
from vitrail.random import Key, Stream, normal_quantiles, threshold_edges

MAX_SAMPLES = 15  # (S+1)² pairs fit a byte
TRACKS = 128  # counted together, in counters of one byte
NUM_SUMS = 11  # integer sums of a survey: mass, tilted masses, and four for each product
EDGES, WARPS = 2, 1  # edges of a factor, and warps, per program


@triton.jit
def _sums(survey, units, num_bins, bins, used, shift):
    """Integer sums of surveys (EDGES, n) at bins (n,), see `kernels.cpu.survey._sums`.

    units (3, B) int32: tilts to one and to zero, log-odds.
    """
    scaled = survey.to(tl.float64) * 1048576.0
    # adding 2⁵² rounds to the nearest integer, half to even
    mass = ((scaled + 4503599627370496.0) - 4503599627370496.0).to(tl.int32).to(tl.int64)
    to_one = mass * tl.load(units + bins, mask=used, other=0)[None, :].to(tl.int64)
    to_zero = mass * tl.load(units + num_bins + bins, mask=used, other=0)[None, :].to(tl.int64)
    odds = tl.load(units + 2 * num_bins + bins, mask=used, other=0)[None, :].to(tl.int64)
    # weights and log-odds have fewer than 32 bits, and their product is one instruction
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
    survey, rows, units, out, arity, num_bins, shift, stride,
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
        tl.store(out + number * stride + i * arity + edges, found[number], mask=inside)


@triton.jit(do_not_specialize=(*ADDRESS, "b0", "b1", "c0", "c1"))
def _pairs(
    branch_threshold, centre, spread, quantiles, edges, inputs, labels, ids, pairs, limit, arity,
    step_number, k0, k1, b0, b1, c0, c1,
    TRACKS: tl.constexpr, SAMPLES: tl.constexpr, LOW: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Pair number h_1·(S+1) + h_0 of each weight and track: (f, A, ⌈R/4⌉) words of four bytes."""
    row = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, 8 * BLOCKS)
    used = slots < arity
    limit = tl.load(limit)
    threshold = tl.load(branch_threshold + row * arity + slots, mask=used, other=0)
    centre, spread = centre + row * 2 * arity, spread + row * 2 * arity
    x = tl.load(inputs + row * arity + slots, mask=used, other=0).to(tl.int32)
    label, factor = tl.load(labels + row), tl.load(ids + row).to(tl.uint32)
    number = step_number.to(tl.uint32)
    GROUPS: tl.constexpr = (TRACKS + 3) // 4
    for group in range(GROUPS):
        packed = tl.zeros([8 * BLOCKS], tl.uint32)
        for member in range(4):
            track = 4 * group + member
            branch = lanes32(
                factor, track, number, b0.to(tl.uint32), b1.to(tl.uint32), 2 * BLOCKS
            ).to(tl.int64)
            noise = lanes32(factor, track, number, c0.to(tl.uint32), c1.to(tl.uint32), 2 * BLOCKS)
            z = tl.load(quantiles + (noise >> 16).to(tl.int32))
            # read again for each track: in registers both branches would leave fewer programs
            at = slots + tl.where(branch < threshold, 0, arity)
            mean = tl.load(centre + at, mask=used, other=0.0)
            cavity = mean + z * tl.load(spread + at, mask=used, other=0.0)
            cavity = tl.minimum(tl.maximum(cavity, -limit), limit)
            bounds = tl.where(used, find_thresholds(cavity, edges), 0)
            hits_one, hits_zero, _ = flips(
                bounds, x, label, factor, track * SAMPLES, number, k0.to(tl.uint32),
                k1.to(tl.uint32), SAMPLES, LOW, BLOCKS,
            )  # fmt: skip
            pair = (hits_one * (SAMPLES + 1) + hits_zero).to(tl.uint32)
            packed |= pair << (8 * member)
        tl.store(pairs + (row * arity + slots) * GROUPS + group, packed.to(tl.int32), mask=used)


@triton.jit
def _tally(pair, drawn, kind, WORDS: tl.constexpr):
    """Counts of each kind (k,) among up to 255 drawn pairs (EDGES, n): (EDGES, k) int64.

    WORDS sums over the tracks, each with eight counters.
    """
    unit = tl.full([1, 1], 1, tl.int64) << ((pair % 8) * 8).to(tl.int64)
    place = ((kind % 8) * 8).to(tl.int64)[None, :]
    tally = tl.zeros([1, 1], tl.int64)
    for word in tl.static_range(WORDS):
        mine = tl.sum(tl.where(drawn & (pair // 8 == word), unit, 0), 1)
        count = (mine[:, None] >> place) & 255
        tally = tl.where((kind // 8 == word)[None, :], count, tally)
    return tally


@triton.jit
def _mix(
    survey, rows, pairs, bin_of, kind_of, rank, mass_of, gammas, units, sums, change, starved,
    arity, num_bins, shift, stride, TRACKS: tl.constexpr, SUMS: tl.constexpr, EDGES: tl.constexpr,
    BINS: tl.constexpr, KNOWN: tl.constexpr, MET: tl.constexpr, ALIKE: tl.constexpr,
    FRESH: tl.constexpr, TILE: tl.constexpr, TILES: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Count the tracks of EDGES edges of a factor and mix them into their surveys.

    Only the MET bins of some pair of hits get new mass. At most ALIKE kinds of pairs belong to one
    bin: kind_of (ALIKE, FRESH), −1 where there are fewer.
    """
    i = tl.program_id(0).to(tl.int64)
    edges = tl.program_id(1) * EDGES + tl.arange(0, EDGES)
    inside = edges < arity
    places, bins = tl.arange(0, FRESH), tl.arange(0, BINS)
    met, used = places < MET, bins < num_bins
    kind = tl.load(kind_of + tl.arange(0, ALIKE * FRESH))
    tally = tl.zeros([EDGES, ALIKE * FRESH], tl.int64)
    for group in range(TILES):
        tracks = group * TILE + tl.arange(0, TILE)
        at = (i * arity + edges)[:, None] * (4 * ((TRACKS + 3) // 4)) + tracks[None, :]
        drawn = inside[:, None] & (tracks < TRACKS)[None, :]
        pair = tl.load(pairs + at, mask=drawn, other=0).to(tl.int32)
        tally += _tally(pair, drawn, kind, WORDS)
    seen = (tally > 0) & (kind >= 0)[None, :]
    ranks = tl.load(rank + kind, mask=kind >= 0, other=-1).to(tl.int32)
    most = tl.max(tl.where(seen, ranks[None, :], -1), 1)
    masses = tl.load(
        mass_of + most[:, None].to(tl.int64) * KNOWN + kind[None, :], mask=seen, other=0
    )
    fresh = tl.sum(tl.reshape(tl.where(seen, tally * masses, 0), [EDGES, ALIKE, FRESH]), 1)
    total = tl.sum(fresh, 1)
    share = fresh.to(tl.float64) / tl.maximum(total, 1).to(tl.float64)[:, None]

    row = survey + (tl.load(rows + i) * arity + edges)[:, None] * num_bins
    here, there = inside[:, None] & used[None, :], inside[:, None] & met[None, :]
    fresh_bins = tl.load(bin_of + places, mask=met, other=0).to(tl.int32)
    old = tl.load(row + bins[None, :], mask=here, other=0.0)
    old_met = tl.load(row + fresh_bins[None, :], mask=there, other=0.0)
    gamma = tl.load(gammas + i)
    live = (total > 0)[:, None]
    faded = tl.where(live, (1.0 - gamma) * old, old)
    mixed = tl.where(live, (1.0 - gamma) * old_met + gamma * share.to(tl.float32), old_met)
    tl.debug_barrier()  # all reads come before any write
    tl.store(row + bins[None, :], faded, mask=here)
    tl.debug_barrier()  # faded bins are written before those with new mass
    tl.store(row + fresh_bins[None, :], mixed, mask=there)
    tl.debug_barrier()  # all writes come before the next reads
    new = tl.load(row + bins[None, :], mask=here, other=0.0)

    tile = i * tl.num_programs(1) + tl.program_id(1)
    tl.store(change + tile, tl.max(tl.max(tl.abs(new - old), 1), 0))
    tl.store(starved + tile, tl.sum((inside & (total == 0)).to(tl.int32), 0))
    found = _sums(new, units, num_bins, bins, used, shift)
    for number in tl.static_range(SUMS):
        tl.store(sums + number * stride + i * arity + edges, found[number], mask=inside)


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons that share one beta."""
    few = samples <= MAX_SAMPLES and factors.perceptron_low is not None
    return few and factors.log_means(samples).shape[0] == 1


class Tables:
    """Tables of a grid and of pairs of hits, on the device."""

    def __init__(self, units: Any, bins: Tensor, rank: Tensor, mass: Tensor) -> None:
        self.num_bins, self.shift = units.tilt.shape[1], units.shift
        self.rank, self.mass = rank, mass.contiguous()
        rows = [units.tilt, units.log_odds[None]]
        self.units = torch.cat(rows).to(torch.int32).contiguous()  # (3, B)
        # bins of some pair, and the kinds of pairs of each
        self.fresh, place, count = bins.unique(return_inverse=True, return_counts=True)
        order = place.argsort(stable=True)
        nth = torch.arange(len(bins), device=bins.device) - (count.cumsum(0) - count)[place[order]]
        shape = [power_of_two(size) for size in (int(count.max()), len(count))]
        self.kinds = torch.full(shape, -1, dtype=torch.int32, device=bins.device)
        self.kinds[nth, place[order]] = order.to(torch.int32)


def sums(survey: Tensor, rows: Tensor, tables: Tables) -> Tensor:
    """Integer sums (11, f, A) of the surveys (F, A, B) float32 at rows (f,)."""
    num, arity = len(rows), survey.shape[1]
    out = torch.empty(NUM_SUMS, num, arity, dtype=torch.int64, device=survey.device)
    if num:
        _old_sums[(num, pieces(arity, EDGES))](
            survey, rows, tables.units, out, arity, tables.num_bins, tables.shift, num * arity,
            NUM_SUMS, EDGES, power_of_two(tables.num_bins), num_warps=WARPS,
        )  # fmt: skip
    return out


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
    """Update the surveys of the factors at rows (f,) in place; see `kernels.cpu.survey`."""
    num, arity = cavities.branch_threshold.shape
    device, tiles = survey.device, pieces(arity, EDGES)
    out = torch.empty(NUM_SUMS, num, arity, dtype=torch.int64, device=device)
    change = torch.zeros(num, tiles, dtype=torch.float32, device=device)
    starved = torch.zeros(num, tiles, dtype=torch.int64, device=device)
    tracks = cavities.tracks
    groups = pieces(tracks, 4)
    if num:
        part = factors.select(rows)
        pairs = torch.empty(num, arity, 4 * groups, dtype=torch.uint8, device=device)
        _pairs[(num,)](
            cavities.branch_threshold.contiguous(), cavities.centre.contiguous(),
            cavities.spread.contiguous(),
            normal_quantiles(device), threshold_edges(device),
            part.rows, part.labels, part.ids,
            pairs.view(torch.int32),
            double(cavities.limit, device), arity, key.step, *key.words(),
            *key.of(Stream.BRANCH).words(), *key.of(Stream.CAVITY).words(), tracks,
            samples, factors.perceptron_low, blocks_of(arity),
            num_warps=min(16, 2 * warps_of(arity)), enable_fp_fusion=False,
        )  # fmt: skip
        num_kinds = len(tables.rank)
        tile = min(TRACKS, power_of_two(tracks))
        _mix[(num, tiles)](
            survey, rows, pairs, tables.fresh, tables.kinds, tables.rank, tables.mass,
            gamma.to(torch.float32), tables.units, out, change, starved, arity,
            tables.num_bins, tables.shift, num * arity, tracks, NUM_SUMS, EDGES,
            power_of_two(tables.num_bins), num_kinds, len(tables.fresh),
            *tables.kinds.shape, tile, pieces(tracks, tile), pieces(num_kinds, 8),
            num_warps=WARPS, enable_fp_fusion=False,
        )  # fmt: skip
    return out, change.amax(1).double(), starved.sum(1)
