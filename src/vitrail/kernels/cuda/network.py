"""Nets of this package's layers on the GPU: 32 drawn configurations per word.

A row of draws has W words per weight, and W words of activity per unit. A lane adds up a unit for
the 32 draws of a word, with counters in the 8-bit fields of 8 words (or 16-bit fields of 16 words):
entry e adds (agrees_e >> s) & 0x01010101 to the s-th word. A field that starts at 128 − least has
its highest bit set exactly where the count has reached `least`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from vitrail.factors import Factors, Network
from vitrail.kernels.cuda.philox import ADDRESS, blocks_of, lanes16, pieces, warps_of
from vitrail.random import Key

WORD = 32
LANES = 128
LARGEST_FIELD = 16
MAX_UNITS = 65_535  # of a hidden layer: the second axis of a grid


@dataclass(frozen=True)
class Layer:
    """Entry e of unit u multiplies value[u, e] by weight[u, e]; short rows are padded with −1."""

    value: Tensor  # (U, E) int32, of the inputs or of the layer before
    weight: Tensor  # (U, E) int32
    low: int  # value of a zero bit of its weights
    inactive: int | None  # value of an inactive unit of the layer before; None for inputs

    @property
    def twice(self) -> bool:
        """Whether an entry adds up to two, where ±1 is multiplied by 0/1."""
        return self.inactive is not None and self.inactive != self.low

    @property
    def field(self) -> int:
        """Bits of a counter, including the free highest one."""
        largest = self.value.shape[1] * (2 if self.twice else 1)
        return next(bits for bits in (8, 16, 32) if largest < 2 ** (bits - 1))


def _layers(factors: Factors) -> tuple[Layer, ...] | None:
    """The net's layers as tables, or None for factors without a wiring."""
    wiring = factors.program.wiring if isinstance(factors, Network) else None
    if wiring is None or not wiring.same_inputs:
        return None
    device = factors.ids.device
    owner = np.repeat(np.arange(len(wiring.uses) - 1), np.diff(wiring.uses))
    before, inactive, layers = 0, None, []  # values are numbered inputs first, then units
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
        before = wiring.num_inputs + first
        layers.append(
            Layer(
                torch.from_numpy(value).to(device),
                torch.from_numpy(weight).to(device),
                int(wiring.low[wiring.layer_of == number][0]),
                inactive,
            )
        )
        inactive = int(wiring.activation[number])
    wide = max(len(layer.value) for layer in layers) > MAX_UNITS
    deep = max(layer.field for layer in layers) > LARGEST_FIELD
    return None if wide or deep else tuple(layers)


def layers_of(factors: Factors) -> tuple[Layer, ...] | None:
    """Layers of perceptrons and of nets of binary layers with sign or threshold between them."""
    return factors.origin()[0].once(_layers)


