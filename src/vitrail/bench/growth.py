"""How time grows with each size over a decade, and the exponent in the larger half."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from vitrail.bench.cases import KEY, SAMPLES, survey_step
from vitrail.bench.measure import cost
from vitrail.factors import Perceptron, perceptron
from vitrail.graph import factor_graph
from vitrail.updates import flip
from vitrail.updates.base import Backend

DECADE = np.geomspace(0.1, 1.0, 7)


@dataclass(frozen=True)
class Growth:
    """Seconds (of the processor, on a CPU) against one size, the others held."""

    size: str
    values: list[int]
    seconds: list[float]
    exponent: float  # slope of log seconds on log size over the larger half


def growth(device: str, backend: Backend) -> Iterator[Growth]:
    """Time against F, A and samples of `flip`, and survey_samples and bins of S4P; one thread.

    A GPU gets more of everything, so that its work shows above what it takes to launch it; on a
    CPU rows of growing arity are so many that none of the larger half fit its caches.
    """
    wide = device == "cuda"
    few, draws, tracks = (8000, 64, 8000) if wide else (500, SAMPLES, 4000)
    surveys, surveys_of_bins = (16384, 4096) if wide else (256, 256)
    work = {
        "factors": (20 * few, lambda n: _flips(n, 196, draws, device, backend)),
        "arity": (4000, lambda n: _flips(few if wide else 6 * few, n, draws, device, backend)),
        "samples": (504, lambda n: _flips(4 * few if wide else few, 196, n, device, backend)),
        "survey_samples": (tracks, lambda n: _surveys(surveys, n, 101, device, backend)),
        "bins": (800, lambda n: _surveys(surveys_of_bins, 10, n + 1, device, backend)),
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for size, (most, build) in work.items():
            yield _grown(size, [8 * round(most * part / 8) for part in DECADE], build, device)
    finally:
        torch.set_num_threads(threads)


def _grown(
    size: str, values: list[int], build: Callable[[int], Callable[[], object]], device: str
) -> Growth:
    seconds = [cost(build(value), device) for value in values]
    half = len(values) // 2
    slope = np.polyfit(np.log(values[half:]), np.log(seconds[half:]), 1)[0]
    return Growth(size, values, seconds, float(slope))


def _perceptrons(num_factors: int, arity: int) -> Perceptron:
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randint(0, 2, (num_factors, arity), generator=draw) * 2 - 1
    return perceptron(inputs, torch.randint(0, 2, (num_factors,), generator=draw), 3.0)


def _flips(
    num_factors: int, arity: int, samples: int, device: str, backend: Backend
) -> Callable[[], object]:
    factors = _perceptrons(num_factors, arity).to(device)
    belief = torch.linspace(-1, 1, arity, dtype=torch.float64, device=device)
    message = torch.zeros(num_factors, arity, device=device)
    update = flip(samples, backend=backend)
    return lambda: update.messages(KEY, factors, belief, message)


def _surveys(
    num_factors: int, survey_samples: int, bins: int, device: str, backend: Backend
) -> Callable[[], object]:
    graph = factor_graph(_perceptrons(num_factors, 64)).to(device)
    return survey_step(graph, backend, survey_samples, bins)
