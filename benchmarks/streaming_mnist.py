"""MNIST at 28×28: streaming by moments against straight-through, nets of half a million bits.

python benchmarks/streaming_mnist.py FOLDER                      # idx files, plain or gzipped
python benchmarks/streaming_mnist.py FOLDER --device cuda --nets mlp conv --seeds 3 --out rows.json
python benchmarks/streaming_mnist.py FOLDER --nets mlp --hidden 101 101 --rows 2000 --pool 2

Errors are in percent of the test images. `posterior` predicts by moments of the marginals, at a
share of the last beta (--answer), because one net wants weights surer than an average does;
`committee` averages the votes of drawn networks; `one net` is the decoded network of the last
step. ECE is the posterior's calibration error in 15 bins; nothing is fitted on held-out rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from harness import max_pool, mnist_files, parser_of, write_json
from torch import Tensor, nn

from vitrail.baselines import straight_through
from vitrail.decode import samples
from vitrail.factors import network
from vitrail.graph import FactorGraph, factor_graph
from vitrail.nn import Flatten, Program, Sign, Threshold, centred, conv, mlp
from vitrail.nn.coding import numbers
from vitrail.nn.moments import class_probabilities
from vitrail.random import Key
from vitrail.scores import calibration_error
from vitrail.solvers import Solution, Solver, falling, geometric, run, streaming, usual_rate

BATCH = 128
BATCHES = 16  # of a streaming step
CALIBRATION_BINS = 15
COMMITTEE = 8
EPOCHS = {"mlp": 20, "conv": 15}
LAST = 10.0  # beta
CUTS = 3  # bits per pixel
UNITS = {"threshold": Threshold, "sign": Sign}


def read(args: argparse.Namespace, part: str) -> tuple[Tensor, Tensor]:
    """Images (F, 1, H, W) in the coding asked for, and their labels (F,)."""
    pixels, digits = mnist_files(args.folder, part)
    levels = torch.from_numpy(max_pool(pixels, args.pool).copy())[:, None]
    labels = torch.from_numpy(digits.astype(np.int64))
    if args.coding == "levels":
        return levels, labels
    if args.coding == "cuts":
        steps = range(1, CUTS + 1)
        bits = [levels > 255 * step // (CUTS + 1) for step in steps]
        return torch.cat([*bits, torch.ones_like(bits[0])], 1).to(torch.int8), labels
    bits = (levels > 255 / 2).to(torch.int8)
    return (bits if args.coding == "binary" else 2 * bits - 1), labels


def with_constant(levels: Tensor, level: int) -> Tensor:
    """Images (F, 1, H, W) uint8 with a second channel that is the same everywhere, (F, 2, H, W).

    Windows of background are then no ties: their units say what the weights say, not all the same.
    """
    return torch.cat([levels, torch.full_like(levels, level)], 1)


def predictions(program: Program, bits: Tensor, images: Tensor) -> Tensor:
    """The class that one network (A,) bool gives to each image, (F,) int64."""
    found = [
        program.evaluate(bits[None, None], numbers(part)[:, None]).flatten(1).argmax(1)
        for part in images.split(1000)
    ]
    return torch.cat(found)


def committee(program: Program, marginals: Tensor, images: Tensor, seed: int) -> Tensor:
    """The class that most of the drawn networks give to each image, (F,) int64."""
    drawn = samples(Key(seed), torch.logit(marginals), COMMITTEE)
    votes = torch.stack([predictions(program, bits, images) for bits in drawn])
    return nn.functional.one_hot(votes, 10).sum(0).argmax(1)


def measured(
    solver: Solver,
    graph: FactorGraph,
    steps: int,
    seed: int,
    images: Tensor,
    labels: Tensor,
    answer: float,
) -> dict[str, float]:
    """Errors on the test images after one run, and its seconds."""
    begun = time.perf_counter()
    # scored at the end only: a look at all examples costs a sixth of an epoch
    solution: Solution = run(solver, graph, seed=seed, max_steps=steps, score_every=steps)
    if graph.device.type == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begun
    program = graph.blocks[0].program  # pyright: ignore[reportAttributeAccessIssue] (a Network)
    one = predictions(program, solution.weights, images)
    row = {
        "one net": 100 * float((one != labels).double().mean()),
        "train": 100 * (1 - float(solution.accuracy)),
        "seconds": seconds,
    }
    if "undone" in solution.history:
        found = class_probabilities(program, solution.marginals, images, beta=answer)
        right = found.argmax(1) == labels
        sure = found.amax(1).cpu().numpy()
        votes = committee(program, solution.marginals, images, seed)
        row |= {
            "posterior": 100 * float((~right).double().mean()),
            "committee": 100 * float((votes != labels).double().mean()),
            "ECE": calibration_error(sure, right.cpu().numpy(), CALIBRATION_BINS),
            "undone": int(solution.history["undone"].max()),
        }
    return row


def solvers(args: argparse.Namespace, rows: int, epochs: int) -> dict[str, tuple[Solver, int]]:
    """The rivals by name, each with its steps for the same epochs."""
    batches = -(-rows // BATCH) * epochs
    steps = -(-batches // BATCHES)
    found: dict[str, tuple[Solver, int]] = {}
    for last in args.betas or [LAST]:
        solver = streaming(
            batch=BATCH,
            batches=BATCHES,
            beta=geometric(1.0, last, steps),
            rate=falling(args.rate or usual_rate(batches), steps),
            memory=args.memory,
            first=args.first,
        )
        found[f"streaming, beta to {last:g}"] = solver, steps
    for lr in args.rates:
        schedule: Callable[[int], float] = geometric(lr, lr / 10, batches)
        found[f"straight-through, lr {lr:g}"] = straight_through(lr=schedule, batch=BATCH), batches
    return found


def main() -> None:
    """Measure what the command line asks for."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path, help="where the four idx files of MNIST are")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--nets", nargs="+", choices=("mlp", "conv"), default=["mlp"])
    parser.add_argument("--hidden", nargs="+", type=int, default=[501, 501])
    parser.add_argument("--channels", nargs=2, type=int, default=[64, 128])
    parser.add_argument(
        "--units", choices=UNITS, default="threshold", help="hidden units of conv, 0/1 or -1/+1"
    )
    parser.add_argument(
        "--constant", type=int, default=0, help="level of conv's second channel; 0 is none, centred"
    )
    parser.add_argument("--epochs", type=int, help="20 for mlp, 15 for conv if not given")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=60_000, help="training images")
    parser.add_argument("--pool", type=int, default=1, help="2 makes images 14×14")
    parser.add_argument(
        "--coding",
        choices=("levels", "cuts", "binary", "bipolar"),
        default="levels",
        help="gray levels as numbers; three bits per pixel and a channel of ones; bits above half "
        "intensity as 0/1 or -1/+1",
    )
    parser.add_argument("--betas", nargs="*", type=float, help="last beta; 10 if not given")
    parser.add_argument("--answer", type=float, default=0.3, help="share of it, of the posterior")
    parser.add_argument("--rates", nargs="*", type=float, default=[0.003, 0.01])
    parser.add_argument("--rate", type=float, help="first rate; by the batches if not given")
    parser.add_argument("--memory", type=float, help="examples; for ever if not given")
    parser.add_argument("--first", type=float, default=1.0)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, help="write all rows here, JSON")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)

    inputs, labels = read(args, "train")
    test_inputs, test_labels = (part.to(args.device) for part in read(args, "t10k"))
    chosen = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    inputs, labels = inputs[chosen[: args.rows]], labels[chosen[: args.rows]]
    rows = []
    print(f"{'':34}{'one net':>9}{'posterior':>11}{'committee':>11}{'ECE':>8}{'train':>8}{'s':>8}")
    for net in args.nets:
        epochs = args.epochs or EPOCHS[net]
        images, test_images = inputs, test_inputs
        if args.coding == "levels" and args.constant and net == "conv":
            images, test_images = (with_constant(x, args.constant) for x in (images, test_images))
        elif args.coding == "levels":
            offset = round(float(images.float().mean()))
            images, test_images = (centred(x, offset) for x in (images, test_images))
        if net == "mlp":
            module = nn.Sequential(Flatten(), *mlp(images[0].numel(), args.hidden, 10))
        else:
            module = conv(images.shape[1:], args.channels, 10, UNITS[args.units])
        graph = factor_graph(network(module, images, labels)).to(args.device)
        print(f"{net}, {graph.num_variables:,} bits, {len(labels):,} images, {epochs} epochs")
        for name, (solver, steps) in solvers(args, len(labels), epochs).items():
            mine = []
            for seed in range(args.seeds):
                row = measured(solver, graph, steps, seed, test_images, test_labels, args.answer)
                mine.append(row)
                rows.append({"net": net, "solver": name, "epochs": epochs, "seed": seed, **row})
                write_json(args.out, rows)
            show = {key: mean(row[key] for row in mine) for key in mine[0]}
            cells = [f"{show['one net']:9.2f}"]
            for key, width, digits in (("posterior", 11, 2), ("committee", 11, 2), ("ECE", 8, 4)):
                cells.append(f"{show[key]:{width}.{digits}f}" if key in show else " " * width)
            cells += [f"{show['train']:8.2f}", f"{show['seconds']:8.1f}"]
            print(f"  {name:32}{''.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
