"""Speedup by ranks: measured for two on this machine, predicted for up to a thousand.

    python benchmarks/scaling.py [--write docs/scaling.md]

Measures a sweep of belief propagation on one and two ranks of one thread, and the time of a sum
over ranks; then predicts a sweep on many machines. With --write the tables replace those of the
page.

One job of two ranks takes turns: rank 0 alone while the other waits; both together; and each on its
half without communication, the gain of the machine itself from two busy
cores. Data are prepared before and the first step of each turn is not counted; of the others the
fastest is.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness import write_between

EXAMPLES, WEIGHTS = 100_000, 196
ROUNDS = 3  # turns of one rank and of two
CLOCKS = ("clock", "process")
NETWORK = (50e-6, 1.25e9)  # seconds per message, bytes per second: ten gigabit Ethernet
SMALL = (32, 8)  # bytes of the other two sums of a step: largest changes, and scores
RANKS = (1, 4, 16, 64, 256, 1000)
BEGIN, END = "<!-- scaling: begin -->", "<!-- scaling: end -->"


def measure(out: Path) -> None:
    """One rank of a job: seconds of a sweep and of sums."""
    import torch

    from vitrail import factor_graph, perceptron, run
    from vitrail.ranks import joined
    from vitrail.solvers import belief_propagation
    from vitrail.updates import flip

    torch.set_num_threads(1)

    def graphs(examples: int) -> tuple[Any, Any]:
        """All examples, and this rank's half as a problem of its own."""
        draw = torch.Generator().manual_seed(1)
        inputs = torch.randint(0, 2, (examples, WEIGHTS), generator=draw, dtype=torch.int8) * 2 - 1
        labels = torch.randint(0, 2, (examples,), generator=draw)
        half = world.share(examples)
        mine = perceptron(inputs[half].clone(), labels[half], 2.0)
        return factor_graph(perceptron(inputs, labels, 2.0)), factor_graph(mine)

    def steps_of(solver: Any, shared: Any, steps: int) -> list[tuple[float, float]]:
        """Wall-clock and process seconds of each step but the first."""
        marks: list[tuple[float, float]] = []

        def mark(*_: object) -> None:
            marks.append((time.perf_counter(), time.process_time()))

        run(solver, shared, max_steps=steps + 1, on_step=mark)
        return [(after[0] - to[0], after[1] - to[1]) for to, after in pairwise(marks)]

    def seconds(solver: Any, examples: int, steps: int) -> dict[str, Any]:
        """The fastest step of one rank, of two, and of two without communication."""
        whole, half = graphs(examples)
        shared = whole.shared(world)
        found: dict[str, list[tuple[float, float]]] = {"one": [], "two": [], "apart": []}
        for _ in range(ROUNDS):
            if world.first:
                found["one"] += steps_of(solver, whole, steps)
            world.sum(torch.tensor(0))
            found["two"] += steps_of(solver, shared, steps)
            world.sum(torch.tensor(0))
            found["apart"] += steps_of(solver, half, steps)
            world.sum(torch.tensor(0))
        return {
            who: dict(zip(CLOCKS, map(min, zip(*times, strict=True)), strict=True))
            for who, times in found.items()
            if times
        }

    with joined() as world:
        measured: dict[str, Any] = {
            "sweep": seconds(belief_propagation(flip(5)), EXAMPLES, 3),
            "sums": {},
        }
        for size in (1, 1000, 10_000, 100_000, 1_000_000):
            values, times = torch.zeros(size, dtype=torch.float64), []
            for _ in range(30):
                begun = time.perf_counter()
                world.sum(values)
                times.append(time.perf_counter() - begun)
            measured["sums"][8 * size] = statistics.median(times)
        if world.first:
            out.write_text(json.dumps(measured))


def launch() -> dict[str, Any]:
    """The measurements of a job of two ranks."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "measured.json"
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        job = [*torchrun, "--nproc-per-node=2", __file__, "--job", str(out)]
        subprocess.run(job, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return json.loads(out.read_text())


def ring(ranks: int, num_bytes: float, latency: float, bandwidth: float) -> float:
    """Seconds of an all-reduce around a ring: 2·(R − 1) messages of a share each."""
    return 2 * (ranks - 1) * (latency + num_bytes / ranks / bandwidth)


def predicted(work: float, num_bytes: float) -> list[dict[str, float]]:
    """A sweep of `work` seconds on one rank, on each number of ranks."""
    latency, bandwidth = NETWORK
    rows = []
    for ranks in RANKS:
        sums = sum(ring(ranks, size, latency, bandwidth) for size in (num_bytes, *SMALL))
        total = work / ranks + sums
        rows.append({"ranks": ranks, "sums": sums, "sweep": total, "speed": work / total})
    return rows


def best_ranks(work: float) -> int:
    """The number of ranks R for which work/R + 2·R·latency per sum is least."""
    return round(math.sqrt(work / (2 * (1 + len(SMALL)) * NETWORK[0])))


def page(measured: dict[str, Any]) -> str:
    """The tables, as Markdown."""
    lines = [
        "| one thread per rank | one rank | two ranks | gain | no communication | gain |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for clock, by in zip(CLOCKS, ("wall-clock", "process time"), strict=True):
        alone, both, apart = (measured["sweep"][who][clock] for who in ("one", "two", "apart"))
        lines.append(
            f"| a sweep, {EXAMPLES:,} examples × {WEIGHTS} weights, {by} | {alone:.3f} s "
            f"| {both:.3f} s | {alone / both:.2f} | {apart:.3f} s | {alone / apart:.2f} |"
        )
    lines += ["", "| bytes summed over two ranks | time |", "|---:|---:|"]
    lines += [f"| {int(size):,} | {1e6 * t:,.0f} µs |" for size, t in measured["sums"].items()]
    num_bytes = 8 * WEIGHTS
    for scale, what in ((1, f"{EXAMPLES:,}"), (1000, f"{1000 * EXAMPLES:,}")):
        work = scale * measured["sweep"]["one"]["process"]
        lines += [
            "",
            f"Predicted for a sweep of {what} examples and {WEIGHTS} weights; it is fastest on "
            f"{best_ranks(work):,} ranks:",
            "",
            "| ranks | sums | sweep | speedup |",
            "|---:|---:|---:|---:|",
        ]
        lines += [
            f"| {row['ranks']:,} | {1e3 * row['sums']:.2f} ms | {row['sweep']:.4g} s "
            f"| {row['speed']:.1f} |"
            for row in predicted(work, num_bytes)
        ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--job", type=Path)
    options = parser.parse_args()
    if options.job is not None:
        measure(options.job)
        return
    text = page(launch())
    print(text)
    if options.write is not None:
        write_between(options.write, BEGIN, END, text)


if __name__ == "__main__":
    main()
