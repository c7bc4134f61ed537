# pyright: reportMissingImports=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportIndexIssue=false, reportArgumentType=false
# (Triton comes with CUDA builds of torch, and its decorator hides the types of kernels.)
"""Nets of this package's layers on the GPU: 32 drawn configurations in a word, a lane for each.

A row of draws is W words a weight. A layer is one launch: a program holds `LANES` draws and goes
through the layer's units, adding up the entries of each. Lanes of a warp are draws of one word,
so weights and inputs are read once for all of them, and values of hidden units side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from vitrail.factors import Classifiers, Factors, Network, Perceptron
from vitrail.factors.wiring import wire
from vitrail.kernels.cuda_philox import ADDRESS, blocks_of, lanes16, warps_of
from vitrail.nn import BinaryLinear
from vitrail.random import Key

WORD = tl.constexpr(32)
LANES = 128


@dataclass(frozen=True)
class Layer:
    """Entry e of unit u multiplies value[u, e] by weight[u, e]; −1 fills up short rows."""

    value: Tensor  # (U, E) int32, of the inputs or of the layer before
    weight: Tensor  # (U, E) int32
    low: int  # what a zero bit of its weights stands for
    inactive: int  # what a unit stands for that is not positive


@lru_cache(maxsize=64)
def _layers(
    module: nn.Module, input_shape: tuple[int, ...], device: torch.device
) -> tuple[Layer, ...] | None:
    """The module's layers as tables, or None for a module of other layers."""
    wiring = wire(module, input_shape)
    if wiring is None:
        return None
    owner = np.repeat(np.arange(len(wiring.uses) - 1), np.diff(wiring.uses))
    before, layers = 0, []  # values are numbered inputs first, then units
    for number, (first, end) in enumerate(zip(wiring.layers, wiring.layers[1:], strict=False)):
        mine = np.flatnonzero((wiring.use_unit >= first) & (wiring.use_unit < end))
        mine = mine[np.argsort(wiring.use_unit[mine], kind="stable")]
        unit = wiring.use_unit[mine] - first
        count = np.bincount(unit, minlength=end - first)
        place = np.arange(len(unit)) - np.repeat(np.cumsum(count) - count, count)
        value = np.full((end - first, count.max()), -1, np.int32)
        weight = value.copy()
        value[unit, place] = wiring.use_value[mine] - before
        weight[unit, place] = owner[mine]
        before = int(np.prod(input_shape)) + first
        layers.append(
            Layer(
                torch.from_numpy(value).to(device),
                torch.from_numpy(weight).to(device),
                int(wiring.low[wiring.layer_of == number][0]),
                int(wiring.activation[number]),
            )
        )
    return tuple(layers)


@lru_cache(maxsize=64)
def _linear(arity: int, low: int) -> nn.Module:
    return BinaryLinear(arity, 1, "bipolar" if low == -1 else "binary")


def layers_of(factors: Factors) -> tuple[Layer, ...] | None:
    """Layers of perceptrons and of nets of binary layers with sign or threshold between them."""
    if isinstance(factors, Perceptron):
        module, shape = _linear(factors.arity, factors.low), (factors.arity,)
    elif isinstance(factors, Network):
        module, shape = factors.module, tuple(factors.inputs.shape[1:])
    else:
        return None
    return _layers(module, shape, factors.ids.device)


