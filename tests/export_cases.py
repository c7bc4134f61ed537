"""Random models for exports: every kind of net, encoder and committee, drawn by Hypothesis."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import nn

from vitrail.model import Model
from vitrail.model.voting import Scheme, num_nets
from vitrail.nn import mlp, program_of
from vitrail.nn.nodes import Conv, Flatten, Linear, MaxPool, Node, Step
from vitrail.nn.program import Program
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import ColumnCode, TableEncoder
from vitrail.tables.labels import LabelCoder

LOWS = st.sampled_from([-1, 0])
NAMES = st.text("aZ é\"',*/\\?0_", min_size=1, max_size=6).filter(lambda name: name == name.strip())
WORDS = (
    st.text("abXé\"' ,?\\", min_size=1, max_size=5)
    .map(str.strip)
    .filter(lambda word: word not in ("", "?"))
)
SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def column_codes(draw: Any, name: str) -> ColumnCode:
    missing = draw(st.booleans())
    words = sorted(draw(st.sets(WORDS, max_size=4)))
    if draw(st.integers(0, 2)) == 0:
        other = draw(st.booleans()) or not words
        return ColumnCode(name, False, tuple(words), other, missing=missing)
    whole = draw(st.booleans())
    numbers = st.integers(-(2**31) + 1, 2**31 - 2) if whole else SINGLES
    thresholds = sorted(draw(st.sets(numbers, min_size=1, max_size=5)))
    if whole:
        thresholds = [x + 0.5 * draw(st.booleans()) for x in thresholds]
    thresholds = [float(x) for x in thresholds]
    values = ()
    if draw(st.booleans()):
        values = tuple(float(i) for i in range(len(thresholds) + 1))
    if draw(st.booleans()):
        words = []
    other = bool(words) and draw(st.booleans())
    typical = float(draw(numbers))
    held_as = "int32" if whole else "float32"
    both = not values and draw(st.booleans())
    cuts = tuple(thresholds)
    return ColumnCode(
        name, True, tuple(words), other, cuts, values, missing, typical, held_as, both=both
    )


@st.composite
def plain_columns(draw: Any) -> TableEncoder:
    """Columns that are all numbers of one kind, with thresholds only: one loop reads them in C."""
    held_as = draw(st.sampled_from(["int32", "float32"]))
    most = draw(st.sampled_from([100, 2**15 - 1, 2**30]))
    numbers = st.integers(-most, most) if held_as == "int32" else SINGLES
    names = tuple(f"x{i}" for i in range(draw(st.integers(1, 12))))
    sizes = st.sets(numbers, min_size=1, max_size=6)
    even = draw(st.one_of(st.none(), sizes))
    codes = []
    for name in names:
        thresholds = tuple(map(float, sorted(even if even is not None else draw(sizes))))
        typical = float(draw(numbers))
        codes.append(
            ColumnCode(name, True, thresholds=thresholds, typical=typical, held_as=held_as)
        )
    return TableEncoder(tuple(codes), names)


@st.composite
def encoders(draw: Any) -> TableEncoder | BitColumns:
    if draw(st.integers(0, 4)) == 0:
        return draw(plain_columns())
    if draw(st.integers(0, 3)) == 0:
        ends = [(0.0, 1.0), (-1.0, 1.0), (0.0, 16.0), (0.0, 255.0), (-0.5, 300.0), (0.0, 65535.0)]
        low, high = draw(st.sampled_from(ends))
        names = tuple(f"x{i}" for i in range(draw(st.integers(1, 70))))
        return BitColumns(names, low, high, cuts=draw(st.integers(1, 4)))
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    return TableEncoder(tuple(draw(column_codes(name)) for name in names), tuple(names))


@st.composite
def programs(draw: Any, num_inputs: int, num_outputs: int) -> Program:
    """A net that reads `num_inputs` values: linear, deep, or convolutions over lines and images."""
    shape: tuple[int, ...] = (num_inputs,)
    nodes: list[Node] = []
    kind = draw(st.sampled_from(["linear", "deep", "conv"]))
    if kind == "conv":
        shape = draw(st.sampled_from(_images(num_inputs)))
    first = shape
    size = st.integers(1, 3)
    if kind == "conv":
        for _ in range(draw(st.integers(1, 2))):
            rank = len(shape) - 1
            kernel = tuple(min(draw(size), n) for n in shape[1:])
            stride, padding = (tuple(draw(size) for _ in range(rank)) for _ in range(2))
            padding = tuple(min(p - 1, 2) for p in padding)
            conv = Conv(draw(LOWS), shape[0], draw(size), kernel, stride, padding)
            nodes.append(conv)
            shape = conv.output_shape(shape)
            pool: list[Node] = []
            if draw(st.booleans()):
                kernel = tuple(min(draw(size), n) for n in shape[1:])
                pool = [MaxPool(kernel, tuple(draw(size) for _ in range(rank)))]
                shape = pool[0].output_shape(shape)
            steps: list[Node] = [Step(draw(LOWS))]
            nodes += draw(st.sampled_from([pool + steps, steps + pool]))
        nodes.append(Flatten())
        shape = (int(np.prod(shape)),)
    if kind != "linear":
        hidden = draw(st.lists(st.integers(1, 40), max_size=2))
        for before, after in pairwise([shape[0], *hidden]):
            nodes += [Linear(draw(LOWS), before, after), Step(draw(LOWS))]
            shape = (after,)
    nodes.append(Linear(draw(LOWS), shape[0], num_outputs))
    if draw(st.integers(0, 5)) == 0:
        nodes.append(Step(draw(LOWS)))
    return Program(first, tuple(nodes))


def _images(size: int) -> list[tuple[int, ...]]:
    shapes: list[tuple[int, ...]] = [(1, size)]
    for channels in (1, 2, 3):
        if size % channels == 0:
            rest = size // channels
            shapes += [(channels, rest)]
            shapes += [(channels, rest // w, w) for w in (2, 3, 4, 5, 7) if rest % w == 0]
    return shapes


@st.composite
def models(draw: Any) -> Model:
    encoder, bias = draw(encoders()), draw(st.integers(0, 3))
    classes = draw(st.integers(2, 4))
    scheme: Scheme = "argmax"
    if classes > 2:
        scheme = draw(st.sampled_from(["argmax", "pairs", "one-vs-rest"]))
    nets, outputs = num_nets(classes, scheme)
    program = draw(programs(len(encoder.bit_names) + bias, outputs))
    num = draw(st.sampled_from([1, 1, 2, 5]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    most = draw(st.sampled_from([1, 3, 300, 10**6]))
    clip = draw(st.sampled_from([1, 3, 15, 255]))
    tables = np.sort(rng.integers(0, 65536, (nets, 257)), axis=1)
    if draw(st.booleans()):
        tables = np.sort(rng.choice([0, 32767, 32768, 65535], (nets, 257)), axis=1)
    return Model(
        encoder=encoder,
        labels=LabelCoder(tuple(f"class {i}" for i in range(classes)), "str"),
        coding=draw(st.sampled_from(["binary", "bipolar"])),
        bias=bias,
        program=program,
        scheme=scheme,
        **bits(rng, num, nets, program.num_bits),
        votes=torch.from_numpy(rng.integers(1, most + 1, (num, nets))),
        clip=clip,
        calibration=torch.from_numpy(tables),
        record={"target": "y", "note": "*/ a \\ ??/ b"},
    )


def bits(rng: np.random.Generator, num: int, nets: int, weights: int) -> dict[str, Any]:
    """Random networks, and what a model holds beside them."""
    networks = torch.from_numpy(rng.random((num, nets, weights)) < 0.5)
    return {"networks": networks, "best": networks[0], "marginals": networks[0] * 65535}


class Models(list[Model]):
    """Several models, told in a few words where a test fails."""

    def __repr__(self) -> str:
        return f"{len(self)} models"


def many_models(count: int) -> st.SearchStrategy[Models]:
    """`count` models at once, since a compiler is slow to start."""
    return st.lists(models(), min_size=count, max_size=count).map(Models)


def plain(module: nn.Module, shape: tuple[int, ...], networks: int = 1) -> Model:
    """Networks of two classes on columns of bits."""
    program, rng = program_of(module, shape), np.random.default_rng(0)
    names = tuple(f"x{i}" for i in range(program.num_inputs))
    return Model(
        encoder=BitColumns(names, 0.0, 1.0),
        labels=LabelCoder(("no", "yes"), "str"),
        coding="binary",
        bias=0,
        program=program,
        scheme="argmax",
        **bits(rng, networks, 1, program.num_bits),
        votes=torch.ones(networks, 1, dtype=torch.int64),
        clip=2**16 - 1 if networks == 1 else 1,
        calibration=torch.linspace(0, 65535, 257).to(torch.int64)[None],
    )


def against_the_rest(model: Model, classes: int) -> Model:
    """Such networks for each of `classes` classes."""
    networks = len(model.networks)
    return replace(
        model,
        labels=LabelCoder(tuple(f"class {i}" for i in range(classes)), "str"),
        scheme="one-vs-rest",
        **bits(np.random.default_rng(0), networks, classes, model.program.num_bits),
        votes=model.votes.repeat(1, classes),
        calibration=model.calibration.repeat(classes, 1),
    )


MIXED = (
    ColumnCode("colour", False, ("blue", "red"), other=True),
    ColumnCode("size", True, thresholds=(0.25, 1.5), missing=True),
    ColumnCode(
        "rooms", True, thresholds=(1.5, 2.5), values=(1, 2, 3), typical=2.0, held_as="int32"
    ),
)


def committee(codes: tuple[ColumnCode, ...] = MIXED) -> Model:
    """Three small nets that vote on a table."""
    encoder = TableEncoder(codes, tuple(code.name for code in codes))
    inputs = len(encoder.bit_names) + 1
    model = plain(mlp(inputs, (4,)), (inputs,), 3)
    votes, record = torch.tensor([[1], [2], [2]]), {"target": "y"}
    return replace(model, encoder=encoder, bias=1, votes=votes, record=record)


@st.composite
def linear_models(draw: Any) -> Model:
    """Nets without a hidden layer, as `compress` makes them of a few binary digits, and others."""
    encoder = draw(encoders().filter(_without_strays))
    bias, digits = draw(st.integers(0, 2)), draw(st.integers(1, 4))
    inputs, classes = len(encoder.bit_names) + bias, draw(st.sampled_from([2, 3, 4, 7]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    program = Program((inputs,), (Linear(draw(LOWS), inputs, 1),))
    model = linear_model(encoder, classes, digits, program, bias, rng)
    nets = model.networks.shape[1]
    if draw(st.booleans()):  # tables of their own, with equal probabilities
        tables = np.sort(rng.choice([0, 7, 32767, 32768, 65535], (nets, 257)), axis=1)
        model = replace(model, calibration=torch.from_numpy(tables))
    if draw(st.integers(0, 3)) == 0:
        model = replace(model, votes=torch.from_numpy(rng.integers(1, 9, (digits, nets))))
    if draw(st.integers(0, 3)) == 0:
        model = replace(model, clip=2 * model.clip)  # several scores a level
    return replace(model, coding=draw(st.sampled_from(["binary", "bipolar"])))


def _without_strays(encoder: TableEncoder | BitColumns) -> bool:
    """Whether no column of numbers may hold words."""
    if isinstance(encoder, BitColumns):
        return True
    return not any(code.numeric and code.categories for code in encoder.columns)


def linear_model(
    encoder: TableEncoder | BitColumns,
    classes: int,
    digits: int,
    program: Program | None = None,
    bias: int = 1,
    rng: np.random.Generator | None = None,
) -> Model:
    """A net of one layer with random weights of `digits` digits, and one curve that rises."""
    inputs, rng = len(encoder.bit_names) + bias, rng or np.random.default_rng(0)
    model = plain(mlp(inputs, ()), (inputs,), digits)
    model = replace(model, encoder=encoder, bias=bias, votes=2 ** torch.arange(digits)[:, None])
    model = against_the_rest(model, classes) if classes > 2 else model
    program = program or model.program
    rising = torch.linspace(100, 65000, 257).to(torch.int64)
    nets = model.networks.shape[1]
    return replace(
        model,
        program=program,
        **bits(rng, digits, nets, program.num_bits),
        clip=2 * inputs + 1,  # out of reach
        calibration=rising.expand(nets, -1).clone(),
    )
