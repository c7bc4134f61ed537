"""The portfolio against the exhaustive optimum on glass, by stage.

python benchmarks/power_glass.py --n 10 31 --count 5
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from vitrail.baselines import optima
from vitrail.datasets import glass
from vitrail.lab.experiments.tasks import linear_graph
from vitrail.solvers import portfolio, run_stages
from vitrail.solvers.portfolio import NAMES

FIRST_SEED = 70_001  # instances nothing was tuned on


def main() -> None:
    """Measure and print one line for each size, then one for all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="*", default=[10, 31])
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--stages", nargs="*", default=NAMES)
    args = parser.parse_args()
    for n in args.n:
        stages = tuple(name for name in NAMES if name in args.stages)
        after: dict[str, list[float]] = {name: [] for name in stages}
        clock, cpu, optimal = [], [], []
        for m in range(5, 51, 5):
            for seed in range(args.first, args.first + args.count):
                graph = linear_graph([glass(m, n, seed=seed)])
                (best,) = (one.accuracy for one in optima(graph))
                reached: dict[str, float] = {}

                def note(stage: Any, found: Any, reached: dict[str, float] = reached) -> None:
                    reached[stage.name] = float(found.best_accuracy)

                begun, worked = time.perf_counter(), time.process_time()
                run_stages(portfolio(graph, stages), graph, seed=seed, on_stage=note)
                clock.append(time.perf_counter() - begun)
                cpu.append(time.process_time() - worked)
                optimal.append(best)
                value = 0.0
                for name in stages:
                    value = reached.get(name, value)
                    after[name].append(value)
        parts = [f"{name} {sum(after[name]) / sum(optimal):.4f}" for name in stages]
        at = sum(a == b for a, b in zip(after[stages[-1]], optimal, strict=True))
        print(
            f"N={n} M=5…50, {len(optimal)} instances: of the optimum after each stage "
            f"{', '.join(parts)}; at the optimum {at}; seconds an instance: median "
            f"{statistics.median(clock):.2f}, most {max(clock):.2f} (processors {max(cpu):.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
