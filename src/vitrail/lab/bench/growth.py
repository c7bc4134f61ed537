"""How time grows with each size over a decade, and the exponent in the larger half."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from vitrail.factors import Network, perceptron
from vitrail.graph import factor_graph
from vitrail.lab.bench.cases import KEY, SAMPLES, BenchRow, survey_step
from vitrail.lab.bench.measure import least_cost
from vitrail.updates import flip
from vitrail.updates.base import Backend

DECADE = np.geomspace(0.1, 1.0, 7)
# Largest number of factors; rows while the arity grows; rows while samples grow; draws per message;
# rows and largest number of survey samples; rows while bins grow. A GPU gets more work, so that it
# outweighs kernel launches; on a CPU no row of the larger half of growing arity fits into caches.
SIZES = {
    "cpu": (10_000, 3000, 500, SAMPLES, 256, 4000, 256),
    "cuda": (160_000, 8000, 32_000, 64, 16_384, 8000, 4096),
}


def growth(device: str, backend: Backend) -> Iterator[BenchRow]:
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
        "factors": ("bp", factors, lambda n: flips(n, 196, draws)),
        "arity": ("bp", 4000, lambda n: flips(arity_rows, n, draws)),
        "samples": ("bp", 504, lambda n: flips(sample_rows, 196, n)),
        "survey_samples": ("s4p", tracks, lambda n: surveys(track_rows, n, 101)),
        "bins": ("s4p", 800, lambda n: surveys(bin_rows, 10, n + 1)),
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for size, (solver, most, build) in work.items():
            values = [8 * round(most * part / 8) for part in DECADE]
            times = [least_cost(build(value), device) for value in values]
            yield BenchRow(
                *("linear", solver, "flip", backend, device, SAMPLES, 0, times[-1]),
                size=size,
                values=values,
                times=times,
                exponent=exponent(values, times),
            )
    finally:
        torch.set_num_threads(threads)


def exponent(values: list[int], times: list[float]) -> float:
    """Slope of log time on log size over the larger half."""
    half = len(values) // 2
    return float(np.polyfit(np.log(values[half:]), np.log(times[half:]), 1)[0])


def _perceptrons(num_factors: int, arity: int) -> Network:
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randint(0, 2, (num_factors, arity), generator=draw) * 2 - 1
    return perceptron(inputs, torch.randint(0, 2, (num_factors,), generator=draw), 3.0)