@triton.jit(do_not_specialize=ADDRESS)
def _pack(
    threshold, ids, words, arity, tracks, step_number, k0, k1,
    SAMPLES: tl.constexpr, WORDS: tl.constexpr, BLOCKS: tl.constexpr, WORD: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    word = tl.program_id(1)
    slots = tl.arange(0, 8 * BLOCKS)
    used = slots < arity
    bounds = tl.load(threshold + row * arity + slots, mask=used, other=0)
    factor = tl.load(ids + row // tracks).to(tl.uint32)
    first = (row % tracks).to(tl.int32) * SAMPLES
    packed = tl.zeros([8 * BLOCKS], tl.uint32)
    for place in range(WORD):
        sample = word * WORD + place
        lanes = lanes16(
            factor, first + sample, step_number.to(tl.uint32), k0.to(tl.uint32),
            k1.to(tl.uint32), BLOCKS,
        )  # fmt: skip
        packed |= ((lanes < bounds) & (sample < SAMPLES)).to(tl.uint32) << place
    tl.store(words + (row * WORDS + word) * arity + slots, packed.to(tl.int32), mask=used)


@triton.jit
def _layer(
    words, values, value_of, weight_of, labels, out, arity, per_value, per_row, num_draws,
    rows_apart, tracks, samples,
    LOW: tl.constexpr, INACTIVE: tl.constexpr, UNITS: tl.constexpr, FAN: tl.constexpr,
    WORDS: tl.constexpr, FIRST: tl.constexpr, LAST: tl.constexpr, LANES: tl.constexpr,
    WORD: tl.constexpr,
):  # fmt: skip
    """Values of a layer's units for LANES draws, or for the last layer which meet the label.

    A value is at (row of inputs or draw)·per_row + number·per_value.
    """
    draw = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = draw < num_draws
    word, shift = draw // WORD, (draw % WORD).to(tl.int32)
    row = word // WORDS
    factor = row // tracks
    # rows_apart 0: all rows share the words of one
    mine = words + (row * rows_apart * WORDS + word % WORDS) * arity
    source = values + (factor if FIRST else draw) * per_row
    best = tl.zeros([LANES], tl.int32)
    chosen = tl.zeros([LANES], tl.int32)
    for unit in range(UNITS):
        total = tl.zeros([LANES], tl.int32)
        for entry in range(FAN):
            number = tl.load(value_of + unit * FAN + entry)
            weight = tl.load(weight_of + unit * FAN + entry)
            here = there & (number >= 0)
            x = tl.load(source + number.to(tl.int64) * per_value, mask=here, other=0).to(tl.int32)
            bit = (tl.load(mine + weight, mask=here, other=0) >> shift) & 1
            total += tl.where(bit != 0, x, LOW * x)
        if not LAST:
            tl.store(out + unit * num_draws + draw, tl.where(total > 0, 1, INACTIVE), mask=there)
        else:
            wins = (total > best) | (unit == 0)
            best = tl.where(wins, total, best)
            chosen = tl.where(wins, unit, chosen)
    if LAST:
        label = tl.load(labels + factor, mask=there, other=0).to(tl.int32)
        answer = (best > 0).to(tl.int32) if UNITS == 1 else chosen
        sample = (word % WORDS).to(tl.int32) * WORD + shift
        met = ((answer == label) & (sample < samples)).to(tl.int32) << shift
        first = tl.program_id(0).to(tl.int64) * (LANES // WORD) + tl.arange(0, LANES // WORD)
        found = tl.sum(tl.reshape(met, [LANES // WORD, WORD]), 1).to(tl.int32)
        tl.store(out + first, found, mask=first * WORD < num_draws)


def packed(key: Key, factors: Factors, threshold: Tensor, samples: int) -> Tensor:
    """S draws for each track of cavities (F, R, A): words (F·R, W, A) int32, draw s at bit s%32."""
    num_factors, tracks, arity = threshold.shape
    num_words = triton.cdiv(samples, WORD.value)
    shape = (num_factors * tracks, num_words, arity)
    words = torch.empty(shape, dtype=torch.int32, device=threshold.device)
    if words.numel():
        _pack[shape[:2]](
            threshold.contiguous(), factors.ids, words, arity, tracks, key.step, *key.words(),
            samples, num_words, blocks_of(arity), WORD.value, num_warps=warps_of(arity),
        )  # fmt: skip
    return words


def met(factors: Classifiers, words: Tensor, tracks: int, samples: int) -> Tensor:
    """Which draws meet the label: words (F·R, W) int32 from words (F·R, W, A), or (1, W, A)."""
    layers = layers_of(factors)
    if layers is None:
        raise TypeError(f"there is no kernel for the net of these {type(factors).__name__} factors")
    rows, num_words = factors.num_factors * tracks, words.shape[1]
    num_draws = WORD.value * rows * num_words
    found = torch.empty(rows, num_words, dtype=torch.int32, device=words.device)
    values, per_value = factors.inputs.flatten(1).contiguous(), 1
    per_row = values.shape[1]
    for number, layer in enumerate(layers):
        last, (units, fan) = number == len(layers) - 1, layer.value.shape
        out = found
        if not last:
            out = torch.empty(units, num_draws, dtype=torch.int8, device=words.device)
        if num_draws:
            _layer[(triton.cdiv(num_draws, LANES),)](
                words, values, layer.value, layer.weight, factors.labels, out, words.shape[2],
                per_value, per_row, num_draws, int(len(words) > 1), tracks, samples, layer.low,
                layer.inactive, units, fan, num_words, number == 0, last, LANES, WORD.value,
                num_warps=LANES // 32,
            )  # fmt: skip
        values, per_value, per_row = out, num_draws, 1
    return found


def scratch_bytes(factors: Classifiers, samples: int) -> int:
    """What `packed` and `met` hold for one track."""
    layers = layers_of(factors) or ()
    draws = WORD.value * triton.cdiv(samples, WORD.value)
    units = sum(len(layer.value) for layer in layers[:-1])
    return draws * units + draws * (factors.arity + 1) // 8


def serves(factors: Factors, samples: int) -> bool:
    """Perceptrons and nets of this package's layers."""
    return layers_of(factors) is not None


def pool_scores(factors: Classifiers, states: Tensor) -> Tensor:
    """Which configurations of a pool (S, A) bool meet each factor's label: (F, S) bool."""
    samples, arity = states.shape
    places = torch.arange(WORD.value, device=states.device)
    spare = torch.nn.functional.pad(states, (0, 0, 0, -samples % WORD.value))
    grouped = spare.view(-1, WORD.value, arity).to(torch.int64) << places[:, None]
    words = grouped.sum(1).to(torch.int32)  # the highest bit becomes the sign
    found = met(factors, words[None], 1, samples)
    return ((found[:, :, None] >> places) & 1).flatten(1)[:, :samples].bool()
