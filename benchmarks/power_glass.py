"""The portfolio against the exhaustive optimum on glass, by stage.

python benchmarks/power_glass.py --n 10 31 --count 5
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch

from vitrail.baselines.exhaustive import exhaustive
from vitrail.data import glass
from vitrail.factors import perceptron
from vitrail.graph import factor_graph
from vitrail.solvers import portfolio, run, run_stages
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
        clock, cpu, optima = [], [], []
        for m in range(5, 51, 5):
            for seed in range(args.first, args.first + args.count):
                data = glass(m, n, seed=seed)
                inputs, labels = torch.as_tensor(data.inputs), torch.as_tensor(data.labels)
                graph = factor_graph(perceptron(inputs, labels))
                best = float(run(exhaustive(), graph, max_steps=10**9).best_accuracy)
                reached: dict[str, float] = {}

                def note(stage: Any, found: Any, reached: dict[str, float] = reached) -> None:
                    reached[stage.name] = float(found.best_accuracy)

                begun, worked = time.perf_counter(), time.process_time()
                run_stages(portfolio(graph, stages), graph, seed=seed, on_stage=note)
                clock.append(time.perf_counter() - begun)
                cpu.append(time.process_time() - worked)
                optima.append(best)
                value = 0.0
                for name in stages:
                    value = reached.get(name, value)
                    after[name].append(value)
        parts = [f"{name} {sum(after[name]) / sum(optima):.4f}" for name in stages]
        at = sum(a == b for a, b in zip(after[stages[-1]], optima, strict=True))
        print(
            f"N={n} M=5…50, {len(optima)} instances: of the optimum after each stage "
            f"{', '.join(parts)}; at the optimum {at}; seconds an instance: median "
            f"{statistics.median(clock):.2f}, most {max(clock):.2f} (processors {max(cpu):.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
