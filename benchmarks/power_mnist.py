"""Real data: best training accuracy on MNIST pairs.

python benchmarks/power_mnist.py linear      # against annealing with a million flips; --pairs 3-5 …
python benchmarks/power_mnist.py nets        # conv and MLP against straight-through, 5 seeds
"""

from __future__ import annotations

import argparse
import time

import torch

from vitrail.baselines import straight_through
from vitrail.baselines.annealing import annealing
from vitrail.datasets import mnist
from vitrail.factors import network, perceptron
from vitrail.graph import factor_graph
from vitrail.nn import paper_conv, paper_mlp
from vitrail.solvers import portfolio, run, run_stages

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


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["linear", "nets"], nargs="?", default="linear")
    parser.add_argument("--pairs", nargs="*", default=["3-5", "4-9", "0-1"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--nets", nargs="*", default=["conv", "mlp"])
    args = parser.parse_args()
    if args.what == "linear":
        linear(args.pairs, args.seeds)
    else:
        nets(args.nets, args.seeds, args.epochs)


if __name__ == "__main__":
    main()
