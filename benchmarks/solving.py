"""What the portfolio solves, and how fast: the table of docs/solving.md.

    python benchmarks/solving.py glass --n 10 31 --count 5
    python benchmarks/solving.py perceptrons --n 501 --alpha 0.6 --count 20
    python benchmarks/solving.py perceptrons --n 501 --alpha 0.5 --update flip --count 10
    python benchmarks/solving.py perceptrons --rivals ste annealing cpsat --max-seconds 25
    python benchmarks/solving.py linear --pairs 3-5 4-9     # MNIST, against annealing
    python benchmarks/solving.py nets                       # conv and MLP against straight-through
    python benchmarks/solving.py gpu                        # copies side by side, eight minutes

Instances have seeds that nothing was tuned on. Two numbers of seconds: of the clock, and of the
processors. Rivals run instead of the portfolio, each within --max-seconds by the clock; CP-SAT with
--workers threads.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from typing import Any

import torch
from harness import parser_of, save_record, timer

from vitrail.baselines import optima, straight_through
from vitrail.baselines.annealing import annealing
from vitrail.datasets import glass as glass_data
from vitrail.datasets import mnist
from vitrail.factors import network, perceptron
from vitrail.graph import FactorGraph, factor_graph
from vitrail.lab.experiments.capacity import SOLVERS, instance, trials
from vitrail.lab.experiments.tasks import linear_graph
from vitrail.nn import paper_conv, paper_mlp
from vitrail.solvers import portfolio, run, run_stages
from vitrail.solvers.portfolio import NAMES
from vitrail.updates import flip

FIRST_SEED = {"glass": 70_001, "perceptrons": 90_001, "gpu": 95_001}
FLIPS = 700_000  # of the portfolio: with its messages in no more time than annealing's million
SCRATCH = 8 * 2**30  # bytes that one update may hold on the device


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


def rival(name: str, graph: FactorGraph, seconds: float, seed: int, workers: int) -> Any:
    """One of the baselines within `seconds` seconds; annealing restarts until they are over."""
    if name == "cpsat":
        from vitrail.baselines.cpsat import cpsat

        solver = cpsat(effort=None, seconds=seconds, workers=workers)
        return run(solver, graph, seed=seed, max_steps=1)
    return SOLVERS[name](graph, seed, seconds)


def rivals(args: argparse.Namespace) -> None:
    """How many perceptrons the baselines solve."""
    num_examples = round(args.alpha * args.n)
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in args.rivals}
    for seed in range(args.first, args.first + args.count):
        graph = instance(args.n, args.alpha, seed)
        for name in args.rivals:
            one = rival(name, graph, args.max_seconds, seed, args.workers)
            missed = round(float(1 - one.best_accuracy) * num_examples)
            found[name].append((missed, one.seconds))
            print(f"seed {seed} {name}: {missed} unsatisfied in {one.seconds:.1f} s", flush=True)
    for name, runs in found.items():
        missed, seconds = zip(*runs, strict=True)
        print(
            f"N={args.n} alpha={args.alpha} {name}: {missed.count(0)} of {len(missed)} solved in "
            f"at most {args.max_seconds:g} s each; median {statistics.median(missed):g} "
            f"unsatisfied ({min(missed)} to {max(missed)}), median "
            f"{statistics.median(seconds):.1f} s"
        )


def perceptrons(args: argparse.Namespace) -> None:
    """How many perceptrons near capacity the portfolio solves, by stage."""
    if args.rivals:
        rivals(args)
        return
    num_examples = round(args.alpha * args.n)
    update = flip(args.samples) if args.update == "flip" else None
    rows = []
    for seed in range(args.first, args.first + args.count):
        graph = instance(args.n, args.alpha, seed)
        stages = portfolio(graph, args.stages, update=update, rate=args.rate)
        parts: list[str] = []

        def report(stage: Any, found: Any, parts: list[str] = parts) -> None:
            missed = round(float(1 - found.best_accuracy) * num_examples)
            parts.append(f"{stage.name} {missed} ({found.steps} steps, {found.seconds:.1f} s)")

        with timer() as spent:
            found = run_stages(
                stages, graph, seed=seed, max_seconds=args.max_seconds, on_stage=report
            )
        solved = bool(found.solved.all())
        rows.append((solved, found.found_by[0], spent.clock, spent.processors))
        print(
            f"seed {seed} solved={solved} {spent.clock:.1f} s (cpu {spent.processors:.1f} s): "
            f"{', '.join(parts)}",
            flush=True,
        )
    solved = [row for row in rows if row[0]]
    by_stage = Counter(row[1] for row in solved)
    print(
        f"N={args.n} alpha={args.alpha} update={args.update}: {len(solved)} of {len(rows)} "
        f"({', '.join(f'{count} by {name}' for name, count in by_stage.items())}; "
        f"--stages sbp reinforced s4p leaves flips out); median "
        f"{statistics.median(row[2] for row in rows):.1f} s of the clock, "
        f"{statistics.median(row[3] for row in rows):.1f} s of processors; "
        f"slowest {max(row[2] for row in rows):.1f} s"
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
    """Perceptrons at the frontier: all instances of a line side by side, in many copies each."""
    if args.device == "cuda":
        print(torch.cuda.get_device_name())
    found = []
    for number in args.lines:
        n, alpha, count, seconds = LINES[number]
        n, count = args.n or n, args.count or count
        seeds = range(args.first, args.first + count)
        rows = trials(n, alpha, seeds, "amp", seconds / count, args.device)
        missed = sorted(row["unsatisfied"] for row in rows)
        found.append(
            {
                "n": n,
                "alpha": alpha,
                "first": args.first,
                "count": count,
                "solved": missed.count(0),
                "seconds": round(sum(row["seconds"] for row in rows)),
                "limit": seconds,
                "left": ", ".join(str(left) for left in missed if left) or "none",
            }
        )
        print(found[-1], flush=True)
    if args.record:
        save_record("capacity", "python benchmarks/solving.py gpu --record", CAPACITY, found)


def main() -> None:
    """Measure what is asked for."""
    parser = parser_of(__doc__)
    tasks = parser.add_subparsers(required=True)
    added = {}
    for task in (glass, perceptrons, linear, nets, gpu):
        added[task.__name__] = one = tasks.add_parser(task.__name__, help=task.__doc__)
        one.set_defaults(task=task)
    for name, first in FIRST_SEED.items():
        added[name].add_argument("--first", type=int, default=first, help="seed of the first")
    for name, count in (("glass", 5), ("perceptrons", 20), ("gpu", None)):
        added[name].add_argument("--count", type=int, default=count)
    for name in ("glass", "perceptrons"):
        added[name].add_argument("--stages", nargs="*", default=NAMES)
    for name in ("linear", "nets"):
        added[name].add_argument("--seeds", type=int, default=5)
    added["glass"].add_argument("--n", type=int, nargs="*", default=[10, 31])
    own = added["perceptrons"]
    own.add_argument("--n", type=int, default=501)
    own.add_argument("--alpha", type=float, default=0.6)
    own.add_argument("--update", choices=["auto", "flip"], default="auto")
    own.add_argument("--samples", type=int, default=32)
    own.add_argument("--rate", type=float)
    own.add_argument("--max-seconds", type=float, default=60.0)
    own.add_argument("--rivals", nargs="*", default=[])
    own.add_argument("--workers", type=int, default=2, help="threads of CP-SAT")
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
