"""How long the default takes: fits of a small and of a large table, and answers by 100 networks.

python benchmarks/speed.py                  # all of it, best of three
python benchmarks/speed.py small answers    # some of it

Kernels are made ready before. The large table has the shape of a census: 48,000 rows of five
numbers and nine columns of categories, and labels that are noise in part. The peak is of the whole
process, with torch; answers are by one thread, from a numpy array to labels.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import torch

from vitrail import BinaryNetClassifier

TIMES = 3
CATEGORIES = (9, 16, 7, 15, 6, 5, 2, 42, 2)  # of a census's columns
ROWS = 20_000  # that are answered


def best(work: Callable[[], object], times: int = TIMES) -> float:
    """The least seconds of some tries."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def small() -> str:
    """1,000 rows × 20 numbers."""
    draws = np.random.default_rng(0)
    rows = draws.normal(size=(1000, 20))
    signal = rows[:, 0] + rows[:, 1] * rows[:, 2] + 0.5 * draws.normal(size=1000)
    labels = (signal > 0).astype(int)
    BinaryNetClassifier(random_state=0).fit(rows[:100], labels[:100])
    return f"{best(lambda: BinaryNetClassifier(random_state=0).fit(rows, labels)):.2f} s"


def census(rows: int = 48_000) -> tuple[pa.Table, np.ndarray]:
    """A table of a census's shape, and labels of which a quarter are 1."""
    draws = np.random.default_rng(0)
    age, hours = draws.integers(17, 91, rows), draws.integers(1, 100, rows)
    weight, gain = draws.lognormal(12, 0.5, rows), draws.exponential(1000, rows)
    years = draws.integers(1, 17, rows)
    table = {"age": age, "weight": weight, "years": years, "gain": gain, "hours": hours}
    score = 0.05 * age + 0.3 * years + 0.03 * hours + (gain > 3000)
    for number, count in enumerate(CATEGORIES):
        column = np.minimum(draws.geometric(1.5 / (count + 1), rows) - 1, count - 1)
        score = score + draws.normal(0, 0.5, count)[column]
        table[f"kind{number}"] = np.array([f"v{k}" for k in range(count)])[column]
    score = score + draws.normal(0, 1.5, rows)
    return pa.table(table), np.where(score > np.quantile(score, 0.75), "more", "less")


def large() -> str:
    """48,000 rows × 14 mixed columns."""
    table, labels = census()
    BinaryNetClassifier(random_state=0).fit(table.slice(0, 100), labels[:100])
    seconds = best(lambda: BinaryNetClassifier(random_state=0).fit(table, labels), times=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return f"{seconds:.1f} s, {peak:.2f} GiB at most"


def answers() -> str:
    """100 networks of 7 hidden units on 150 inputs."""
    draws = np.random.default_rng(0)
    rows = draws.integers(0, 2, (ROWS, 150))
    labels = (rows[:, :9].sum(1) > 4).astype(int)
    net = BinaryNetClassifier(hidden=(7,), predictor="posterior", networks=100, random_state=0)
    net.fit(rows[:2000], labels[:2000])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    seconds = best(lambda: net.predict(rows), times=10)
    torch.set_num_threads(threads)
    return f"{ROWS / seconds:,.0f} rows a second"


MEASURED = {"small": small, "large": large, "answers": answers}

if __name__ == "__main__":
    for name in sys.argv[1:] or MEASURED:
        measure = MEASURED[name]
        print(f"{(measure.__doc__ or '').rstrip('.')}: {measure()}", flush=True)
