"""What ranks gain: measured on this machine, and foretold for a thousand.

    python benchmarks/scaling.py [--write docs/scaling.md]

Measures a sweep of belief propagation and an epoch of streaming on one and two ranks of one
thread, and how long ranks take to add up vectors; then works out, and simulates, a sweep on many
machines. With --write the tables replace those of the page.

One job of two ranks does all, in turn: rank 0 alone, while the other waits; both together; and each
its half in batches of half the size, without a word to the other, which is what the machine itself
gains by two busy cores. Data are made before, and the first step of each turn, which starts things,
is left out. Of all others the fastest counts: what else runs on a machine only makes steps slower.
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

import numpy as np
from harness import write_between

EXAMPLES, WEIGHTS = 100_000, 196
STREAM, BATCH = 1_000_000, 8192
ROUNDS = 3  # turns that one rank and two take
CLOCKS = ("clock", "process")
NETWORK = (50e-6, 1.25e9)  # seconds per message, bytes per second: ten gigabit Ethernet
SMALL = (32, 8)  # bytes of the other two meetings of a step: largest changes, and scores
RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
JITTER = 0.2  # of a message's time, exponential, in the simulation
BEGIN, END = "<!-- scaling: begin -->", "<!-- scaling: end -->"


def measure(out: Path) -> None:
    """One rank of a job: seconds of a sweep, of an epoch of streaming, of sums."""
    import torch

    from vitrail import factor_graph, perceptron, run
    from vitrail.ranks import joined
    from vitrail.solvers import belief_propagation, streaming
    from vitrail.updates import closed_form, flip

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
        """Seconds of each step but the first, by the clock and of this process."""
        marks: list[tuple[float, float]] = []

        def mark(*_: object) -> None:
            marks.append((time.perf_counter(), time.process_time()))

        run(solver, shared, max_steps=steps + 1, on_step=mark)
        return [(after[0] - to[0], after[1] - to[1]) for to, after in pairwise(marks)]

    def seconds(solver: Any, for_half: Any, examples: int, steps: int) -> dict[str, Any]:
        """The fastest step of one rank, of two, and of two that never meet."""
        whole, half = graphs(examples)
        shared = whole.shared(world)
        found: dict[str, list[tuple[float, float]]] = {"one": [], "two": [], "apart": []}
        for _ in range(ROUNDS):
            if world.first:
                found["one"] += steps_of(solver, whole, steps)
            world.sum(torch.tensor(0))
            found["two"] += steps_of(solver, shared, steps)
            world.sum(torch.tensor(0))
            found["apart"] += steps_of(for_half, half, steps)
            world.sum(torch.tensor(0))
        return {
            who: dict(zip(CLOCKS, map(min, zip(*times, strict=True)), strict=True))
            for who, times in found.items()
            if times
        }

    with joined() as world:
        sweep = belief_propagation(flip(5))
        whole, half = (
            streaming(closed_form("gaussian"), batch=size, batches=-(-STREAM // BATCH))
            for size in (BATCH, BATCH // 2)
        )
        told: dict[str, Any] = {
            "sweep": seconds(sweep, sweep, EXAMPLES, 3),
            "stream": seconds(whole, half, STREAM, 2),
            "sums": {},
        }
        for size in (1, 1000, 10_000, 100_000, 1_000_000):
            values, times = torch.zeros(size, dtype=torch.float64), []
            for _ in range(30):
                begun = time.perf_counter()
                world.sum(values)
                times.append(time.perf_counter() - begun)
            told["sums"][8 * size] = statistics.median(times)
        if world.first:
            out.write_text(json.dumps(told))


def launched() -> dict[str, Any]:
    """What a job of two ranks measured."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "told.json"
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        job = [*launch, "--nproc-per-node=2", __file__, "--job", str(out)]
        subprocess.run(job, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return json.loads(out.read_text())


def ring(ranks: int, num_bytes: float, latency: float, bandwidth: float) -> float:
    """Seconds of an all-reduce around a ring: 2·(R − 1) messages of a share each."""
    return 2 * (ranks - 1) * (latency + num_bytes / ranks / bandwidth)


def simulated(ranks: int, num_bytes: float, latency: float, bandwidth: float, seed: int) -> float:
    """The same, message by message: a rank sends on when it has got what it waits for."""
    draw = np.random.default_rng(seed)
    ready = np.zeros(ranks)
    message = latency + num_bytes / ranks / bandwidth
    for _ in range(2 * (ranks - 1)):
        arrived = ready + message * (1 + JITTER * draw.exponential(size=ranks))
        ready = np.maximum(arrived, np.roll(arrived, 1))
    return float(ready.max())


def foretold(work: float, num_bytes: float) -> list[dict[str, float]]:
    """A sweep that takes `work` seconds alone, on more and more ranks."""
    latency, bandwidth = NETWORK
    rows = []
    for ranks in RANKS:
        sums = sum(ring(ranks, size, latency, bandwidth) for size in (num_bytes, *SMALL))
        trials = [
            sum(simulated(ranks, n, latency, bandwidth, seed) for n in (num_bytes, *SMALL))
            for seed in range(5)
        ]
        total = work / ranks + sums
        rows.append(
            {
                "ranks": ranks,
                "sums": sums,
                "simulated": statistics.mean(trials),
                "sweep": total,
                "speed": work / total,
            }
        )
    return rows


def best_ranks(work: float) -> int:
    """Where adding ranks stops paying: work/R + 2·R·latency a sum is least."""
    return round(math.sqrt(work / (2 * (1 + len(SMALL)) * NETWORK[0])))


def page(told: dict[str, Any]) -> str:
    """The tables, as Markdown."""
    lines = [
        "| measured here, of one thread | one rank | two ranks | gain | two apart | gain |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, what in (
        ("sweep", f"a sweep, {EXAMPLES:,} examples × {WEIGHTS} weights"),
        ("stream", f"an epoch of streaming, {STREAM:,} × {WEIGHTS}, batches of {BATCH:,}"),
    ):
        for clock, by in zip(CLOCKS, ("by the clock", "of each process"), strict=True):
            alone, both, apart = (told[name][who][clock] for who in ("one", "two", "apart"))
            lines.append(
                f"| {what}, {by} | {alone:.3f} s | {both:.3f} s | {alone / both:.2f} "
                f"| {apart:.3f} s | {alone / apart:.2f} |"
            )
    lines += ["", "| bytes added up by two ranks | time |", "|---:|---:|"]
    lines += [f"| {int(size):,} | {1e6 * t:,.0f} µs |" for size, t in told["sums"].items()]
    num_bytes = 8 * WEIGHTS
    for scale, what in ((1, f"{EXAMPLES:,}"), (1000, f"{1000 * EXAMPLES:,}")):
        work = scale * told["sweep"]["one"]["process"]
        lines += [
            "",
            f"A sweep of {what} examples, {WEIGHTS} weights, foretold; more than "
            f"{best_ranks(work):,} ranks do not pay:",
            "",
            "| ranks | sums | simulated | sweep | times as fast |",
            "|---:|---:|---:|---:|---:|",
        ]
        lines += [
            f"| {row['ranks']:,} | {1e3 * row['sums']:.2f} ms | {1e3 * row['simulated']:.2f} ms "
            f"| {row['sweep']:.4g} s | {row['speed']:.1f} |"
            for row in foretold(work, num_bytes)
        ]
    return "\n".join(lines)


def main() -> None:
    """As a program."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--write", type=Path)
    asked.add_argument("--job", type=Path)
    given = asked.parse_args()
    if given.job is not None:
        measure(given.job)
        return
    text = page(launched())
    print(text)
    if given.write is not None:
        write_between(given.write, BEGIN, END, text)


if __name__ == "__main__":
    main()
