"""Random perceptrons at the frontier on one GPU: rounds of copies, all instances side by side.

    python benchmarks/power_gpu.py                 # every line, about eight minutes
    python benchmarks/power_gpu.py --lines 0 1 --device cpu --n 201 --count 3

Reinforced belief propagation alone; which of the unsolved local search would solve is told apart.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import torch

from vitrail.graph import FactorGraph
from vitrail.lab.experiments.capacity import instance
from vitrail.solvers import Stage, portfolio, run_copies, run_stages
from vitrail.updates import closed_form

FIRST_SEED = 95_001  # instances nothing was tuned on
SCRATCH = 8 * 2**30  # bytes that one update may hold on the device


@dataclass(frozen=True)
class Line:
    """One promise, and how to go about it."""

    n: int
    alpha: float
    count: int
    rate: float
    first: int  # copies in the first round
    edges: int  # room for all copies of a later round
    limit: float  # seconds for all instances together
    wanted: str


LINES = (
    Line(1001, 0.72, 20, 0.001, 4, 120_000_000, 60.0, "20 of 20"),
    Line(1001, 0.74, 20, 0.001, 8, 120_000_000, 120.0, "18 of 20"),
    Line(1001, 0.76, 20, 0.001, 8, 120_000_000, 120.0, "8 of 20 (target)"),
    Line(10_001, 0.74, 5, 0.001, 1, 400_000_000, 150.0, "4 of 5 (target)"),
)


def measure(line: Line, device: str, seed: int) -> str:
    """Solve all instances of a line and say how it went."""
    num_examples = round(line.alpha * line.n)
    graphs = [instance(line.n, line.alpha, number) for number in range(seed, seed + line.count)]

    def stages(graph: FactorGraph) -> tuple[Stage, ...]:
        update = closed_form("gaussian", memory=SCRATCH)
        return portfolio(graph, ("reinforced",), update=update, rate=line.rate, attempts=1)

    found = run_copies(
        stages, graphs, edges=line.edges, first=line.first, max_seconds=line.limit,
        max_rounds=1000, device=device, seed=1,
    )  # fmt: skip
    solved = int(found.solved.sum())
    left = [graph for graph, done in zip(graphs, found.solved.tolist(), strict=True) if not done]
    both = solved + sum(
        bool(run_stages(portfolio(graph, ("polish",)), graph, seed=2).solved.all())
        for graph in left
    )
    missed = ((1 - found.best_accuracy[~found.solved]) * num_examples).round().long().tolist()
    return (
        f"N={line.n} alpha={line.alpha}: solved {solved} of {line.count} (wanted {line.wanted}), "
        f"{both} with those that local search alone solves; {float(found.seconds.max()):.1f} s for "
        f"all; copies {found.copies.tolist()}, of which solved {found.solving.tolist()}; "
        f"unsatisfied in the others {missed}"
    )


def main() -> None:
    """Measure the lines asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, nargs="*", default=list(range(len(LINES))))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--n", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    args = parser.parse_args()
    if args.device == "cuda":
        print(torch.cuda.get_device_name())
    for number in args.lines:
        line = LINES[number]
        line = replace(line, n=args.n or line.n, count=args.count or line.count)
        print(measure(line, args.device, args.seed), flush=True)


if __name__ == "__main__":
    main()
