"""Our updates against Algorithm 1 as printed, in one process.

Prints, and fails when a promise is broken:
  flip on perceptrons (torch) is ≥ 100 times faster than pinned at F=2000, A=196, samples 5;
  counting on the 89-weight conv net beats pinned (samples 5) ≥ 50 times in time × squared error;
  flip and counting on F=12,665, A=196 hold < 1 GiB beyond the messages themselves.

    python benchmarks/updates.py
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import torch

from vitrail.data import mnist
from vitrail.factors import Factors, network, perceptron
from vitrail.nn import paper_conv
from vitrail.random import Key
from vitrail.updates import CavityUpdate, counting, flip, pinned


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Median time of a call, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return sorted(times)[repeats // 2]


def cavities(factors: Factors, spread: float = 1.0) -> torch.Tensor:
    """Cavities of an early step: log-odds from a normal."""
    generator = torch.Generator().manual_seed(0)
    shape = (factors.num_factors, 1, factors.arity)
    return spread * torch.randn(shape, generator=generator, dtype=torch.float64)


def log_odds(update: CavityUpdate, factors: Factors, cavity: torch.Tensor) -> torch.Tensor:
    """Clipped messages (F, 1, A) of an update."""
    estimate = update.estimate(Key(1), factors, cavity)
    return (estimate.log_one - estimate.log_zero).clamp(-update.limit, update.limit)


def peak_bytes() -> int:
    """High-water mark of this process's memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def speed_of_flips() -> float:
    """How many times faster than Algorithm 1 flips are on perceptrons."""
    data = mnist(pair=(0, 1))
    factors = perceptron(data.inputs[:2000], data.labels[:2000], beta=2.0)
    cavity = cavities(factors)
    fast = seconds(lambda: flip(5, backend="torch").estimate(Key(1), factors, cavity), 7)
    part = factors.select(torch.arange(200))  # 2·A·S evaluations: a tenth tells the time
    slow = 10 * seconds(lambda: pinned(5).estimate(Key(1), part, cavity[:200]), 3)
    print(f"perceptron F=2000 A=196 S=5   pinned {slow:8.3f} s   flip {fast:8.4f} s")
    return slow / fast


def efficiency_of_counting() -> float:
    """Time × squared error of Algorithm 1 over that of counting, on the conv net."""
    data = mnist(pair=(0, 1)).shaped()
    factors = network(paper_conv(), data.inputs[:200], data.labels[:200], beta=3.0)
    cavity = cavities(factors)
    truth = log_odds(flip(3000), factors, cavity)
    rows = {}
    for name, update in (("pinned", pinned(5)), ("counting", counting(64))):
        error = (log_odds(update, factors, cavity) - truth).square().mean()
        spent = seconds(lambda update=update: update.estimate(Key(1), factors, cavity), 3)
        rows[name] = float(error) * spent
        print(f"conv A=89 F=200 {name:9s} {spent:8.4f} s   rms error {float(error) ** 0.5:.3f}")
    return rows["pinned"] / rows["counting"]


def memory_of_a_sweep() -> float:
    """GiB that flip and counting hold beyond messages and cavities."""
    data = mnist(pair=(0, 1))
    factors = perceptron(data.inputs, data.labels, beta=2.0)
    cavity = cavities(factors)
    before = peak_bytes()
    for update in (flip(5), counting(64)):
        update.estimate(Key(1), factors, cavity)
    messages = 3 * cavity.numel() * 8  # log p̃(1), log p̃(0) and the cavities
    return (peak_bytes() - before - messages) / 2**30


if __name__ == "__main__":
    gibibytes = memory_of_a_sweep()
    promises = [
        ("memory beyond the messages, GiB (< 1)", gibibytes, gibibytes < 1.0),
    ]
    speed = speed_of_flips()
    promises.append(("flip over pinned, times faster (≥ 100)", speed, speed >= 100))
    gain = efficiency_of_counting()
    promises.append(("counting over pinned, time × squared error (≥ 50)", gain, gain >= 50))
    for line, value, kept in promises:
        print(f"{'kept  ' if kept else 'BROKEN'} {line}: {value:.2f}")
    sys.exit(0 if all(kept for *_, kept in promises) else 1)
