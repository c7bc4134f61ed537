"""Time and memory of calls, and the ceilings of this machine."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

MIN_SECONDS = 0.3  # for which short calls are repeated
LONG_CALL = 2.0  # seconds; longer calls need no warm-up and are timed once
SHORT_CALL = 0.02  # seconds; shorter ones are queued on a GPU, so that launches overlap
CLEAR_PEAK = "5"  # written to clear_refs, resets the high-water mark on Linux


@dataclass(frozen=True)
class Measured:
    """Median time of a call and the memory it allocated."""

    seconds: float
    peak_bytes: int | None  # None where the system does not report it


def measured(
    work: Callable[[], object], device: str, least: float = MIN_SECONDS, most: int = 15
) -> Measured:
    """Median time of calls, for `least` seconds or `most` calls; of one call where it is long.

    On a GPU short calls are timed in batches of twelve, queued as the steps of a run are.
    """
    peak, first = peak_bytes(work, device)
    if first > LONG_CALL:
        return Measured(first, peak)
    queued = _queued(work, device)
    times: list[float] = []
    while len(times) < 3 or (queued * sum(times) < least and len(times) < most):
        times.append(seconds(work, device, queued))
        if times[-1] > least:
            break
    return Measured(sorted(times)[len(times) // 2], peak)


def least_cost(work: Callable[[], object], device: str, repeats: int = 9) -> float:
    """Least seconds of several calls after a warm-up.

    On a CPU processor time of all threads, which other processes do not affect; on a GPU wall time.
    """
    work()
    if device == "cuda":
        queued = _queued(work, device)
        return min(seconds(work, device, queued) for _ in range(repeats if queued > 1 else 3))
    spent: list[float] = []
    while len(spent) < repeats or sum(spent) < MIN_SECONDS:
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return min(spent)


def _queued(work: Callable[[], object], device: str) -> int:
    """How many calls to time together."""
    return 12 if device == "cuda" and seconds(work, device) < SHORT_CALL else 1


def seconds(work: Callable[[], object], device: str, calls: int = 1) -> float:
    """Mean wall time of `calls` calls; on a GPU until their work is done."""
    _wait(device)
    begun = time.perf_counter()
    for _ in range(calls):
        work()
    _wait(device)
    return (time.perf_counter() - begun) / calls


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def peak_bytes(work: Callable[[], object], device: str) -> tuple[int | None, float]:
    """Peak memory that a call allocates, None if unknown, and its time."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        spent = seconds(work, device)
        return torch.cuda.max_memory_allocated() - before, spent
    try:
        ctypes.CDLL(None).malloc_trim(0)  # free memory that the allocator kept does not count
        Path("/proc/self/clear_refs").write_text(CLEAR_PEAK)
        before = _status("VmRSS")
    except (OSError, AttributeError):
        return None, seconds(work, device)
    spent = seconds(work, device)
    return max(0, _status("VmHWM") - before), spent


def _status(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))


@dataclass(frozen=True)
class Ceilings:
    """Upper bounds on what this machine can do."""

    lanes_per_second: float  # 16-bit lanes of a bare Philox loop
    bytes_per_second: float  # read and written by a copy
    operations_per_second: float  # multiplications and additions of a float32 matrix product


def ceilings(device: str) -> Ceilings:
    """Measure the three, each for some tenths of a second."""
    size = 2**25 if device == "cpu" else 2**29
    source = torch.zeros(size, device=device)
    target = torch.empty_like(source)
    copy = measured(lambda: target.copy_(source), device).seconds
    side = 2048 if device == "cpu" else 8192
    matrix = torch.ones(side, side, device=device)
    product = measured(lambda: matrix @ matrix, device).seconds
    return Ceilings(_philox(device), 8 * size / copy, 2 * side**3 / product)


def _philox(device: str) -> float:
    if device == "cuda":
        from vitrail.kernels.cuda.philox import bare_philox

        lanes = 2**32
    else:
        from vitrail.kernels.cpu.philox import bare_philox

        lanes = 2**26
    made = bare_philox(lanes)
    return made / measured(lambda: bare_philox(lanes), device).seconds
