"""S4P on MNIST 3-vs-5 with a linear net: best training accuracy, time and peak memory.

python benchmarks/s4p_mnist.py [--epochs 2] [--beta 1] [--damping 0.9] [--samples 5] ...
"""

from __future__ import annotations

import argparse
import resource
import time

import torch
from looking_bp import looking

from vitrail.datasets import mnist
from vitrail.factors import perceptron
from vitrail.graph import factor_graph
from vitrail.solvers import belief_propagation, run, s4p
from vitrail.updates import flip


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solver", choices=("s4p", "sbp", "looking"), default="s4p")
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--beta", type=float, default=1.0)
    parser.add_argument("--damping", type=float, default=0.9)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--survey-samples", type=int, default=100)
    parser.add_argument("--bins", type=int, default=201)
    parser.add_argument("--store", default="float32")
    parser.add_argument("--score-every", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    data = mnist(pair=(3, 5))
    graph = factor_graph(perceptron(data.inputs, data.labels, args.beta)).to(args.device)
    common = {"damping": args.damping, "batch": args.batch}
    if args.solver == "s4p":
        solver = s4p(
            flip(args.samples),
            survey_samples=args.survey_samples,
            bins=args.bins,
            store=args.store,
            **common,
        )
    else:
        solver = belief_propagation(flip(args.samples * args.survey_samples), **common)
        if args.solver == "looking":
            solver = looking(solver, args.survey_samples)
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


if __name__ == "__main__":
    main()
