"""A run in one safetensors file: written atomically, the last two kept, resumed bit for bit.

Draws are a pure function of (seed, step), so only tensors and the step number are saved.
"""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from vitrail.fingerprint import FingerprintError, fingerprint
from vitrail.ranks import ALONE, World

FORMAT = "vitrail-checkpoint-3"
DIGEST = 12  # digits of a run's digest in file names
StateT = TypeVar("StateT")


class CheckpointError(ValueError):
    """A checkpoint cannot be used; the message says why and what to do."""


class DamagedError(CheckpointError):
    """A checkpoint cannot be read; the previous one may be usable."""


def previous_path(path: Path) -> Path:
    """Path of the checkpoint before the last one."""
    return path.with_name(path.name + ".previous")


def write(path: Path, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
    """Write, flush to disk, rename; an existing file becomes the previous one."""
    tensors = _without_shared_memory(
        {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    )
    meta = {"format": FORMAT, **meta}
    meta["digest"] = _digest(tensors, meta)
    temporary = path.with_name(path.name + ".writing")
    try:
        with open(temporary, "wb") as file:
            file.write(save(tensors, metadata={"vitrail": json.dumps(meta)}))
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.replace(path, previous_path(path))
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise CheckpointError(
            f"cannot write the checkpoint {path}: {error.strerror or error}; "
            "free some space or choose another place"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and metadata of a checkpoint; CheckpointError when it is damaged or foreign."""
    try:
        with safe_open(path, framework="pt") as file:
            meta = json.loads((file.metadata() or {}).get("vitrail", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no iterator)
    except PermissionError as error:
        raise CheckpointError(f"the checkpoint {path} may not be read; choose another") from error
    except (OSError, SafetensorError, ValueError) as error:
        raise DamagedError(f"the checkpoint {path} is damaged or cut short ({error})") from error
    if not isinstance(meta, dict):
        raise DamagedError(f"the checkpoint {path} is damaged: its metadata are missing")
    if meta.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is not a checkpoint of this version of vitrail; start the run again with "
            "another file, or finish it with the version that wrote it"
        )
    if meta.get("digest") != _digest(tensors, meta):
        raise DamagedError(
            f"the checkpoint {path} is damaged: its contents do not match its digest"
        )
    return tensors, meta


def read_latest(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The last good checkpoint at `path`, the previous one if the last is damaged, else None."""
    if path.is_dir():
        raise CheckpointError(
            f"the checkpoint {path} is a folder; name a file in it, such as {path / 'run.ckpt'}"
        )
    if not path.parent.is_dir():
        raise CheckpointError(
            f"the folder of the checkpoint {path} is not there; make it, or choose another place"
        )
    candidates = [place for place in (path, previous_path(path)) if place.exists()]
    for place in candidates:
        try:
            return read(place)
        except DamagedError as error:
            if place == candidates[-1]:
                raise CheckpointError(f"{error}; choose another file for a new run") from error
            warnings.warn(f"{error}; going on from {candidates[-1]}", RuntimeWarning, stacklevel=2)
    return None


def flatten(value: Any, name: str = "state") -> dict[str, Tensor]:
    """The tensors inside nested dataclasses and tuples, by dotted name."""
    if isinstance(value, Tensor):
        return {name: value}
    if isinstance(value, tuple):
        parts = [flatten(part, f"{name}.{i}") for i, part in enumerate(value)]
    else:
        fields = dataclasses.fields(value)
        parts = [flatten(getattr(value, f.name), f"{name}.{f.name}") for f in fields]
    return {key: tensor for part in parts for key, tensor in part.items()}


def per_factor_names(value: Any, name: str = "state") -> set[str]:
    """Names, as in `flatten`, of the tensors marked `PER_FACTOR`."""
    names: set[str] = set()
    for part in dataclasses.fields(value):
        inner, inner_name = getattr(value, part.name), f"{name}.{part.name}"
        if part.metadata.get("per") == "factor":
            names |= flatten(inner, inner_name).keys()
        elif dataclasses.is_dataclass(inner):
            names |= per_factor_names(inner, inner_name)
    return names


def gather_state(state: Any, world: World) -> dict[str, Tensor]:
    """`flatten` of the state of all ranks at rank 0; other ranks leave out tensors per factor."""
    tensors, shared = flatten(state), per_factor_names(state)
    for name in sorted(shared):
        whole = world.gather(tensors.pop(name))
        if whole is not None:
            tensors[name] = whole
    return tensors


def own_rows(tensors: dict[str, Tensor], state: Any, world: World) -> dict[str, Tensor]:
    """Tensors of a checkpoint, reduced to this rank's factors."""
    shared = per_factor_names(state)
    return {
        name: value[world.share(len(value))].contiguous() if name in shared else value
        for name, value in tensors.items()
    }


def unflatten(like: StateT, tensors: dict[str, Tensor], name: str = "state") -> StateT:
    """A value shaped like `like` with the tensors of that name; the inverse of `flatten`."""
    if isinstance(like, Tensor):
        stored = tensors.get(name)
        if stored is None or stored.shape != like.shape or stored.dtype != like.dtype:
            raise CheckpointError(
                f"the checkpoint does not fit this solver and graph at {name!r}; "
                "resume with the settings it was written with, or choose another file"
            )
        return stored.to(like.device)  # pyright: ignore[reportReturnType] (a T like `like`)
    if isinstance(like, tuple):
        parts = (unflatten(part, tensors, f"{name}.{i}") for i, part in enumerate(like))
        return tuple(parts)  # pyright: ignore[reportReturnType] (so is this)
    # states are made of tensors, tuples and dataclasses, which no type variable says
    fields = dataclasses.fields(like)  # pyright: ignore[reportArgumentType]
    parts = {f.name: unflatten(getattr(like, f.name), tensors, f"{name}.{f.name}") for f in fields}
    return dataclasses.replace(like, **parts)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Checkpoint:
    """The file of one run, written by rank 0."""

    path: Path
    run: str  # digest that identifies the run
    world: World = ALONE

    def save(self, tensors: dict[str, Tensor], **meta: Any) -> None:
        """Write the file at rank 0; other ranks do nothing."""
        if self.world.first:
            write(self.path, tensors, {"run": self.run, **meta})

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The last save; an error if it belongs to another run or ranks see different files."""
        found = read_latest(self.path)
        number = -1 if found is None else int(found[1]["digest"][:DIGEST], 16)
        last, first = self.world.max(torch.tensor([number, -number], dtype=torch.float64))[0]
        if last != -first:
            raise CheckpointError(
                f"ranks see different checkpoints at {self.path}; put it on a disk that all share"
            )
        if found is not None and found[1].get("run") != self.run:
            raise CheckpointError(
                f"the checkpoint {self.path} belongs to another run (solver, data, seed or start "
                "differ); choose another file"
            )
        return found


def remove(path: Path) -> None:
    """Delete the files of a run that has ended."""
    for file in (path, previous_path(path)):
        file.unlink(missing_ok=True)


def checkpoint_path(path: str | Path, digest: str) -> str:
    """The path with the digest appended: runs of other data or settings use other files."""
    return f"{path}.{digest[:DIGEST]}"


def run_digest(world: World, *values: Any) -> str:
    """Digest of solver, data, seed and start, which identifies a run; the same at every rank."""
    try:
        return world.broadcast(fingerprint(*values))
    except FingerprintError as error:
        raise CheckpointError(
            f"{error}, so a checkpoint could be taken for another run's; hold data in tensors or "
            "arrays and write functions in Python, or run without a checkpoint"
        ) from error


def _without_shared_memory(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, cloned where they share memory, as the file format requires."""
    seen: set[int] = set()
    separate = {}
    for name, value in tensors.items():
        place = value.untyped_storage().data_ptr()
        separate[name] = value.clone() if place in seen else value
        seen.add(place)
    return separate


def _digest(tensors: dict[str, Tensor], meta: dict[str, Any]) -> str:
    """Digest of everything else in the file."""
    meta = {name: value for name, value in meta.items() if name != "digest"}
    parts = (part for name in sorted(tensors) for part in (name, tensors[name]))
    return fingerprint(json.dumps(meta, sort_keys=True), *parts)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
