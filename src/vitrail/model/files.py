"""Model files, format 2: one .safetensors file that is read completely or refused.

    tensors   best (N, ⌈A/8⌉), networks (K, N, ⌈A/8⌉) uint8, the first bit of an octet lowest;
              marginals (N, A) and calibration (N, 257) uint16; votes (K, N) int32;
              constant.PART.NAME: what an own module holds beside its bits
    metadata  format, version, model and record (JSON), checksum: SHA-256 over all of it

A file is spelled in one way only: what differs from that by a bit is damaged. Reading runs no
code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from vitrail.datasets.dataset import Coding
from vitrail.errors import DataError
from vitrail.model.model import RATES, Model, ModelError
from vitrail.model.voting import LEVELS, ONE, Scheme, num_nets
from vitrail.nn import Program, program_of
from vitrail.nn.nodes import MAX_SIZE
from vitrail.nn.opaque import Opaque
from vitrail.nn.program import program_from_nodes
from vitrail.state import StateReader
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.labels import LabelCoder

FORMAT = "vitrail-model"
VERSION = "2"
CONSTANT = "constant."
COMPACT = (",", ":")
ENCODERS: dict[str, type[TableEncoder] | type[BitColumns]] = {
    "table": TableEncoder,
    "bits": BitColumns,
}
KINDS = {  # the names of safetensors; a constant may be any of these
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.int16: "I16",
    torch.uint16: "U16",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
}


def model_to_bytes(model: Model) -> bytes:
    """The file's contents."""
    kind = next(name for name, of in ENCODERS.items() if isinstance(model.encoder, of))
    state = {
        "program": {**model.program.to_dict(), "fingerprint": model.program.fingerprint},
        "encoder_kind": kind,
        "encoder": model.encoder.to_dict(),
        "labels": model.labels.to_dict(),
        "coding": model.coding,
        "bias": model.bias,
        "scheme": model.scheme,
        "clip": model.clip,
        "thresholds": list(model.thresholds),
    }
    tensors = {
        "best": _packed(model.best),
        "marginals": _sixteen(model.marginals),
        "networks": _packed(model.networks),
        "votes": model.votes.to(torch.int32),
        "calibration": _sixteen(model.calibration),
        **{name: value.cpu() for name, value in constants(model.program).items()},
    }
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "model": json.dumps(state, ensure_ascii=False, allow_nan=False, separators=COMPACT),
        "record": json.dumps(model.record, ensure_ascii=False, separators=COMPACT),
    }
    return spelled(tensors, {**metadata, "checksum": checksum(tensors, metadata)})


def load_model(path: str | Path, module: nn.Module | None = None) -> Model:
    """Read a model file; ModelError if it is not one.

    Args:
        path: A file that `Model.save` or `vitrail fit` wrote.
        module: The net, where it is one of your own: a file holds its bits, not its code.

    Returns:
        The model, ready to predict.

    Examples:
        >>> model = load_model("cancer.safetensors")  # doctest: +SKIP
        >>> model.predict(rows)  # doctest: +SKIP
    """
    if Path(path).is_char_device():
        raise ModelError(f"cannot read the model {path}: it is a device; give a file")
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        reason = "is not there" if isinstance(error, FileNotFoundError) else error.strerror
        raise ModelError(f"cannot read the model {path}: it {reason}; check the path") from None
    return model_from_bytes(content, str(path), module)


