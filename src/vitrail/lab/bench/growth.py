"""How time grows with each size over a decade, and the exponent in the larger half."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from vitrail.factors import Network, perceptron
from vitrail.graph import factor_graph
from vitrail.lab.bench.cases import KEY, SAMPLES, survey_step
from vitrail.lab.bench.measure import cost
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


# most factors; rows of growing arity; rows of growing samples; draws; surveys and most tracks;
# surveys of growing bins. A GPU gets more of everything, so that its work shows above what it takes
# to launch it; on a CPU no row of the larger half of growing arity fits into caches.
SIZES = {
    "cpu": (10_000, 3000, 500, SAMPLES, 256, 4000, 256),
    "cuda": (160_000, 8000, 32_000, 64, 16_384, 8000, 4096),
}


def growth(device: str, backend: Backend) -> Iterator[Growth]:
    """Time against F, A and samples of `flip`, and survey_samples and bins of S4P; one thread."""
    factors, arity_rows, sample_rows, draws, track_rows, tracks, bin_rows = SIZES[device]

    def flips(num_factors: int, arity: int, samples: int) -> Callable[[], object]:
        block = _perceptrons(num_factors, arity).to(device)
        belief = torch.linspace(-1, 1, arity, dtype=torch.float64, device=device)
        message = torch.zeros(num_factors, arity, device=device)
        update = flip(samples, backend=backend)
        return lambda: update.messages(KEY, block, belief, message)

    def surveys(num_factors: int, survey_samples: int, bins: int) -> Callable[[], object]:
        graph = factor_graph(_perceptrons(num_factors, 64)).to(device)
        return survey_step(graph, backend, survey_samples, bins)

    work = {
        "factors": (factors, lambda n: flips(n, 196, draws)),
        "arity": (4000, lambda n: flips(arity_rows, n, draws)),
        "samples": (504, lambda n: flips(sample_rows, 196, n)),
        "survey_samples": (tracks, lambda n: surveys(track_rows, n, 101)),
        "bins": (800, lambda n: surveys(bin_rows, 10, n + 1)),
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


def _perceptrons(num_factors: int, arity: int) -> Network:
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randint(0, 2, (num_factors, arity), generator=draw) * 2 - 1
    return perceptron(inputs, torch.randint(0, 2, (num_factors,), generator=draw), 3.0)
