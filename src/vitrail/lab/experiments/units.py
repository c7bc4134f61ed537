"""Units of work: small, pure, cached on disk, distributed over processes.

A unit is a function of plain settings that returns rows of numbers. The result of a unit is cached
as a JSON file, named by a digest of the function, its settings and the version of vitrail. So a
sweep can be stopped at any time and resumed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
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


@dataclass(frozen=True)
class Unit:
    """`function(**settings)` gives rows."""

    function: Callable[..., Rows]
    settings: dict[str, Any]

    def key(self) -> str:
        """A digest that is equal exactly for units with equal rows."""
        named = f"{self.function.__module__}.{self.function.__qualname__}"
        text = json.dumps([__version__, named, plain(self.settings)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def place(self, cache: Path) -> Path:
        """The file of its rows."""
        return cache / f"{self.key()}.json"


def unit(function: Callable[..., Rows], **settings: Any) -> Unit:
    """The unit `function(**settings)`."""
    return Unit(function, settings)


def plain(value: Any) -> Any:
    """Settings as JSON values: dataclasses become objects, infinity becomes text."""
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
    """A finished unit: its rows, seconds of one core, and the machine that computed it."""

    unit: Unit
    rows: Rows
    seconds: float
    environment: dict[str, str]


class FailedUnitsError(ChildProcessError):
    """Some units failed twice; the results of all others are saved."""


Progress = Callable[[Done], None]


def compute(
    units: Sequence[Unit],
    cache: Path,
    jobs: int,
    progress: Progress = lambda done: None,
    backend: Backend = "processes",
) -> list[Done]:
    """All units in order: those in `cache` are read, the others computed and saved.

    jobs: processes of one thread each. progress: called with every unit as it ends. A unit that
    fails is retried once; where it fails again the others continue, and an error at the end
    reports it.
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
    failed: list[Failure] = []
    for done in _computed(list(missing.values()), cache, jobs, backend):
        if isinstance(done, Failure):
            failed.append(done)
            continue
        finished[done.unit.key()] = done
        progress(done)
    if failed:
        raise FailedUnitsError(
            f"{len(failed)} of {len(units)} parts failed twice, the first with: "
            f"{failed[0].reason}; the others are saved, and the same command retries these"
        )
    return [finished[unit.key()] for unit in units]


def _computed(
    units: Sequence[Unit], cache: Path, jobs: int, backend: Backend
) -> Iterator[Done | Failure]:
    if not units or (backend == "processes" and (jobs == 1 or len(units) == 1)):
        yield from (run_task(_work, unit, cache) for unit in units)
        return
    from joblib import delayed

    try:
        with worker_pool(backend, min(jobs, len(units))) as pool:
            for done in pool(delayed(run_task)(_work, unit, cache) for unit in units):
                if isinstance(done, Done) and not done.unit.place(cache).exists():
                    _write(done, cache)  # computed on a machine with another disk
                yield done
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a worker process was ended from outside, perhaps for lack of memory; run the same "
            "command again, with fewer --jobs if so: finished results are saved"
        ) from error


def _work(unit: Unit, cache: Path) -> Done:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # there is one process per core; more threads would be slower
    begun = time.process_time()
    try:
        with interrupts.all_or_nothing():  # a stopped run has no result
            rows = unit.function(**unit.settings)
    finally:
        torch.set_num_threads(threads)
    done = Done(unit, rows, time.process_time() - begun, environment())
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
    except (ValueError, KeyError):  # truncated by a crash
        return None


@cache
def environment() -> dict[str, str]:
    """Versions of packages, and the machine."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    if chip := _chip():
        machine += f", {chip}"
    versions = {name: version(name) for name in PACKAGES}
    return {"vitrail": __version__, "python": platform.python_version(), **versions} | {
        "machine": machine
    }


def _chip() -> str:
    """The processor's name, where the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else ""