def model_from_bytes(
    content: bytes, name: str = "the file", module: nn.Module | None = None
) -> Model:
    """The model whose file has these contents; ModelError if there is none.

    Args:
        content: What `Model.to_bytes` gave, or what a model file holds.
        name: What errors call it.
        module: As for `load_model`.

    Returns:
        The model.

    Examples:
        >>> from vitrail import BinaryNetClassifier
        >>> net = BinaryNetClassifier(hidden=(), random_state=0).fit([[0], [1]] * 5, [0, 1] * 5)
        >>> model_from_bytes(net.model_.to_bytes()).bits == net.model_.bits
        True
    """
    try:
        tensors = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = header.get("__metadata__") or {}
        if metadata.get("format") != FORMAT:
            raise ModelError(f"{name} is no vitrail model; give a file that `vitrail fit` wrote")
        version = metadata.get("version")
        if version != VERSION:
            raise ModelError(
                f"{name} has model format {version}, this vitrail reads format {VERSION}; "
                "use the vitrail that wrote it, or train again"
            )
        state, notes = json.loads(metadata["model"]), json.loads(metadata.get("record") or "{}")
        rest = {key: value for key, value in metadata.items() if key != "checksum"}
        sound = metadata.get("checksum") == checksum(tensors, rest)
        if not sound or content != spelled(tensors, metadata):
            raise ModelError(f"{name} is damaged: its checksum does not fit; copy it again")
        return _parsed(tensors, state, notes, module)
    except ModelError:
        raise
    except DataError as error:
        raise ModelError(f"{name}: {error}") from None
    except (SafetensorError, ValueError, KeyError, RecursionError, TypeError, MemoryError):
        raise ModelError(f"{name} is damaged or no model; copy it again or train again") from None


def checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """SHA-256 over metadata and tensors: names, kinds, shapes and values."""
    digest = sha256(json.dumps(dict(metadata), sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(json.dumps([name, KINDS[value.dtype], list(value.shape)]).encode())
        digest.update(_octets(value))
    return digest.hexdigest()


def spelled(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """The canonical form of a safetensors file: names in order, no gaps, padded to eight bytes."""
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    parts, end = [], 0
    for name in sorted(tensors):
        part = _octets(tensors[name])
        offsets = [end, end := end + len(part)]
        kind, shape = KINDS[tensors[name].dtype], list(tensors[name].shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": offsets}
        parts.append(part)
    text = json.dumps(header, ensure_ascii=False, separators=COMPACT).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def constants(program: Program) -> dict[str, Tensor]:
    """Constants of the opaque parts of a program, by their names in the file."""
    return {
        f"{CONSTANT}{place}.{name}": value
        for place, node in enumerate(program.nodes)
        if isinstance(node, Opaque)
        for name, value in node.constants.items()
    }


def _parsed(
    tensors: Mapping[str, Tensor], state: object, notes: object, module: nn.Module | None
) -> Model:
    read = StateReader(state, "model")
    kind = read.text("encoder_kind")
    read.require(kind in ENCODERS, f"has an encoder of the unknown kind {kind!r}")
    encoder = ENCODERS[kind].from_dict(read.mapping("encoder"))
    labels = LabelCoder.from_dict(read.mapping("labels"))
    coding = read.text("coding")
    read.require(coding in get_args(Coding), f"has the unknown coding {coding!r}")
    bias, scheme = read.whole("bias", 0, MAX_SIZE), read.text("scheme")
    read.require(scheme in get_args(Scheme), f"has the unknown scheme {scheme!r}")
    clip = read.whole("clip", 1, 2**31)
    thresholds = read.optional_wholes("thresholds", 0, ONE) or ()
    read.require(len(thresholds) in (0, RATES + 1), "has another number of thresholds")
    read.require(list(thresholds) == sorted(thresholds), "has thresholds out of order")
    described = StateReader(read.mapping("program"), "program")
    read.done()
    held = {name: value for name, value in tensors.items() if name.startswith(CONSTANT)}
    program = _program(described, held, module)
    classes = len(labels.classes)
    read.require(scheme == "argmax" or classes > 2, f"has two classes and the scheme {scheme}")
    nets, outputs = num_nets(classes, cast("Scheme", scheme))
    inputs = len(encoder.bit_names) + bias
    read.require(inputs == program.num_inputs, "has other inputs than its net")
    read.require(program.num_outputs == outputs, "has other outputs than classes")
    read.require(isinstance(notes, dict), "has a malformed training record")
    return Model(
        encoder=encoder,
        labels=labels,
        coding=cast("Coding", coding),
        bias=bias,
        program=program,
        scheme=cast("Scheme", scheme),
        clip=clip,
        thresholds=tuple(thresholds),
        record=cast("dict[str, Any]", notes),
        **_tensors({n: t for n, t in tensors.items() if n not in held}, nets, program.num_bits),
    )


def _program(read: StateReader, held: Mapping[str, Tensor], module: nn.Module | None) -> Program:
    """The net of the file: from its description, or from the user's module and its constants."""
    shape = read.wholes("input_shape", 1, MAX_SIZE)
    nodes, fingerprint = read.optional_items("nodes"), read.text("fingerprint")
    read.done()
    if nodes is not None:
        if module is not None:
            raise ModelError("this model knows its layers; load it without a module")
        program = program_from_nodes(shape, nodes)
        read.require(fingerprint == program.fingerprint, "has another net than it was")
        return program
    if module is None:
        raise ModelError(
            "this model holds the bits of a network of your own, not its layers; "
            "pass the module again: load_model(path, module=…)"
        )
    program = program_of(module, shape)
    own = constants(program)
    fits = set(own) == set(held) and all(
        (own[name].dtype, own[name].shape) == (value.dtype, value.shape)
        for name, value in held.items()
    )
    if fits:
        for name, value in held.items():
            own[name].copy_(value)
    if not fits or program.fingerprint != fingerprint:
        raise ModelError(
            "this module is not the one the model was trained with (its code, layers or "
            f"constants differ; it has {program.num_bits} bits); pass that one"
        )
    return program


def _tensors(tensors: Mapping[str, Tensor], nets: int, weights: int) -> dict[str, Tensor]:
    """The tensors of a file, each of the shape and kind it must have, as a model holds them."""
    octets = (weights + 7) // 8
    count = tensors["networks"].shape[0] if "networks" in tensors else 0
    expected = {
        "best": ((nets, octets), torch.uint8),
        "marginals": ((nets, weights), torch.uint16),
        "networks": ((count, nets, octets), torch.uint8),
        "votes": ((count, nets), torch.int32),
        "calibration": ((nets, LEVELS + 1), torch.uint16),
    }
    if set(tensors) != set(expected):
        raise DataError("the model's tensors are not those of a vitrail model; train again")
    for name, (shape, kind) in expected.items():
        found = tensors[name]
        if tuple(found.shape) != shape or found.dtype != kind:
            raise DataError(
                f"the model's {name} are {found.dtype} of shape {tuple(found.shape)}, expected "
                f"{kind} of {shape}; train again"
            )
    votes, table = tensors["votes"].to(torch.int64), tensors["calibration"].to(torch.int64)
    if not count or bool((votes < 1).any()) or bool((table.diff(dim=1) < 0).any()):
        raise DataError("the model's votes or probabilities are out of range; train again")
    return {
        "best": _unpacked(tensors["best"], weights),
        "marginals": tensors["marginals"].to(torch.int64),
        "networks": _unpacked(tensors["networks"], weights),
        "votes": votes,
        "calibration": table,
    }


def _packed(bits: Tensor) -> Tensor:
    """(…, A) bool as (…, ⌈A/8⌉) uint8, the first bit of an octet lowest."""
    return torch.from_numpy(np.packbits(bits.cpu().numpy(), axis=-1, bitorder="little"))


def _unpacked(octets: Tensor, count: int) -> Tensor:
    bits = np.unpackbits(octets.numpy(), axis=-1, count=count, bitorder="little")
    return torch.from_numpy(bits.astype(bool))


def _sixteen(values: Tensor) -> Tensor:
    return torch.from_numpy(values.cpu().numpy().astype("<u2"))


def _octets(value: Tensor) -> bytes:
    return value.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
