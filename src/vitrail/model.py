"""A trained network: its bits, what rows and labels mean to it, and its predictions.

One file holds it all (`save`, `load_model`): a .safetensors file whose tensors are determined by
data, settings and seed, and whose metadata says the rest. Reading one runs no code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from vitrail.data.bits import BitColumns
from vitrail.data.dataset import Coding
from vitrail.data.encoders import TableEncoder
from vitrail.data.errors import DataError
from vitrail.data.labels import LabelCoder
from vitrail.data.output import atomic_output
from vitrail.data.plain import PlainReader
from vitrail.nn import Program, mlp, program_of
from vitrail.numerics import DEFAULT_MEMORY, chunks

FORMAT = "vitrail-model"
VERSION = 1
ENCODERS: dict[str, type[TableEncoder] | type[BitColumns]] = {
    "table": TableEncoder,
    "bits": BitColumns,
}
MAX_UNITS = 2**24  # of a layer; so that a damaged file cannot ask for an absurd network

# Chances are multiples of 2⁻³⁰ and shares of 2⁻²⁰, so that sums over networks are exact in
# float64: predictions do not depend on the order of summation, hence on threads or machines.
CHANCE_LATTICE = 2.0**30
SHARE_LATTICE = 2.0**20


class ModelError(ValueError):
    """A model file cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Shape:
    """What a network looks like from outside: inputs (constants included) and outputs.

    hidden: units of each hidden layer; None for a network of the user's own.
    """

    num_inputs: int
    hidden: tuple[int, ...] | None
    num_outputs: int
    num_weights: int

    @staticmethod
    def of_mlp(num_inputs: int, hidden: tuple[int, ...], num_outputs: int) -> Shape:
        sizes = (num_inputs, *hidden, num_outputs)
        return Shape(num_inputs, hidden, num_outputs, sum(a * b for a, b in pairwise(sizes)))

    def build(self) -> Program:
        """The network that the shape describes."""
        if self.hidden is None:
            raise ModelError(
                "this model holds the bits of a network of your own, not its layers; "
                "pass the module again: load_model(path, module=…)"
            )
        return program_of(mlp(self.num_inputs, self.hidden, self.num_outputs), (self.num_inputs,))


