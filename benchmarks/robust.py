"""Streaming against straight-through over seeds, on five sets of images, with one set of settings.

python benchmarks/robust.py DATA OUT --device cuda --jobs 5    # DATA: mnist/, images/, speech/
python benchmarks/robust.py DATA OUT --images usps --nets mlp --hidden 51 51 --seeds 2
python benchmarks/robust.py DATA OUT --report robust           # the table of the runs in OUT

Inputs are gray levels minus the rounded mean of the training images. `posterior` predicts by
moments of the marginals at a share of the last beta, `one net` is the network decoded from them,
`polished` the last network of gradients that begin there (predictor="best" takes whichever of both
is right on more held-out images), and `straight-through` a network of gradients alone at the best
of several rates: that with the fewest errors on held-out training images, which choose it first.
`auto` is, per seed, the posterior or straight-through: the one with fewer errors on held-out
training images after half the epochs. Seeds draw the training images of MNIST, the start and the
batches, for all alike.

OUT/rows.jsonl has a line per run; runs that are there are not made again. Rates are chosen first,
then all pairs and solvers run with seed 0, then with seed 1, so that after `--seconds` the lines
are nearly as many for each. Trials of `auto` come last.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from harness import mnist_files, parser_of, save_record
from torch import Tensor, nn

from vitrail.baselines import straight_through
from vitrail.datasets.idx import max_pool
from vitrail.factors import Network, network
from vitrail.graph import FactorGraph, factor_graph
from vitrail.learning.table import Problem, make_plan, polished
from vitrail.nn import Flatten, Program, Threshold, centred, conv, mlp
from vitrail.nn.coding import numbers
from vitrail.nn.moments import class_probabilities
from vitrail.scores import calibration_error
from vitrail.solvers import Solution, Stage, geometric, run, run_stages

BATCH = 128  # examples, as streaming takes by default
EPOCHS = {"mnist": 12, "inverted": 12, "gray": 12, "usps": 20, "speech": 40}
NETS = ("mlp", "conv")
GRAYS = (32, 160)  # backgrounds of `gray`, one per image
ANSWER = 0.3  # of the last beta, at which the posterior predicts
RATES = (0.001, 0.003, 0.01, 0.03)
HELD_OUT = 6  # one part in so many chooses rates
TAKES = (5, 10)  # of speech: those below the first test, those up to the second choose rates
CALIBRATION_BINS = 15
STREAMING, STRAIGHT = "streaming", "straight-through"
TRIAL = 1 / 2  # of the epochs, after which `auto` chooses, as `select` does
ALONE = ("posterior", "one net", "polished")
COMMAND = "python benchmarks/robust.py DATA OUT --device cuda --jobs 5"


@dataclass(frozen=True)
class Images:
    """Gray levels (rows, 1, height, width) uint8 and labels (rows,) int64."""

    levels: Tensor
    labels: Tensor

    def at(self, rows: np.ndarray) -> Images:
        """Some of them."""
        chosen = torch.from_numpy(rows)
        return Images(self.levels[chosen], self.labels[chosen])


@dataclass(frozen=True)
class Task:
    """A run; the fields are those of its line."""

    images: str
    net: str
    solver: str  # STREAMING or STRAIGHT
    seed: int
    rate: float | None  # first one; None is the usual, or the one that was chosen
    stage: str  # "rates" or "trial", on held-out training images, or "test", on test images


@cache
def images_of(folder: Path, name: str, pool: int) -> tuple[Images, Images, np.ndarray]:
    """Training images, test images, and which training images choose rates, (rows,) bool."""
    if name == "speech":
        found = np.load(folder / "speech" / "spoken_digits.npz")
        every, tests = _images(found["images"], found["labels"], 1), found["take"] < TAKES[0]
        chooses = found["take"][~tests] < TAKES[1]
        return every.at(np.flatnonzero(~tests)), every.at(np.flatnonzero(tests)), chooses
    if name == "usps":
        found = np.load(folder / "images" / "usps.npz")
        parts = [(found[f"{part}_images"], found[f"{part}_labels"]) for part in ("train", "test")]
    else:
        parts = [mnist_files(folder / "mnist", part) for part in ("train", "t10k")]
    train, test = (_images(*_changed(name, *part), pool) for part in parts)
    # writers of MNIST and USPS follow one another, so that the last rows are of other writers
    chooses = np.arange(len(train.labels)) >= len(train.labels) * (1 - 1 / HELD_OUT)
    return train, test, chooses


def _changed(name: str, levels: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Images as they are, inverted, or on a background of their own."""
    if name == "inverted":
        levels = 255 - levels
    elif name == "gray":
        grays = np.random.default_rng(len(levels)).integers(*GRAYS, (len(levels), 1, 1))
        levels = (grays + levels.astype(np.int64) * (255 - grays) // 255).astype(np.uint8)
    return levels, labels


def _images(levels: np.ndarray, labels: np.ndarray, pool: int) -> Images:
    pooled = max_pool(levels, pool)[:, None].copy()
    return Images(torch.from_numpy(pooled), torch.from_numpy(labels.astype(np.int64)))


class Runner:
    """What runs tasks in one process."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args

    def graph(self, task: Task) -> tuple[FactorGraph, Images]:
        """The training images of a task as a graph, and the images that count its errors."""
        args = self.args
        train, test, chooses = images_of(args.data, task.images, args.pool)
        choosing = task.stage != "test"
        rows = np.flatnonzero(~chooses) if choosing else np.arange(len(chooses))
        if len(rows) > args.rows:
            rows = np.random.default_rng(task.seed).permutation(rows)[: args.rows]
        judged = train.at(np.flatnonzero(chooses)) if choosing else test
        train = train.at(np.sort(rows))
        offset = round(float(train.levels.float().mean()))
        levels = centred(train.levels, offset)
        shape = levels.shape[1:]
        if task.net == "mlp":
            module = nn.Sequential(Flatten(), *mlp(shape.numel(), args.hidden, 10))
        else:
            module = conv(shape, args.channels, 10, Threshold)
        graph = factor_graph(network(module, levels, train.labels)).to(args.device)
        judged = Images(centred(judged.levels, offset).to(args.device), judged.labels)
        return graph, judged

    def __call__(self, task: Task) -> dict[str, Any]:
        """The line of a task."""
        torch.set_num_threads(self.args.threads)
        graph, judged = self.graph(task)
        share = self.args.epochs * (TRIAL if task.stage == "trial" else 1)
        epochs = max(1, round(EPOCHS[task.images] * share))
        begun = time.perf_counter()
        if task.solver == STREAMING:
            found = self.streamed(task, graph, judged, epochs)
        else:
            found = self.straight_through(task, graph, judged, epochs)
        seconds = time.perf_counter() - begun
        return {**asdict(task), **found, "seconds": round(seconds, 2)}

    def straight_through(
        self, task: Task, graph: FactorGraph, judged: Images, epochs: int
    ) -> dict[str, Any]:
        """Errors of the last network."""
        assert task.rate is not None
        steps = -(-graph.num_factors // BATCH) * epochs
        solver = straight_through(lr=geometric(task.rate, task.rate / 10, steps), batch=BATCH)
        found = run(solver, graph, seed=task.seed, max_steps=steps, score_every=steps)
        return of_network(graph, found, judged)

    def streamed(
        self, task: Task, graph: FactorGraph, judged: Images, epochs: int
    ) -> dict[str, Any]:
        """Errors of the posterior, of the network decoded from it and of the finished one."""
        rows = graph.num_factors
        problem = Problem(program_of(graph), rows, rows)
        plan = polished(make_plan(problem, {"solver": "streaming", "epochs": epochs}))
        found: dict[str, Any] = {}

        def keep(stage: Stage, solution: Solution[Any]) -> None:
            if stage.marginals:
                found.update(of_network(graph, solution, judged))
                found.update(of_posterior(graph, solution, judged))
            found["polished"] = of_network(graph, solution, judged)["one net"]

        run_stages(plan.stages, graph, seed=task.seed, on_stage=keep)
        return found


def program_of(graph: FactorGraph) -> Program:
    """The net whose weights are the variables."""
    (block,) = graph.blocks
    assert isinstance(block, Network)
    return block.program


def answers(program: Program, bits: Tensor, levels: Tensor) -> Tensor:
    """The class that one network (A,) bool gives to each image, (F,) int64."""
    parts = (numbers(part)[:, None] for part in levels.split(1000))
    outputs = [program.evaluate(bits[None, None], part).flatten(1) for part in parts]
    return torch.cat(outputs).argmax(1)


def errors(found: Tensor, judged: Images) -> float:
    """Percent of images that are given another class."""
    return 100 * float((found.cpu() != judged.labels).double().mean())


def of_network(graph: FactorGraph, found: Solution[Any], judged: Images) -> dict[str, Any]:
    """Errors of the last network of a run, on the images and on those it has learned."""
    given = answers(program_of(graph), found.weights, judged.levels)
    return {"one net": errors(given, judged), "train": 100 * (1 - float(found.accuracy))}


def of_posterior(graph: FactorGraph, found: Solution[Any], judged: Images) -> dict[str, Any]:
    """What the posterior of a run says of images, and how often the run diverged."""
    of_classes = class_probabilities(program_of(graph), found.marginals, judged.levels, beta=ANSWER)
    confidence, classes = of_classes.cpu().max(1)
    right = (classes == judged.labels).numpy()
    return {
        "posterior": errors(classes, judged),
        "calibration error": calibration_error(confidence.numpy(), right, CALIBRATION_BINS),
        "diverged": int(found.history["undone"].max()),
    }


def tasks_of(args: argparse.Namespace) -> Iterator[Task]:
    """All runs, in the order in which they begin."""
    pairs = [(images, net) for images in args.images for net in args.nets]
    for seed in range(args.rate_seeds):
        for pair in pairs:
            yield from (Task(*pair, STRAIGHT, seed, rate, "rates") for rate in RATES)
    for stage in ("test", "trial"):
        for seed in range(args.seeds):
            for solver in (STREAMING, STRAIGHT):
                yield from (Task(*pair, solver, seed, None, stage) for pair in pairs)


def run_all(pool: Executor, runner: Runner, tasks: Iterable[Task]) -> None:
    """Run the tasks that have no line yet, and add their lines, as long as there is time."""
    args, begun, slowest = runner.args, time.perf_counter(), 0.0
    rows = lines(args.out)
    known = {task_of(row) for row in rows}
    running: dict[Future[dict[str, Any]], Task] = {}

    def collect() -> None:
        nonlocal slowest
        for done in wait(running, return_when=FIRST_COMPLETED).done:
            del running[done]
            rows.append(done.result())
            slowest = max(slowest, rows[-1]["seconds"])
            with (args.out / "rows.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(json.dumps(rows[-1]), flush=True)

    for task in tasks:
        if task.solver == STRAIGHT and task.rate is None:
            while any(one.stage == "rates" for one in running.values()):
                collect()
            task = replace(task, rate=best_rate(rows, task.images, task.net))
        if task in known:
            continue
        while len(running) >= args.jobs:
            collect()
        if time.perf_counter() - begun + slowest > args.seconds:
            break
        running[pool.submit(runner, task)] = task
    while running:
        collect()


def lines(out: Path) -> list[dict[str, Any]]:
    """The runs so far."""
    path = out / "rows.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def task_of(row: dict[str, Any]) -> Task:
    """The task that made a line."""
    return Task(**{name: row[name] for name in Task.__dataclass_fields__})


def best_rate(rows: list[dict[str, Any]], images: str, net: str) -> float:
    """The rate of straight-through with the fewest errors on held-out training images."""
    found: dict[float, list[float]] = {}
    for row in rows:
        if (row["stage"], row["images"], row["net"]) == ("rates", images, net):
            found.setdefault(row["rate"], []).append(row["one net"])
    return min(found, key=lambda rate: mean(found[rate]))


def difference(pairs: list[tuple[float, float]]) -> str:
    """Mean of paired differences, and its standard error."""
    gaps = [a - b for a, b in pairs]
    error = stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
    return f"{mean(gaps):+.2f} ± {error:.2f}"


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per set of images and net, over the seeds that both solvers have."""
    found = []
    for images in EPOCHS:
        for net in NETS:
            ours, theirs, our_trials, their_trials = (
                {
                    row["seed"]: row
                    for row in rows
                    if (row["images"], row["net"]) == (images, net)
                    and (row["stage"], row["solver"]) == kind
                }
                for kind in product(("test", "trial"), (STREAMING, STRAIGHT))
            )
            seeds = sorted(ours.keys() & theirs.keys())
            if not seeds:
                continue
            rival = {seed: theirs[seed]["one net"] for seed in seeds}
            row: dict[str, Any] = {"images": images, "net": net, "seeds": len(seeds)}
            values = {answer: {seed: ours[seed][answer] for seed in seeds} for answer in ALONE}
            tried = sorted(our_trials.keys() & their_trials.keys() & set(seeds))
            better = {s: our_trials[s]["posterior"] <= their_trials[s]["one net"] for s in tried}
            if tried:
                values["auto"] = {
                    s: (values["posterior"] if better[s] else rival)[s] for s in tried
                }
            for answer, of_seed in values.items():
                gaps = difference([(of_seed[seed], rival[seed]) for seed in of_seed])
                row |= {answer: mean(of_seed.values()), f"{answer} gap": gaps}
            row |= {
                "straight-through": mean(rival.values()),
                "rate": theirs[seeds[0]]["rate"],
                "calibration error": mean(ours[seed]["calibration error"] for seed in seeds),
                "diverged": sum(ours[seed]["diverged"] > 0 for seed in seeds),
                "streaming chosen": f"{sum(better.values())} of {len(tried)}" if tried else None,
            }
            found.append(row)
    return found


COLUMNS = {
    "images": "{images}",
    "net": "{net}",
    "seeds": "{seeds}",
    "posterior": "{posterior:.2f}",
    "one net": "{one net:.2f}",
    "after gradients": "{polished:.2f}",
    "straight-through": "{straight-through:.2f}",
    "posterior minus straight-through": "{posterior gap}",
    "one net minus straight-through": "{one net gap}",
    "after gradients minus straight-through": "{polished gap}",
    "auto": "{auto:.2f}",
    "auto took streaming": "{streaming chosen}",
    "calibration error": "{calibration error:.3f}",
    "runs that diverged": "{diverged}",
}


def main() -> None:
    """Run what the command line asks for, or write the table."""
    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path, help="folder of mnist/, images/ and speech/")
    parser.add_argument("out", type=Path, help="folder of rows.jsonl")
    parser.add_argument("--images", nargs="+", choices=EPOCHS, default=list(EPOCHS))
    parser.add_argument("--nets", nargs="+", choices=NETS, default=list(NETS))
    parser.add_argument("--hidden", nargs="+", type=int, default=[501, 501])
    parser.add_argument("--channels", nargs="+", type=int, default=[64, 128])
    parser.add_argument("--rows", type=int, default=10_000, help="training images at most")
    parser.add_argument("--epochs", type=float, default=1.0, help="times 12, 20 or 40")
    parser.add_argument("--pool", type=int, default=1, help="2 makes digits 14×14")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rate-seeds", type=int, default=1, help="that choose rates")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--threads", type=int, default=1, help="of each")
    parser.add_argument("--seconds", type=float, default=math.inf, help="no run ends much later")
    parser.add_argument("--report", metavar="NAME", help="write docs/records/NAME.json")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.report:
        save_record(args.report, COMMAND, COLUMNS, summary(lines(args.out)))
        return
    context = multiprocessing.get_context("spawn")  # a GPU does not survive a fork
    with ProcessPoolExecutor(args.jobs, context) as pool:
        run_all(pool, Runner(args), tasks_of(args))


if __name__ == "__main__":
    main()