@triton.jit(do_not_specialize=ADDRESS)
def _pack(
    threshold, ids, words, arity, tracks, stride, step_number, k0, k1,
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
    for bit in range(WORD):
        sample = word * WORD + bit
        lanes = lanes16(
            factor, first + sample, step_number.to(tl.uint32), k0.to(tl.uint32),
            k1.to(tl.uint32), BLOCKS,
        )  # fmt: skip
        packed |= ((lanes < bounds) & (sample < SAMPLES)).to(tl.uint32) << bit
    place = slots.to(tl.int64) * stride + row * WORDS + word
    tl.store(words + place, packed.to(tl.int32), mask=used)


@triton.jit
def _ones(FIELD: tl.constexpr):
    """A one in each field of a word."""
    return tl.full([1, 1], 0x01010101 if FIELD == 8 else 0x00010001, tl.uint32)


@triton.jit
def _added(counters, agrees, FIELD: tl.constexpr):
    """Add the bits of words (LANES,) to their counters (FIELD, LANES)."""
    place = tl.arange(0, FIELD).to(tl.uint32)[:, None]
    return counters + ((agrees.to(tl.uint32)[None, :] >> place) & _ones(FIELD))


@triton.jit
def _gathered(flags, FIELD: tl.constexpr):
    """The highest bits of fields (FIELD, LANES) as words (LANES,) of one bit per draw."""
    place = tl.arange(0, FIELD).to(tl.uint32)[:, None]
    return tl.sum(((flags >> (FIELD - 1)) & _ones(FIELD)) << place, 0).to(tl.int32)


@triton.jit
def _counted(
    words, values, value_of, weight_of, unit, factor, column, of_weight, there,
    stride, values_stride, LOW: tl.constexpr, INACTIVE: tl.constexpr, FAN: tl.constexpr,
    LANES: tl.constexpr, FIELD: tl.constexpr,
):  # fmt: skip
    """Counters (FIELD, LANES) of a unit's entries that agree, and the least count (LANES,) with
    which the unit's sum is positive. INACTIVE None: values are inputs, int8 by number and factor.
    """
    counters = tl.zeros([FIELD, LANES], tl.uint32)
    nonzero = tl.zeros([LANES], tl.int32)
    minus = tl.zeros([LANES], tl.int32)
    for entry in range(FAN):
        number = tl.load(value_of + unit * FAN + entry).to(tl.int64)
        weight = tl.load(weight_of + unit * FAN + entry).to(tl.int64)
        here = there & (number >= 0)
        bits = tl.load(words + weight * stride + of_weight, mask=here, other=0)
        if INACTIVE is None:
            x = tl.load(values + number * values_stride + factor, mask=here, other=0).to(tl.int32)
            agrees = tl.where(x < 0, ~bits, bits)
            counters = _added(counters, tl.where(x != 0, agrees, 0), FIELD)
            nonzero += (x != 0).to(tl.int32)
            minus += (x < 0).to(tl.int32)
        else:
            place = values + number * values_stride + column
            on = tl.load(place, mask=here, other=0)
            if INACTIVE == LOW:
                agrees = ~(on ^ bits) if LOW == -1 else on & bits
                counters = _added(counters, tl.where(here, agrees, 0), FIELD)
            else:
                # ±1 times 0/1: one for +1 and, as its complement, one fewer for −1
                against = bits & ~on if LOW == 0 else on & ~bits
                counters = _added(counters, tl.where(here, on & bits, 0), FIELD)
                counters = _added(counters, tl.where(here, ~against, 0), FIELD)
            nonzero += here.to(tl.int32)
    if INACTIVE is None:
        least = nonzero // 2 + 1 if LOW == -1 else minus + 1
    elif INACTIVE == LOW:
        least = nonzero // 2 + 1 if LOW == -1 else tl.full([LANES], 1, tl.int32)
    else:
        least = nonzero + 1
    return counters, least


@triton.jit
def _reached(counters, least, FIELD: tl.constexpr):
    """Words (LANES,) of the draws whose count has reached `least`."""
    bias = ((1 << (FIELD - 1)) - least).to(tl.uint32)[None, :] * _ones(FIELD)
    return _gathered(counters + bias, FIELD)


@triton.jit
def _hidden(
    words, values, value_of, weight_of, out, num_columns, stride, values_stride, tracks,
    LOW: tl.constexpr, INACTIVE: tl.constexpr, FAN: tl.constexpr, WORDS: tl.constexpr,
    SHARED: tl.constexpr, LANES: tl.constexpr, FIELD: tl.constexpr,
):  # fmt: skip
    """The draws in which a unit is active: one word per row and word."""
    column = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    unit, there = tl.program_id(1), column < num_columns
    of_weight = column % WORDS if SHARED else column
    counters, least = _counted(
        words, values, value_of, weight_of, unit, column // WORDS // tracks, column, of_weight,
        there, stride, values_stride, LOW, INACTIVE, FAN, LANES, FIELD,
    )  # fmt: skip
    active = _reached(counters, least, FIELD)
    tl.store(out + unit.to(tl.int64) * num_columns + column, active, mask=there)


@triton.jit
def _outputs(
    words, values, value_of, weight_of, labels, out, num_columns, stride, values_stride, tracks,
    samples, LOW: tl.constexpr, INACTIVE: tl.constexpr, UNITS: tl.constexpr, FAN: tl.constexpr,
    WORDS: tl.constexpr, SHARED: tl.constexpr, LANES: tl.constexpr, FIELD: tl.constexpr,
):  # fmt: skip
    """The draws that meet the label: by the sign of one output, or by the largest, first on a tie.

    All outputs are the same function of their counts, so counts are compared.
    """
    column = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = column < num_columns
    of_weight = column % WORDS if SHARED else column
    factor = column // WORDS // tracks
    label = tl.load(labels + factor, mask=there, other=0).to(tl.int32)
    top = _ones(FIELD) << (FIELD - 1)
    best = tl.zeros([FIELD, LANES], tl.uint32)
    wins = tl.zeros([FIELD, LANES], tl.uint32)
    met = tl.zeros([LANES], tl.int32)
    for unit in range(UNITS):
        counters, least = _counted(
            words, values, value_of, weight_of, unit, factor, column, of_weight, there, stride,
            values_stride, LOW, INACTIVE, FAN, LANES, FIELD,
        )  # fmt: skip
        if UNITS == 1:
            positive = _reached(counters, least, FIELD)
            met = tl.where(label == 1, positive, ~positive)
        else:
            larger = (((best | top) - counters) & top) ^ top
            larger = tl.where(unit == 0, top, larger)  # the first wins with any count
            chosen = (larger >> (FIELD - 1)) * ((1 << FIELD) - 1)
            best ^= (best ^ counters) & chosen
            mine = tl.where((label == unit)[None, :], top, 0)
            wins ^= (wins ^ mine) & larger
    if UNITS > 1:
        met = _gathered(wins, FIELD)
    left = samples - (column % WORDS).to(tl.int32) * 32
    valid = tl.where(left >= 32, -1, (1 << tl.minimum(left, 31)) - 1)
    tl.store(out + column, met & valid, mask=there)


def packed(key: Key, factors: Factors, threshold: Tensor, samples: int) -> Tensor:
    """S draws for each track of cavities (F, R, A): words (A, F·R, W) int32, draw s at bit s%32."""
    num_factors, tracks, arity = threshold.shape
    rows, num_words = num_factors * tracks, pieces(samples, WORD)
    words = torch.empty(arity, rows, num_words, dtype=torch.int32, device=threshold.device)
    if words.numel():
        _pack[(rows, num_words)](
            threshold.contiguous(), factors.ids, words, arity, tracks, rows * num_words, key.step,
            *key.words(), samples, num_words, blocks_of(arity), WORD, num_warps=warps_of(arity),
        )  # fmt: skip
    return words


def met(factors: Network, words: Tensor, tracks: int, samples: int) -> Tensor:
    """Which draws meet the label: words (F·R, W) int32 from words (A, F·R, W), or (A, 1, W)."""
    layers = layers_of(factors)
    assert layers is not None  # see `serves`
    rows, num_words = factors.num_factors * tracks, words.shape[2]
    columns, shared = rows * num_words, words.shape[1] != rows
    found = torch.empty(rows, num_words, dtype=torch.int32, device=words.device)
    if not columns:
        return found
    blocks, stride = pieces(columns, LANES), words.shape[1] * num_words
    values = factors.inputs.flatten(1).t().contiguous()  # (I, F)
    values_stride = factors.num_factors
    for layer in layers:
        units, fan = layer.value.shape
        tables = (words, values, layer.value, layer.weight)
        kind = (layer.low, layer.inactive)
        form = (fan, num_words, shared, LANES, layer.field)
        if layer is layers[-1]:
            _outputs[(blocks,)](
                *tables, factors.labels, found, columns, stride, values_stride, tracks, samples,
                *kind, units, *form, num_warps=LANES // 32,
            )  # fmt: skip
        else:
            out = torch.empty(units, columns, dtype=torch.int32, device=words.device)
            _hidden[(blocks, units)](
                *tables, out, columns, stride, values_stride, tracks, *kind, *form,
                num_warps=LANES // 32,
            )  # fmt: skip
            values, values_stride = out, columns
    return found


def scratch_bytes(factors: Network, samples: int) -> int:
    """Bytes that `packed` and `met` allocate per track."""
    layers = layers_of(factors) or ()
    units = sum(len(layer.value) for layer in layers[:-1])
    return 4 * pieces(samples, WORD) * (factors.arity + units + 1)
