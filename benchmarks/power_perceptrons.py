"""Random perceptrons near capacity: how many are solved, and how fast, by stage.

    python benchmarks/power_perceptrons.py --n 501 --alpha 0.6 --count 20
    python benchmarks/power_perceptrons.py --n 501 --alpha 0.5 --update flip --count 10
    python benchmarks/power_perceptrons.py --rivals straight_through annealing cpsat \
        --max-seconds 25

Instances are glass of odd N with seeds from --first on. Two numbers of seconds: of the clock,
and of the processors. Rivals run instead of the portfolio, each within --max-seconds by the
clock; CP-SAT with --workers threads, the others with as many as there are chains and cores.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from typing import Any

from vitrail.graph import FactorGraph
from vitrail.lab.experiments.capacity import SOLVERS, instance
from vitrail.solvers import portfolio, run, run_stages
from vitrail.solvers.portfolio import NAMES
from vitrail.updates import flip

FIRST_SEED = 90_001  # instances nothing was tuned on


def rival(name: str, graph: FactorGraph, seconds: float, seed: int, workers: int) -> Any:
    """One of the baselines within so many seconds; annealing starts anew until they are over."""
    if name == "cpsat":
        from vitrail.baselines.cpsat import cpsat

        solver = cpsat(effort=None, seconds=seconds, workers=workers)
        return run(solver, graph, seed=seed, max_steps=1)
    return SOLVERS[name](graph, seed, seconds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=501)
    parser.add_argument("--alpha", type=float, default=0.6)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--update", choices=["auto", "flip"], default="auto")
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--stages", nargs="*", default=NAMES)
    parser.add_argument("--max-seconds", type=float, default=60.0)
    parser.add_argument("--rivals", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=2, help="threads of CP-SAT")
    args = parser.parse_args()
    num_examples = round(args.alpha * args.n)
    update = flip(args.samples) if args.update == "flip" else None
    rows, rivals = [], {name: [] for name in args.rivals}
    for seed in range(args.first, args.first + args.count):
        graph = instance(args.n, args.alpha, seed)
        if args.rivals:
            for name in args.rivals:
                found = rival(name, graph, args.max_seconds, seed, args.workers)
                missed = round(float(1 - found.best_accuracy) * num_examples)
                rivals[name].append((missed, found.seconds))
                print(
                    f"seed {seed} {name}: {missed} unsatisfied in {found.seconds:.1f} s",
                    flush=True,
                )
            continue
        stages = portfolio(graph, args.stages, update=update, rate=args.rate)
        parts: list[str] = []

        def report(stage: Any, found: Any, parts: list[str] = parts) -> None:
            missed = round(float(1 - found.best_accuracy) * num_examples)
            parts.append(f"{stage.name} {missed} ({found.steps} steps, {found.seconds:.1f} s)")

        begun, cpu = time.perf_counter(), time.process_time()
        found = run_stages(stages, graph, seed=seed, max_seconds=args.max_seconds, on_stage=report)
        clock, cpu = time.perf_counter() - begun, time.process_time() - cpu
        solved = bool(found.solved.all())
        rows.append((solved, found.found_by[0], clock, cpu))
        print(f"seed {seed} solved={solved} {clock:.1f} s (cpu {cpu:.1f} s): {', '.join(parts)}")
    for name, found in rivals.items():
        missed = [row[0] for row in found]
        print(
            f"N={args.n} alpha={args.alpha} {name}: {missed.count(0)} of {len(missed)} solved in "
            f"at most {args.max_seconds:g} s each; median {statistics.median(missed):g} "
            f"unsatisfied ({min(missed)} to {max(missed)}), median "
            f"{statistics.median(row[1] for row in found):.1f} s"
        )
    if rows:
        solved = [row for row in rows if row[0]]
        by_stage = ", ".join(
            f"{count} by {name}" for name, count in Counter(row[1] for row in solved).items()
        )
        print(
            f"N={args.n} alpha={args.alpha} update={args.update}: {len(solved)} of {len(rows)} "
            f"({by_stage}; --stages sbp reinforced s4p leaves flips out); median "
            f"{statistics.median(row[2] for row in rows):.1f} s of the clock, "
            f"{statistics.median(row[3] for row in rows):.1f} s of processors; "
            f"slowest {max(row[2] for row in rows):.1f} s"
        )


if __name__ == "__main__":
    main()
