"""Problems that the portfolio solves, and its time: the tables of docs/solving.md.

    python benchmarks/solving.py glass --n 10 31 --count 5
    python benchmarks/solving.py linear --pairs 3-5 4-9     # MNIST, against annealing
    python benchmarks/solving.py nets                       # conv and MLP against straight-through
    python benchmarks/solving.py gpu                        # copies side by side, eight minutes

Seeds of the instances were not used for tuning. Seconds are wall-clock and processor time. For the
share of random perceptrons that a solver solves, see `vitrail capacity`.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import torch
from harness import parser_of, save_record, timer

from vitrail.baselines import optima, straight_through
from vitrail.baselines.annealing import annealing
from vitrail.datasets import glass as glass_data
from vitrail.datasets import mnist
from vitrail.factors import network, perceptron
from vitrail.graph import factor_graph
from vitrail.lab.experiments.capacity import trials
from vitrail.lab.experiments.experiment import column
from vitrail.lab.experiments.tasks import linear_graph
from vitrail.nn import paper_conv, paper_mlp
from vitrail.solvers import portfolio, run, run_stages
from vitrail.solvers.portfolio import NAMES

FIRST_SEED = {"glass": 70_001, "gpu": 95_001}
FLIPS = 700_000  # of the portfolio: with its messages in no more time than annealing's million


def glass(args: argparse.Namespace) -> None:
    """The share of the exhaustive optimum after each stage."""
    stages = tuple(name for name in NAMES if name in args.stages)
    for n in args.n:
        after: dict[str, list[float]] = {name: [] for name in stages}
        spent, optimal = [], []
        for m in range(5, 51, 5):
            for seed in range(args.first, args.first + args.count):
                graph = linear_graph([glass_data(m, n, seed=seed)])
                optimal += [one.accuracy for one in optima(graph)]
                reached: dict[str, float] = {}

                def note(stage: Any, found: Any, reached: dict[str, float] = reached) -> None:
                    reached[stage.name] = float(found.best_accuracy)

                with timer() as seconds:
                    run_stages(portfolio(graph, stages), graph, seed=seed, on_stage=note)
                spent.append(seconds)
                value = 0.0
                for name in stages:
                    value = reached.get(name, value)
                    after[name].append(value)
        parts = [f"{name} {sum(after[name]) / sum(optimal):.4f}" for name in stages]
        at = sum(a == b for a, b in zip(after[stages[-1]], optimal, strict=True))
        clock = [one.clock for one in spent]
        print(
            f"N={n} M=5…50, {len(optimal)} instances: of the optimum after each stage "
            f"{', '.join(parts)}; at the optimum {at}; seconds per instance: median "
            f"{statistics.median(clock):.2f}, most {max(clock):.2f} "
            f"(processors {max(one.processors for one in spent):.2f})",
            flush=True,
        )


def linear(args: argparse.Namespace) -> None:
    """The portfolio beside annealing, seven hundred thousand flips against a million."""
    for pair in args.pairs:
        low, high = map(int, pair.split("-"))
        data = mnist(pair=(low, high))
        graph = factor_graph(perceptron(data.inputs.flatten(1), data.labels))
        rows = []
        for seed in range(args.seeds):
            with timer() as theirs:
                rival = run(annealing(1_000_000), graph, seed=seed, max_steps=20)
            parts: list[str] = []
            with timer() as ours:
                found = run_stages(
                    portfolio(graph, flips=FLIPS),
                    graph,
                    seed=seed,
                    on_stage=lambda stage, part, parts=parts: parts.append(
                        f"{stage.name} {float(part.best_accuracy):.4f} ({part.seconds:.2f} s)"
                    ),
                )
            best, other = float(found.best_accuracy), float(rival.best_accuracy)
            rows.append((best, ours.processors, other, theirs.processors))
            print(
                f"{pair} seed {seed}: portfolio {best:.4f} in {ours.processors:.2f} s of "
                f"processors [{', '.join(parts)}]; annealing {other:.4f} in "
                f"{theirs.processors:.2f} s",
                flush=True,
            )
        best, mine, other, spent = (sum(column) / args.seeds for column in zip(*rows, strict=True))
        print(
            f"{pair}, mean of {args.seeds}: portfolio {best:.4f} in {mine:.2f} s, annealing "
            f"{other:.4f} in {spent:.2f} s (processors)",
            flush=True,
        )


def nets(args: argparse.Namespace) -> None:
    """Convolution and MLP on 3 against 5: best training accuracy."""
    data = mnist(pair=(3, 5))
    cases = {"conv": (paper_conv, data.shaped().inputs), "mlp": (paper_mlp, data.inputs)}
    steps = args.epochs * -(-len(data.labels) // 128)
    for name in args.nets:
        make, inputs = cases[name]
        graph = factor_graph(network(make(), inputs, data.labels))
        ours, theirs, our_time, their_time = [], [], 0.0, 0.0
        for seed in range(args.seeds):
            with timer() as spent:
                found = run_stages(portfolio(graph), graph, seed=seed)
            our_time += spent.processors
            with timer() as spent:
                rival = run(straight_through(batch=128), graph, seed=seed, max_steps=steps)
            their_time += spent.processors
            ours.append(float(found.best_accuracy))
            theirs.append(float(rival.best_accuracy))
            print(
                f"{name} seed {seed}: {ours[-1]:.4f} by {found.found_by[0]}, "
                f"straight-through {theirs[-1]:.4f}",
                flush=True,
            )
        print(
            f"{name}: portfolio mean {sum(ours) / args.seeds:.4f} max {max(ours):.4f} in "
            f"{our_time / args.seeds:.1f} s; straight-through mean {sum(theirs) / args.seeds:.4f} "
            f"max {max(theirs):.4f} in {their_time / args.seeds:.1f} s (processors)",
            flush=True,
        )


CAPACITY = {  # columns of the table in docs/solving.md
    "weights": "{n:,}",
    "α": "{alpha}",
    "instances from seed": "{first:,}",
    "solved": "{solved} of {count}",
    "unsatisfied in the others": "{left}",
    "seconds for all": "{seconds:,} of {limit:g}",
}
LINES = (  # weights, alpha, instances, seconds for all of them
    (1001, 0.72, 20, 60.0),
    (1001, 0.74, 20, 60.0),
    (1001, 0.76, 20, 300.0),
    (1001, 0.77, 20, 300.0),
    (10_001, 0.74, 5, 150.0),
    (10_001, 0.76, 5, 480.0),
)


def gpu(args: argparse.Namespace) -> None:
    """Perceptrons near capacity: all instances of a line in one graph, in many copies each."""
    if args.device == "cuda":
        print(torch.cuda.get_device_name())
    found = []
    for number in args.lines:
        n, alpha, count, seconds = LINES[number]
        n, count = args.n or n, args.count or count
        seeds = range(args.first, args.first + count)
        rows = trials(n, alpha, seeds, "amp", seconds / count, args.device)
        missed = sorted(column(rows, "unsatisfied"))
        found.append(
            {
                "n": n,
                "alpha": alpha,
                "first": args.first,
                "count": count,
                "solved": missed.count(0),
                "seconds": round(sum(column(rows, "seconds"))),
                "limit": seconds,
                "left": ", ".join(f"{left:g}" for left in missed if left) or "none",
            }
        )
        print(found[-1], flush=True)
    if args.record:
        save_record("capacity", "python benchmarks/solving.py gpu --record", CAPACITY, found)


def main() -> None:
    """Run one task."""
    parser = parser_of(__doc__)
    tasks = parser.add_subparsers(required=True)
    added = {}
    for task in (glass, linear, nets, gpu):
        added[task.__name__] = one = tasks.add_parser(task.__name__, help=task.__doc__)
        one.set_defaults(task=task)
    for name, first in FIRST_SEED.items():
        added[name].add_argument("--first", type=int, default=first, help="seed of the first")
    for name, count in (("glass", 5), ("gpu", None)):
        added[name].add_argument("--count", type=int, default=count)
    added["glass"].add_argument("--stages", nargs="*", default=NAMES)
    for name in ("linear", "nets"):
        added[name].add_argument("--seeds", type=int, default=5)
    added["glass"].add_argument("--n", type=int, nargs="*", default=[10, 31])
    added["linear"].add_argument("--pairs", nargs="*", default=["3-5", "4-9", "0-1"])
    added["nets"].add_argument("--nets", nargs="*", default=["conv", "mlp"])
    added["nets"].add_argument("--epochs", type=int, default=20)
    added["gpu"].add_argument("--lines", type=int, nargs="*", default=list(range(len(LINES))))
    added["gpu"].add_argument("--device", default="cuda")
    added["gpu"].add_argument("--n", type=int)
    added["gpu"].add_argument("--record", action="store_true", help="keep the table of the page")
    args = parser.parse_args()
    args.task(args)


if __name__ == "__main__":
    main()