@dataclass(frozen=True, eq=False)
class Model:
    """Bits with all that is needed to use them.

    A model has N nets: one, or with `pairs` one for each pair of classes (i, j), i < j, in
    lexicographic order, whose output is positive for class j. Predictions average over K
    networks, each a configuration of all nets: one for the predictor "best".
    """

    encoder: TableEncoder | BitColumns
    labels: LabelCoder
    coding: Coding  # of the inputs
    bias: int  # constant inputs after the encoder's bits
    shape: Shape  # of one net
    program: Program
    pairs: bool
    best: Tensor  # (N, A) bool
    marginals: Tensor  # (N, A) float32, P(w = 1)
    networks: Tensor  # (K, N, A) bool
    shares: Tensor  # (K, N) float64, adding up to 1 over K
    scale: float  # of the margins, for probabilities
    record: dict[str, Any] = field(default_factory=dict)  # settings, timings, versions, scores

    @property
    def num_classes(self) -> int:
        return len(self.labels.classes)

    @property
    def bits(self) -> int:
        """How many one-bit weights the best network has."""
        return self.best.numel()

    def inputs(self, table: Any) -> Tensor:
        """What the network reads of a table's rows, (rows, inputs) int8: bits, then constants."""
        return as_inputs(self.encoder.transform(table), self.coding, self.bias)

    def probabilities(self, table: Any) -> np.ndarray:
        """P(class) of each row, (rows, C) float64; rows add up to 1."""
        return self.probabilities_of(self.inputs(table))

    def probabilities_of(self, inputs: Tensor) -> np.ndarray:
        """P(class) of rows as `inputs` makes them, (rows, C) float64."""
        parts = [
            class_chances(
                net_chances(margins, self.scale), self.shares, self.num_classes, self.pairs
            )
            for margins in iter_margins(self.program, self.networks, inputs)
        ]
        return torch.cat(parts).numpy() if parts else np.empty((0, self.num_classes))

    def predict(self, table: Any) -> np.ndarray:
        """The likeliest class of each row, as it was written in training."""
        return self.labels.decode(self.probabilities(table).argmax(1))

    def save(self, path: str | Path) -> None:
        """Write the model to one .safetensors file, whole or not at all."""
        with atomic_output(path) as stream:
            stream.write(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The file's contents; only the metadata may differ between equal trainings."""
        tensors = {
            "best": _packed(self.best),
            "marginals": self.marginals.to(torch.float32).contiguous(),
            "networks": _packed(self.networks),
            "shares": self.shares.contiguous(),
        }
        kind = next(name for name, of in ENCODERS.items() if isinstance(self.encoder, of))
        state = {
            "encoder_kind": kind,
            "encoder": self.encoder.to_dict(),
            "labels": self.labels.to_dict(),
            "coding": self.coding,
            "bias": self.bias,
            "num_inputs": self.shape.num_inputs,
            "hidden": None if self.shape.hidden is None else list(self.shape.hidden),
            "num_outputs": self.shape.num_outputs,
            "num_weights": self.shape.num_weights,
            "pairs": self.pairs,
            "scale": self.scale,
        }
        metadata = {
            "format": FORMAT,
            "version": str(VERSION),
            "model": json.dumps(state, ensure_ascii=False, allow_nan=False),
            "record": json.dumps(self.record, ensure_ascii=False),
        }
        return save(tensors, metadata=metadata)


def load_model(path: str | Path, module: nn.Module | None = None) -> Model:
    """Read a model file; ModelError if it is not one. Pass the `module` of a net of your own."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        reason = "is not there" if isinstance(error, FileNotFoundError) else error.strerror
        raise ModelError(f"cannot read the model {path}: it {reason}; check the path") from None
    return model_from_bytes(content, str(path), module)


def model_from_bytes(content: bytes, name: str, module: nn.Module | None = None) -> Model:
    """The model whose file has these contents; `name` is what errors call it."""
    try:
        tensors = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = header.get("__metadata__") or {}
        if metadata.get("format") != FORMAT:
            raise ModelError(f"{name} is no vitrail model; give a file that `vitrail fit` wrote")
        if metadata.get("version") != str(VERSION):
            raise ModelError(
                f"{name} has model format {metadata.get('version')}, this vitrail reads format "
                f"{VERSION}; use the vitrail that wrote it, or train again"
            )
        return _parsed(tensors, json.loads(metadata["model"]), metadata.get("record"), module)
    except ModelError:
        raise
    except DataError as error:
        raise ModelError(f"{name}: {error}") from None
    except (SafetensorError, ValueError, KeyError, RecursionError, TypeError, MemoryError):
        raise ModelError(f"{name} is damaged or no model; copy it again or train anew") from None


def _parsed(
    tensors: Mapping[str, Tensor], state: object, record: str | None, module: nn.Module | None
) -> Model:
    read = PlainReader(state, "model")
    kind = read.text("encoder_kind")
    read.require(kind in ENCODERS, f"has an encoder of the unknown kind {kind!r}")
    encoder = ENCODERS[kind].from_dict(read.mapping("encoder"))
    labels = LabelCoder.from_dict(read.mapping("labels"))
    coding = read.text("coding")
    read.require(coding in get_args(Coding), f"has the unknown coding {coding!r}")
    bias = read.whole("bias", 0, MAX_UNITS)
    hidden = read.optional_wholes("hidden", 1, MAX_UNITS)
    shape = Shape(
        read.whole("num_inputs", 1, MAX_UNITS),
        hidden,
        read.whole("num_outputs", 1, MAX_UNITS),
        read.whole("num_weights", 1, 2**40),
    )
    pairs, scale = read.flag("pairs"), read.number("scale")
    read.done()
    classes = len(labels.classes)
    nets = classes * (classes - 1) // 2 if pairs else 1
    outputs = 1 if pairs or classes == 2 else classes
    read.require(scale > 0, "has a scale that is not positive")
    read.require(len(encoder.bit_names) + bias == shape.num_inputs, "has other inputs than its net")
    read.require(shape.num_outputs == outputs, "has other outputs than classes")
    if hidden is not None:
        expected = Shape.of_mlp(shape.num_inputs, hidden, shape.num_outputs).num_weights
        read.require(shape.num_weights == expected, "has another number of weights than its layers")
    parts = _tensors(tensors, nets, shape.num_weights)
    if module is None:
        program = shape.build()
    elif hidden is not None:
        raise ModelError("this model knows its layers; load it without a module")
    else:
        program = program_of(module, (shape.num_inputs,))
    if program.num_bits != shape.num_weights:
        raise ModelError(
            f"the model has {shape.num_weights} weights and the module {program.num_bits}; "
            "pass the module it was trained with"
        )
    notes = json.loads(record) if record else {}
    read.require(isinstance(notes, dict), "has a malformed training record")
    return Model(
        encoder=encoder,
        labels=labels,
        coding="binary" if coding == "binary" else "bipolar",
        bias=bias,
        shape=shape,
        program=program,
        pairs=pairs,
        scale=scale,
        record=notes,
        **parts,
    )


def _tensors(tensors: Mapping[str, Tensor], nets: int, weights: int) -> dict[str, Tensor]:
    """The four tensors of a file, each of the shape and kind it must have."""
    names = {"best", "marginals", "networks", "shares"}
    if set(tensors) != names:
        raise DataError("the model's tensors are not those of a vitrail model; train anew")
    octets = (weights + 7) // 8
    count = tensors["networks"].shape[0] if tensors["networks"].ndim == 3 else 0
    expected = {
        "best": ((nets, octets), torch.uint8),
        "marginals": ((nets, weights), torch.float32),
        "networks": ((count, nets, octets), torch.uint8),
        "shares": ((count, nets), torch.float64),
    }
    for name, (shape, kind) in expected.items():
        found = tensors[name]
        if tuple(found.shape) != shape or found.dtype != kind:
            raise DataError(
                f"the model's {name} are {found.dtype} of shape {tuple(found.shape)}, expected "
                f"{kind} of {shape}; train anew"
            )
    marginals, shares = tensors["marginals"], tensors["shares"]
    lattice = shares * SHARE_LATTICE
    sound = (
        count > 0
        and bool(((marginals >= 0) & (marginals <= 1)).all())
        and bool(((shares >= 0) & (lattice == lattice.round())).all())
        and bool((shares.sum(0) == 1).all())
    )
    if not sound:
        raise DataError("the model's probabilities are out of range; train anew")
    return {
        "best": _unpacked(tensors["best"], weights),
        "marginals": marginals,
        "networks": _unpacked(tensors["networks"], weights),
        "shares": shares,
    }


def _packed(bits: Tensor) -> Tensor:
    """(…, A) bool as (…, ⌈A/8⌉) uint8, the first bit of an octet lowest."""
    return torch.from_numpy(np.packbits(bits.cpu().numpy(), axis=-1, bitorder="little"))


def _unpacked(octets: Tensor, count: int) -> Tensor:
    bits = np.unpackbits(octets.numpy(), axis=-1, count=count, bitorder="little")
    return torch.from_numpy(bits.astype(bool))


def as_inputs(bits: np.ndarray, coding: Coding, bias: int) -> Tensor:
    """Bits (rows, D) as the net reads them, int8, with `bias` constant inputs of +1 appended."""
    inputs = torch.from_numpy(np.ascontiguousarray(bits, dtype=np.int8))
    if coding == "bipolar":
        inputs = 2 * inputs - 1
    return torch.cat([inputs, torch.ones(len(inputs), bias, dtype=torch.int8)], dim=1)


def iter_margins(program: Program, networks: Tensor, inputs: Tensor):
    """Outputs (rows, K, N, O) float32 of networks (K, N, A), a chunk of rows at a time."""
    num, nets, weights = networks.shape
    states = networks.reshape(1, num * nets, weights)
    per_row = 4 * num * nets * max(1, program.scratch_floats - 2 * weights)
    with torch.no_grad():
        for rows in chunks(len(inputs), per_row, DEFAULT_MEMORY):
            x = inputs[rows, None].to(torch.float32)
            yield program.evaluate(states, x).reshape(rows.stop - rows.start, num, nets, -1)


def net_chances(margins: Tensor, scale: float) -> Tensor:
    """Margins (rows, K, N, O) as chances: of label 1 for one output, of each class for several.

    σ(scale·(h − ½)) for one output: margins are whole numbers and a tie is label 0, so chance
    and decision agree. (rows, K, N) or (rows, K, N, C) float64.
    """
    scaled = scale * margins.to(torch.float64)
    if margins.shape[-1] == 1:
        chance = torch.sigmoid(scaled[..., 0] - scale / 2)
    else:
        chance = torch.softmax(scaled, -1)
    return torch.round(chance * CHANCE_LATTICE) / CHANCE_LATTICE


def class_chances(chances: Tensor, shares: Tensor, num_classes: int, pairs: bool) -> Tensor:
    """Average over networks by their shares (K, N), then over nets: (rows, C) float64.

    Of pairs, a class gets the mean chance against each of the others, normalised.
    """
    if chances.ndim == 4:  # one net with an output a class
        return torch.einsum("rknc,kn->rc", chances, shares)
    mean = torch.einsum("rkn,kn->rn", chances, shares)
    if not pairs:
        return torch.stack([1 - mean[:, 0], mean[:, 0]], 1)
    votes = mean.new_zeros(len(mean), num_classes)
    for net, (low, high) in enumerate(combinations(range(num_classes), 2)):
        votes[:, low] += 1 - mean[:, net]
        votes[:, high] += mean[:, net]
    return votes * 2 / (num_classes * (num_classes - 1))
