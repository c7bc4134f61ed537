"""Real data: best training accuracy on MNIST pairs, and few-shot MNIST by posterior samples.

python benchmarks/power_mnist.py linear      # against annealing with a million flips; --pairs 3-5 …
python benchmarks/power_mnist.py nets        # conv and MLP against straight-through, 5 seeds
python benchmarks/power_mnist.py few-shot    # ten classes from 10 and 40 images a class
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations

import torch

from vitrail.baselines import straight_through
from vitrail.baselines.annealing import annealing
from vitrail.data import mnist
from vitrail.factors import network, perceptron
from vitrail.graph import FactorGraph, factor_graph, join
from vitrail.nn import paper_conv, paper_mlp
from vitrail.random import Key
from vitrail.solvers import belief_propagation, portfolio, run, run_stages, steady
from vitrail.solvers.sampling import posterior_samples
from vitrail.updates import closed_form

FLIPS = 700_000  # of the portfolio: with its messages in no more time than annealing's million


def linear(pairs: list[str], seeds: int) -> None:
    """The portfolio beside annealing, seven hundred thousand flips against a million."""
    for pair in pairs:
        low, high = map(int, pair.split("-"))
        data = mnist(pair=(low, high))
        inputs = torch.as_tensor(data.inputs).flatten(1)
        graph = factor_graph(perceptron(inputs, torch.as_tensor(data.labels)))
        rows = []
        for seed in range(seeds):
            begun = time.process_time()
            rival = run(annealing(1_000_000), graph, seed=seed, max_steps=20)
            spent = time.process_time() - begun
            parts = []
            begun = time.process_time()
            found = run_stages(
                portfolio(graph, flips=FLIPS),
                graph,
                seed=seed,
                on_stage=lambda stage, part, parts=parts: parts.append(
                    f"{stage.name} {float(part.best_accuracy):.4f} ({part.seconds:.2f} s)"
                ),
            )
            ours = time.process_time() - begun
            rows.append((float(found.best_accuracy), ours, float(rival.best_accuracy), spent))
            print(
                f"{pair} seed {seed}: portfolio {rows[-1][0]:.4f} in {ours:.2f} s of processors "
                f"[{', '.join(parts)}]; annealing {rows[-1][2]:.4f} in {spent:.2f} s",
                flush=True,
            )
        best, ours, other, spent = (sum(column) / seeds for column in zip(*rows, strict=True))
        print(
            f"{pair}, mean of {seeds}: portfolio {best:.4f} in {ours:.2f} s, annealing {other:.4f} "
            f"in {spent:.2f} s (processors)",
            flush=True,
        )


def nets(names: list[str], seeds: int, epochs: int) -> None:
    """Convolution and MLP on 3 against 5: best training accuracy."""
    data = mnist(pair=(3, 5))
    images, labels = torch.as_tensor(data.inputs), torch.as_tensor(data.labels)
    cases = {
        "conv": (paper_conv, images.view(len(images), 1, 14, 14)),
        "mlp": (paper_mlp, images.flatten(1)),
    }
    for name in names:
        make, inputs = cases[name]
        graph = factor_graph(network(make(), inputs, labels))
        ours, theirs, our_time, their_time = [], [], 0.0, 0.0
        for seed in range(seeds):
            begun = time.process_time()
            found = run_stages(portfolio(graph), graph, seed=seed)
            our_time += time.process_time() - begun
            begun = time.process_time()
            steps = epochs * -(-len(labels) // 128)
            rival = run(straight_through(batch=128), graph, seed=seed, max_steps=steps)
            their_time += time.process_time() - begun
            ours.append(float(found.best_accuracy))
            theirs.append(float(rival.best_accuracy))
            print(
                f"{name} seed {seed}: {ours[-1]:.4f} by {found.found_by[0]}, "
                f"straight-through {theirs[-1]:.4f}",
                flush=True,
            )
        print(
            f"{name}: portfolio mean {sum(ours) / seeds:.4f} max {max(ours):.4f} in "
            f"{our_time / seeds:.1f} s; straight-through mean {sum(theirs) / seeds:.4f} "
            f"max {max(theirs):.4f} in {their_time / seeds:.1f} s (processors)",
            flush=True,
        )


def few_shot(draws: int) -> None:
    """45 nets of 196 weights, one a pair of classes; votes averaged over posterior samples."""
    data = mnist()
    inputs, labels = torch.as_tensor(data.inputs).flatten(1), torch.as_tensor(data.labels)
    tests, wanted = torch.as_tensor(data.test_inputs).flatten(1), torch.as_tensor(data.test_labels)
    pairs = list(combinations(range(10), 2))
    for shots in (10, 40):
        shares, spent = [], 0.0
        for draw in range(draws):
            shuffled = torch.Generator().manual_seed(9000 + draw)
            rows = []
            for digit in range(10):
                mine = (labels == digit).nonzero()[:, 0]
                rows.append(mine[torch.randperm(len(mine), generator=shuffled)[:shots]])
            chosen = torch.cat(rows)
            begun = time.process_time()
            graph = join([_pair(inputs[chosen], labels[chosen], pair) for pair in pairs])
            solver = steady(belief_propagation(closed_form("gaussian"), damping=0.5))
            found = run(solver, graph.with_beta(2.0), seed=draw, max_steps=60)
            log_odds = torch.logit(found.marginals.clamp(1e-6, 1 - 1e-6))
            bits = posterior_samples(Key(draw), graph, log_odds, 100, beta=3.0)
            votes = torch.zeros(len(wanted), 10)
            weights = bits.view(100, len(pairs), -1).float() * 2 - 1
            for number, (low, high) in enumerate(pairs):
                share = (tests.float() @ weights[:, number].T > 0).float().mean(1)
                votes[:, high] += share
                votes[:, low] += 1 - share
            spent += time.process_time() - begun
            shares.append(float((votes.argmax(1) == wanted).float().mean()))
        each = ", ".join(f"{share:.4f}" for share in shares)
        print(
            f"{shots} images a class: mean {sum(shares) / draws:.4f} ({each}), "
            f"{spent / draws:.1f} s of processors",
            flush=True,
        )


def _pair(inputs: torch.Tensor, labels: torch.Tensor, pair: tuple[int, int]) -> FactorGraph:
    low, high = pair
    mine = (labels == low) | (labels == high)
    return factor_graph(perceptron(inputs[mine], (labels[mine] == high).long()))


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["linear", "nets", "few-shot"], nargs="?", default="linear")
    parser.add_argument("--pairs", nargs="*", default=["3-5", "4-9", "0-1"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--nets", nargs="*", default=["conv", "mlp"])
    args = parser.parse_args()
    if args.what == "linear":
        linear(args.pairs, args.seeds)
    elif args.what == "nets":
        nets(args.nets, args.seeds, args.epochs)
    else:
        few_shot(args.seeds)


if __name__ == "__main__":
    main()
