"""Surveys compared with belief propagation of as many evaluations: docs/surveys.md.

    python benchmarks/surveys.py [--inner flip] [--instances 20] [--seed 0]

SNMP on glass with N = 10 and M = 5…50, as shares of the exhaustive optimum. The comparisons have
SNMP's budget: SBP with as many steps and evaluations (more samples in the second stage), the same
scoring as many samples of its marginals as S4P has tracks, SBP restarted until as many evaluations
are spent, and as many random configurations as S4P scored.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import torch
from harness import parser_of
from torch import Tensor

from vitrail.baselines import optima
from vitrail.datasets import glass as glass_data
from vitrail.graph import FactorGraph
from vitrail.lab.experiments.tasks import linear_graph
from vitrail.random import Key, Stream, bernoulli, lanes32, thresholds
from vitrail.solvers import Stage, belief_propagation, run_stages, snmp
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


def main() -> None:
    """Measure and print one table."""
    parser = parser_of(__doc__)
    parser.add_argument("--inner", choices=INNER, default="flip")
    parser.add_argument("--variable", choices=FORMS, default="tilted")
    parser.add_argument("--feed", choices=("draws", "histogram"), default="draws")
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-rivals", action="store_true")
    glass(parser.parse_args())


if __name__ == "__main__":
    main()
