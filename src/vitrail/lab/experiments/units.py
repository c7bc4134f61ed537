"""Units of work: small, pure, cached on disk, spread over processes.

A unit is a function of plain settings that returns rows of numbers. What is finished is kept as
one JSON file, named by a digest of the function, its settings and the version of vitrail; so a
sweep can be stopped at any time and goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from dataclasses import asdict, dataclass, is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from vitrail import __version__, interrupts
from vitrail.engines import Backend, Failure, run_task, worker_pool

Value = str | int | float | bool | None
Row = dict[str, Value]
Rows = list[Row]

PACKAGES = ("torch", "numpy", "numba", "scikit-learn")
# where units put their graphs; message passing gives the same bits on all devices
DEVICE: ContextVar[str] = ContextVar("DEVICE", default="cpu")


@dataclass(frozen=True)
class Unit:
    """`function(**settings)` gives rows; `cost` is an estimate in seconds of one core."""

    function: Callable[..., Rows]
    settings: dict[str, Any]
    cost: float

    def key(self) -> str:
        """Equal exactly when the unit would give the same rows."""
        named = f"{self.function.__module__}.{self.function.__qualname__}"
        text = json.dumps([__version__, named, plain(self.settings)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def place(self, cache: Path) -> Path:
        """Where its rows are kept."""
        return cache / f"{self.key()}.json"


def unit(function: Callable[..., Rows], cost: float, **settings: Any) -> Unit:
    """`function(**settings)`, which takes about `cost` seconds of one core."""
    return Unit(function, settings, cost)


def plain(value: Any) -> Any:
    """Settings as JSON can hold them: dataclasses become objects, infinity a word."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__, **plain(asdict(value))}
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    return value


@dataclass(frozen=True)
class Done:
    """Rows of a finished unit, the seconds of one core that they took, and where."""

    unit: Unit
    rows: Rows
    seconds: float
    environment: dict[str, str]


class FailedUnitsError(ChildProcessError):
    """Some units failed twice; all the others are done and kept."""


Progress = Callable[[Done], None]


def compute(
    units: Sequence[Unit],
    cache: Path,
    jobs: int,
    progress: Progress = lambda done: None,
    backend: Backend = "processes",
    device: str = "cpu",
) -> list[Done]:
    """All units in order: those in `cache` are read, the others computed and kept.

    jobs: processes; each works with one thread. device: where the factor graphs are. progress:
    called with every unit as it ends. A unit that fails is tried once more; where it fails again
    the others go on, and an error at the end reports it.
    """
    cache = cache.resolve()  # workers may run in another folder
    cache.mkdir(parents=True, exist_ok=True)
    finished: dict[str, Done] = {}
    missing: dict[str, Unit] = {}
    for unit in units:
        kept = _read(unit, cache)
        if kept is None:
            missing[unit.key()] = unit
        elif unit.key() not in finished:
            finished[unit.key()] = kept
            progress(kept)
    # the longest first, so that no process is left with a long one at the end
    todo = sorted(missing.values(), key=lambda unit: -unit.cost)
    failed: list[Failure] = []
    for done in _spread(todo, cache, jobs, backend, device):
        if isinstance(done, Failure):
            failed.append(done)
            continue
        finished[done.unit.key()] = done
        progress(done)
    if failed:
        raise FailedUnitsError(
            f"{len(failed)} of {len(units)} parts failed twice, the first with: "
            f"{failed[0].reason}; the others are kept, and the same command tries these again"
        )
    return [finished[unit.key()] for unit in units]


def _spread(
    units: Sequence[Unit], cache: Path, jobs: int, backend: Backend, device: str
) -> Iterator[Done | Failure]:
    if not units or (backend == "processes" and (jobs == 1 or len(units) == 1)):
        yield from (run_task(_work, unit, cache, device) for unit in units)
        return
    from joblib import delayed

    try:
        with worker_pool(backend, min(jobs, len(units))) as pool:
            for done in pool(delayed(run_task)(_work, unit, cache, device) for unit in units):
                if isinstance(done, Done) and not done.unit.place(cache).exists():
                    _write(done, cache)  # made on a machine with another disk
                yield done
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a worker process was ended from outside, perhaps for lack of memory; give the same "
            "command again, with fewer --jobs if that was it: what is finished is kept"
        ) from error


def _work(unit: Unit, cache: Path, device: str) -> Done:
    before = DEVICE.set(device)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # one process per core; two threads each would be slower by far
    begun = time.process_time()  # of this process alone, whatever else the machine does
    try:
        with interrupts.all_or_nothing():  # what a run has found when it is stopped is no result
            rows = unit.function(**unit.settings)
    finally:
        torch.set_num_threads(threads)
        DEVICE.reset(before)
    done = Done(unit, rows, time.process_time() - begun, environment(device))
    _write(done, cache)
    return done


def _write(done: Done, cache: Path) -> None:
    place = done.unit.place(cache)
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(f".{os.getpid()}.part")
    content = {
        "settings": plain(done.unit.settings),
        "seconds": round(done.seconds, 3),
        "environment": done.environment,
        "rows": done.rows,
    }
    try:
        part.write_text(json.dumps(content), encoding="utf-8")
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)


def _read(unit: Unit, cache: Path) -> Done | None:
    try:
        content = json.loads(unit.place(cache).read_text(encoding="utf-8"))
        return Done(unit, content["rows"], float(content["seconds"]), content["environment"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError):  # cut short by a crash of the machine: compute it again
        return None


@cache
def environment(device: str = "cpu") -> dict[str, str]:
    """What computes here: versions and machine."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    if chip := _chip():
        machine += f", {chip}"
    if device != "cpu":
        machine += f", {torch.cuda.get_device_name(device)}"
    versions = {name: version(name) for name in PACKAGES}
    return {"vitrail": __version__, "python": platform.python_version(), **versions} | {
        "machine": machine
    }


def _chip() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else ""
