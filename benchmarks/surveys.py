"""What surveys gain over belief propagation that has as many evaluations: docs/surveys.md.

    python benchmarks/surveys.py glass [--inner flip] [--instances 20] [--seed 0]
    python benchmarks/surveys.py mnist [--solver s4p] [--epochs 2] [--beta 1] [--damping 0.9]

`glass`: SNMP on N = 10, M = 5…50, as shares of the exhaustive optimum. Rivals have what SNMP had:
SBP with as many steps and evaluations (the samples of the second stage raised), the same scoring as
many samples of its marginals as S4P has tracks, SBP restarted until as many evaluations are spent,
and as many random configurations as S4P scored. `mnist`: S4P on 3-vs-5 with a linear net, or a
rival with as many draws: best training accuracy, time and peak memory.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass
from typing import Any

import torch
from harness import parser_of
from torch import Tensor

from vitrail.baselines import optima
from vitrail.datasets import glass as glass_data
from vitrail.datasets import mnist as mnist_data
from vitrail.factors import perceptron
from vitrail.graph import FactorGraph, factor_graph
from vitrail.lab.experiments.tasks import linear_graph
from vitrail.random import Key, Stream, bernoulli, lanes32, thresholds
from vitrail.solvers import Solver, Stage, belief_propagation, run, run_stages, s4p, snmp
from vitrail.solvers.bp import BeliefPropagation, BPState
from vitrail.surveys import gaussian, tilted, weighted
from vitrail.updates import flip, pinned

WEIGHTS, SAMPLES, SURVEY_SAMPLES, STEPS = 10, 5, 100, 20
SIZES = range(5, 55, 5)
INNER = {"flip": flip, "pinned": pinned}
FORMS = {"tilted": tilted, "weighted": weighted, "gaussian": gaussian}


@dataclass(frozen=True)
class SamplingBP(BeliefPropagation):
    """The decoded configuration and `count` drawn from the marginals, at every scoring."""

    count: int

    def candidates(self, key: Key, graph: FactorGraph, state: BPState) -> Tensor:
        """(1 + count, V) bool."""
        zero = torch.zeros((), dtype=torch.int64, device=graph.device)
        numbers = torch.arange(1, self.count + 1, device=graph.device)
        drawn = bernoulli(key.of(Stream.DECODE), zero, numbers, thresholds(state.belief))
        return torch.cat([super().candidates(key, graph, state), drawn])


def sampling(solver: BeliefPropagation, count: int) -> SamplingBP:
    """The same belief propagation, scoring samples of its marginals too."""
    return SamplingBP(**vars(solver), count=count)


def problems(instances: int, first_seed: int) -> tuple[FactorGraph, Tensor]:
    """All instances of all sizes as one graph, and the size of each problem."""
    sizes = [size for size in SIZES for _ in range(instances)]
    sets = [
        glass_data(size, WEIGHTS, seed=first_seed * 10_000 + number)
        for number, size in enumerate(sizes)
    ]
    return linear_graph(sets), torch.tensor(sizes)


def random_configurations(graph: FactorGraph, count: int, seed: int) -> Tensor:
    """The best of `count` random configurations, (P,)."""
    zero = torch.zeros((), dtype=torch.int64)
    lanes = lanes32(Key(seed).of(Stream.SEARCH), zero, torch.arange(count), graph.num_variables)
    return graph.accuracy(lanes >= 2**31).amax(0)


def glass(args: argparse.Namespace) -> None:
    """SNMP and its rivals against the optimum."""
    update = INNER[args.inner]
    graph, sizes = problems(args.instances, args.seed)
    best = torch.tensor([one.accuracy for one in optima(graph)], dtype=torch.float64)
    columns: dict[str, Tensor] = {"optimum": best}

    stages = snmp(
        update(SAMPLES),
        steps=(STEPS, STEPS),
        survey_samples=SURVEY_SAMPLES,
        variable=FORMS[args.variable](),
        feed=args.feed,
    )
    begun = time.perf_counter()
    found = run_stages(stages, graph, seed=args.seed)
    spent = {"SNMP": (found.evaluations, time.perf_counter() - begun)}
    columns |= {"SNMP best": found.best_accuracy, "SNMP last": found.accuracy}
    by_surveys = int((found.best_stage == 1).sum())
    went_on = int((~(found.history["best"][STEPS - 1] >= 1)).sum())

    if not args.no_rivals:
        bp = belief_propagation
        longer = Stage("sbp", bp(update(SAMPLES), damping=0.8), 2 * STEPS)
        plain = run_stages([longer], graph, seed=args.seed)
        spent["SBP, same steps"] = (plain.evaluations, plain.seconds)
        columns["SBP 40 steps"] = plain.best_accuracy

        richer = bp(update(SAMPLES * SURVEY_SAMPLES), damping=0.8)
        both = [Stage("sbp", bp(update(SAMPLES), damping=0.8), STEPS), Stage("more", richer, STEPS)]
        rich = run_stages(both, graph, seed=args.seed)
        spent["SBP, same steps and evaluations"] = (rich.evaluations, rich.seconds)
        columns["SBP 500 best"] = rich.best_accuracy
        columns["SBP 500 last"] = rich.accuracy

        seen = [both[0], Stage("sampling", sampling(richer, SURVEY_SAMPLES), STEPS)]
        sampled = run_stages(seen, graph, seed=args.seed)
        spent["SBP, as many configurations scored"] = (sampled.evaluations, sampled.seconds)
        columns["SBP sampling"] = sampled.best_accuracy

        again = [
            Stage(f"seed {number}", bp(update(SAMPLES), damping=0.8), STEPS)
            for number in range(SURVEY_SAMPLES + 1)
        ]
        restarted = run_stages(again, graph, seed=args.seed, max_evaluations=found.evaluations)
        spent["SBP, restarted"] = (restarted.evaluations, restarted.seconds)
        columns["SBP restarted"] = restarted.best_accuracy

        scored = STEPS * (SURVEY_SAMPLES + 1) + STEPS
        columns["random"] = random_configurations(graph, scored, args.seed)
        spent["random"] = (scored * graph.num_factors, 0.0)

    print(" M   " + "  ".join(f"{name:>12}" for name in columns))
    for size in [*SIZES, 0]:
        chosen = (sizes == size) if size else torch.ones_like(sizes, dtype=torch.bool)
        base = float(best[chosen].mean())
        cells = [base, *(float(v[chosen].mean()) / base for v in list(columns.values())[1:])]
        name = f"{size:3d}" if size else "all"
        print(f"{name}  " + "  ".join(f"{cell:12.4f}" for cell in cells), flush=True)
    for name, value in columns.items():
        print(f"optimum reached by {name}: {int((value >= best - 1e-9).sum())} of {len(best)}")
    print(f"{went_on} problems went on to S4P; it found the best of {by_surveys} problems")
    for name, (evaluations, seconds) in spent.items():
        print(f"{name}: {evaluations / 1e6:.1f} million evaluations, {seconds:.0f} s")


def mnist(args: argparse.Namespace) -> None:
    """One solver on all images of two digits."""
    data = mnist_data(pair=(3, 5))
    graph = factor_graph(perceptron(data.inputs, data.labels, args.beta)).to(args.device)
    common = {"damping": args.damping, "batch": args.batch}
    if args.solver == "s4p":
        solver: Solver[Any] = s4p(
            flip(args.samples),
            survey_samples=args.survey_samples,
            bins=args.bins,
            **common,
        )
    else:
        solver = plain = belief_propagation(flip(args.samples * args.survey_samples), **common)
        if args.solver == "sampling":
            solver = sampling(plain, args.survey_samples)
    per_epoch = int(solver.epoch_steps(graph)[0])
    begun = time.perf_counter()

    def show(step: int, accuracy: torch.Tensor, best: torch.Tensor) -> None:
        if step % args.score_every == 0:
            seconds = time.perf_counter() - begun
            print(
                f"step {step:5d}  epoch {step / per_epoch:5.2f}  decoded {float(accuracy[0]):.4f}  "
                f"best {float(best[0]):.4f}  {seconds:6.1f} s",
                flush=True,
            )

    solution = run(
        solver,
        graph,
        seed=args.seed,
        max_steps=round(args.epochs * per_epoch),
        score_every=args.score_every,
        progress=show,
    )
    test = factor_graph(perceptron(data.test_inputs, data.test_labels)).to(args.device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"F = {graph.num_factors}, A = {graph.num_variables}, steps {solution.steps}")
    best, last = float(solution.best_accuracy[0]), float(solution.accuracy[0])
    print(f"train: best {best:.4f}, last {last:.4f}")
    print(f"test of the best: {float(test.accuracy(solution.best[None])[0, 0]):.4f}")
    print(f"{solution.seconds:.0f} s, peak memory of the process {peak:.2f} GiB")
    if args.device != "cpu":
        held = torch.cuda.max_memory_allocated() / 2**30
        print(f"peak memory on the device {held:.2f} GiB")


def main() -> None:
    """Measure what is asked for."""
    parser = parser_of(__doc__)
    tasks = parser.add_subparsers(required=True)
    one = tasks.add_parser("glass")
    one.set_defaults(task=glass)
    one.add_argument("--inner", choices=INNER, default="flip")
    one.add_argument("--variable", choices=FORMS, default="tilted")
    one.add_argument("--feed", choices=("draws", "histogram"), default="draws")
    one.add_argument("--instances", type=int, default=20)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--no-rivals", action="store_true")
    two = tasks.add_parser("mnist")
    two.set_defaults(task=mnist)
    two.add_argument("--solver", choices=("s4p", "sbp", "sampling"), default="s4p")
    two.add_argument("--epochs", type=float, default=2)
    two.add_argument("--batch", type=int, default=128)
    two.add_argument("--beta", type=float, default=1.0)
    two.add_argument("--damping", type=float, default=0.9)
    two.add_argument("--samples", type=int, default=5)
    two.add_argument("--survey-samples", type=int, default=100)
    two.add_argument("--bins", type=int, default=201)
    two.add_argument("--score-every", type=int, default=10)
    two.add_argument("--seed", type=int, default=0)
    two.add_argument("--device", default="cpu")
    args = parser.parse_args()
    args.task(args)


if __name__ == "__main__":
    main()
