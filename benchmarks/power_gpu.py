"""Random perceptrons at the frontier on one GPU: all instances of a line side by side.

    python benchmarks/power_gpu.py                 # every line, about six minutes
    python benchmarks/power_gpu.py --lines 0 1 --device cpu --n 201 --count 3

Reinforced belief propagation alone; what polish adds to the unsolved is told apart.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import torch

from vitrail.data import glass
from vitrail.factors import perceptron
from vitrail.graph import factor_graph, join
from vitrail.random import Key
from vitrail.solvers import Reinforced, portfolio, run, run_stages
from vitrail.updates import closed_form

FIRST_SEED = 90_001  # instances nothing was tuned on
SCRATCH = 8 * 2**30  # bytes that one update may hold on the device


@dataclass(frozen=True)
class Line:
    """One promise, and how to go about it."""

    n: int
    alpha: float
    count: int
    rate: float
    attempts: int
    limit: float  # seconds for all instances together
    wanted: str


LINES = (
    Line(1001, 0.72, 20, 0.001, 4, 50.0, "20 of 20"),
    Line(1001, 0.74, 20, 0.0005, 4, 120.0, "18 of 20"),
    Line(1001, 0.76, 20, 0.0005, 4, 90.0, "8 of 20 (target)"),
    Line(10_001, 0.74, 5, 0.001, 2, 100.0, "4 of 5 (target)"),
)


def measure(line: Line, device: str) -> str:
    """Solve all instances of a line and say how it went."""
    num_examples = round(line.alpha * line.n)
    begun = time.perf_counter()
    graphs = []
    for seed in range(FIRST_SEED, FIRST_SEED + line.count):
        data = glass(num_examples, line.n, seed=seed)
        block = perceptron(torch.as_tensor(data.inputs), torch.as_tensor(data.labels))
        graphs.append(factor_graph(block))
    graph = join(graphs).to(device)
    made = time.perf_counter() - begun
    update = closed_form("gaussian", memory=SCRATCH)
    stages = portfolio(
        graph, ("reinforced",), update=update, rate=line.rate, attempts=line.attempts
    )
    assert isinstance(stages[0].solver, Reinforced)
    found = run_stages(stages, graph, seed=1, max_seconds=line.limit)
    missed = ((1 - found.best_accuracy.cpu()) * num_examples).round().long()
    solved = int((missed == 0).sum())
    best = found.history["best"].cpu()
    done = (best >= 1).any(0)
    first = (best >= 1).long().argmax(0)[done] + 1
    left = missed[missed > 0].tolist()
    (polish,) = portfolio(graph, ("polish",), flips=200_000)
    assert polish.start is not None
    start = polish.start(Key(2), graph, found)
    polished = run(polish.solver, graph, seed=2, max_steps=4, state=start, after=found)
    both = int(polished.solved.sum())
    pace = 1000 * found.seconds / max(1, found.steps)
    return (
        f"N={line.n} alpha={line.alpha}: solved {solved} of {line.count} (wanted {line.wanted}), "
        f"{both} with polish; {found.seconds:.1f} s for all, {found.steps} steps of {pace:.1f} ms; "
        f"median step of a solution {int(first.median()) if solved else '-'}; "
        f"unsatisfied in the others {left}; attempts {found.history['attempt'][-1].tolist()}; "
        f"made in {made:.1f} s"
    )


def main() -> None:
    """Measure the lines asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, nargs="*", default=list(range(len(LINES))))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--n", type=int)
    parser.add_argument("--count", type=int)
    args = parser.parse_args()
    if args.device == "cuda":
        print(torch.cuda.get_device_name())
    for number in args.lines:
        line = LINES[number]
        if args.n or args.count:
            line = Line(
                args.n or line.n,
                line.alpha,
                args.count or line.count,
                line.rate,
                line.attempts,
                line.limit,
                line.wanted,
            )
        print(measure(line, args.device), flush=True)


if __name__ == "__main__":
    main()
