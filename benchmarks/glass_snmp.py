"""SNMP on glass, N = 10, M = 5…50, against the true optimum and against its rivals.

    python benchmarks/glass_snmp.py [--inner flip] [--instances 20] [--seed 0]

Rivals have what SNMP had: SBP with as many steps and evaluations (the samples of the second stage
raised), the same looking at as many samples of its marginals as S4P has tracks, SBP started anew
until as many evaluations are spent, and as many random configurations as S4P looked at. Figures
are shares of the exhaustive optimum, pooled over instances.
"""

from __future__ import annotations

import argparse
import time

import torch
from looking_bp import looking
from torch import Tensor

from vitrail.baselines import optima
from vitrail.datasets import glass
from vitrail.graph import FactorGraph
from vitrail.lab.experiments.tasks import linear_graph
from vitrail.random import Key, Stream, lanes32
from vitrail.solvers import Stage, belief_propagation, run_stages, snmp
from vitrail.surveys import gaussian, tilted, weighted
from vitrail.updates import flip, pinned

WEIGHTS, SAMPLES, SURVEY_SAMPLES, STEPS = 10, 5, 100, 20
SIZES = range(5, 55, 5)
INNER = {"flip": flip, "pinned": pinned}
FORMS = {"tilted": tilted, "weighted": weighted, "gaussian": gaussian}


def problems(instances: int, first_seed: int) -> tuple[FactorGraph, Tensor]:
    """All instances of all sizes as one graph, and the size of each problem."""
    sizes = [size for size in SIZES for _ in range(instances)]
    sets = [
        glass(size, WEIGHTS, seed=first_seed * 10_000 + number) for number, size in enumerate(sizes)
    ]
    return linear_graph(sets), torch.tensor(sizes)


def random_looks(graph: FactorGraph, looks: int, seed: int) -> Tensor:
    """The best of so many random configurations, (P,)."""
    zero = torch.zeros((), dtype=torch.int64)
    lanes = lanes32(Key(seed).of(Stream.SEARCH), zero, torch.arange(looks), graph.num_variables)
    return graph.accuracy(lanes >= 2**31).amax(0)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inner", choices=INNER, default="flip")
    parser.add_argument("--variable", choices=FORMS, default="tilted")
    parser.add_argument("--feed", choices=("draws", "histogram"), default="draws")
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-rivals", action="store_true")
    args = parser.parse_args()
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

        seen = [both[0], Stage("looking", looking(richer, SURVEY_SAMPLES), STEPS)]
        looked = run_stages(seen, graph, seed=args.seed)
        spent["SBP, same looks too"] = (looked.evaluations, looked.seconds)
        columns["SBP looking"] = looked.best_accuracy

        again = [
            Stage(f"seed {number}", bp(update(SAMPLES), damping=0.8), STEPS)
            for number in range(SURVEY_SAMPLES + 1)
        ]
        anew = run_stages(again, graph, seed=args.seed, max_evaluations=found.evaluations)
        spent["SBP, started anew"] = (anew.evaluations, anew.seconds)
        columns["SBP anew"] = anew.best_accuracy

        looks = STEPS * (SURVEY_SAMPLES + 1) + STEPS
        columns["random"] = random_looks(graph, looks, args.seed)
        spent["random"] = (looks * graph.num_factors, 0.0)

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


if __name__ == "__main__":
    main()
