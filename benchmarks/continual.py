"""Tasks one after another, seen once and never named: permuted or split MNIST.

python benchmarks/continual.py FOLDER --tasks 3                          # idx files, gzipped or not
python benchmarks/continual.py FOLDER --device cuda --tasks 1000 --seeds 0 1 2 --state run.pt
python benchmarks/continual.py FOLDER --split --tasks 5 --memory 60000
python benchmarks/continual.py FOLDER --held-out 5000 --memory 4e5        # to select settings

Several nets learn side by side, each its own order of rows and its own tasks. All that a net keeps
is one number per weight: messages of each batch are added, and earlier evidence weighs 1/e after
`memory` rows. Hidden units are gates, 1 where |sum| exceeds `width`, else 0. Images have length 1,
so that a sum of random weights is of size 1, and a unit is silent on tasks that it has not learned.
A net answers by the moments of its posterior; its uncertainty, 1 minus the largest probability,
tells images of an unseen task (the AUC of the records). A run goes on from its file --state; the
records are in it and, with --out, in a JSON file. Seconds count learning, without evaluation.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import mnist_files, parser_of, write_json
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from vitrail.nn import BinaryLinear, Gate, Program, program_of
from vitrail.nn.moments import class_probabilities
from vitrail.output import atomic_output
from vitrail.solvers.moment_messages import messages_at
from vitrail.solvers.replay import replay
from vitrail.solvers.streaming import faded

BATCH = 100
AT_ONCE = 20  # batches of a recorded computation
LATE = 5  # tasks whose mean accuracy is reported
CLASSES = 10
SPLIT = 5  # tasks of two digits
FIRST = 1.0  # spread of the random start, log-odds: near 0 a gate does not tell x from −x


@dataclass(frozen=True)
class Images:
    """Images (F, 784) float32 and labels (F,)."""

    inputs: Tensor
    labels: Tensor

    @staticmethod
    def read(folder: Path, part: str, contrast: float, device: str) -> Images:
        """Gray levels to the power of `contrast`, minus their mean over the image, of norm 1."""
        pixels, labels = mnist_files(folder, part)
        levels = torch.from_numpy(pixels.reshape(len(pixels), -1).copy()).to(device)
        inputs = (levels.float() / 255) ** contrast
        inputs = inputs - inputs.mean(1, keepdim=True)
        inputs = inputs / inputs.norm(dim=1, keepdim=True)
        return Images(inputs, torch.from_numpy(labels.astype(np.int64)).to(device))

    def where(self, chosen: Tensor) -> Images:
        return Images(self.inputs[chosen], self.labels[chosen])


@dataclass(frozen=True)
class Task:
    """One task of one net: which pixel stands where, and which digits there are."""

    seed: int
    number: int
    split: bool

    @property
    def draws(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed * 10**6 + self.number)

    def of(self, images: Images) -> Images:
        """The images of the task."""
        if self.split:
            first = 2 * (self.number % SPLIT)
            return images.where((images.labels == first) | (images.labels == first + 1))
        order = torch.randperm(images.inputs.shape[1], generator=self.draws)
        return Images(images.inputs[:, order.to(images.inputs.device)], images.labels)

    def shuffled(self, images: Images) -> Images:
        """Its images in the order in which they come."""
        order = torch.randperm(len(images.labels), generator=self.draws)
        return images.where(order.to(images.labels.device))


class Nets:
    """The beliefs of several nets, and how batches move them."""

    def __init__(self, program: Program, field: Tensor, memory: float) -> None:
        self._field = field
        self._kept = faded(field.new_tensor(float(BATCH)), memory)
        self._messages = torch.vmap(partial(messages_at, program))
        self._recorded: Callable[..., tuple[Tensor, ...]] | None = None

    @property
    def field(self) -> Tensor:
        """Log-odds of every weight, (nets, A) float32."""
        return self._field

    def learn(self, inputs: Tensor, labels: Tensor) -> None:
        """Learn from rows (nets, R, I) with labels (nets, R), batch after batch."""
        size = AT_ONCE * BATCH
        for first in range(0, inputs.shape[1], size):
            part = inputs[:, first : first + size].contiguous(), labels[:, first : first + size]
            if part[0].shape[1] < size:
                self._field = self._after(self._field, *part)
                continue
            if self._recorded is None:
                self._recorded = self._record(self._field, *part)
            (found,) = self._recorded(self._field, *part)
            self._field = found.clone()

    def _record(self, *numbers: Tensor) -> Callable[..., tuple[Tensor, ...]]:
        """The learning of as many rows as these: one CUDA graph, where there is CUDA."""
        places = tuple(number.clone() for number in numbers)
        recorded = replay(lambda: (self._after(*places),), places)
        return recorded or (lambda *values: (self._after(*values),))

    def _after(self, field: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
        for first in range(0, inputs.shape[1], BATCH):
            rows = slice(first, first + BATCH)
            messages = self._messages(field, inputs[:, rows], labels[:, rows])
            field = self._kept * field + messages
        return field


def answered(program: Program, field: Tensor, images: Images) -> tuple[float, np.ndarray]:
    """Accuracy of a net's answers, and how uncertain it is of each image (F,)."""
    probability = torch.sigmoid(field)
    found = class_probabilities(program, probability, images.inputs)
    right = (found.argmax(1) == images.labels).double().mean()
    return float(right), (1 - found.amax(1)).cpu().numpy()


def main() -> None:
    """Run what the command line asks for."""
    args = arguments()
    read = partial(Images.read, args.folder, contrast=args.contrast, device=args.device)
    train = read("train")
    test = read("t10k")
    if args.held_out:
        chosen = torch.randperm(len(train.labels), generator=torch.Generator().manual_seed(0))
        test = train.where(chosen[: args.held_out].to(args.device))
        train = train.where(chosen[args.held_out :].to(args.device))
    if args.rows:
        train = Images(train.inputs[: args.rows], train.labels[: args.rows])
    layers = BinaryLinear(784, args.hidden), Gate(args.width), BinaryLinear(args.hidden, CLASSES)
    program = program_of(nn.Sequential(*layers), (784,))
    draws = [torch.Generator().manual_seed(seed) for seed in args.seeds]
    field = FIRST * torch.stack([torch.randn(program.num_bits, generator=d) for d in draws])
    settings = {k: v for k, v in vars(args).items() if k not in ("folder", "state", "out", "tasks")}
    settings = json.loads(json.dumps(settings))
    run = {"settings": settings, "done": 0, "seconds": 0.0, "records": [], "field": field}
    if args.state and args.state.exists():
        run = torch.load(args.state, weights_only=True)
        if run["settings"] != settings:
            raise ValueError(f"{args.state} is of other settings: {run['settings']}")
    nets = Nets(program, run["field"].to(args.device), args.memory)
    wait = torch.cuda.synchronize if args.device.startswith("cuda") else lambda: None
    first = time.perf_counter()
    for number in range(run["done"], args.tasks):
        wait()
        start = time.perf_counter()
        tasks = [Task(seed, number, args.split) for seed in args.seeds]
        own = [task.of(train) for task in tasks]
        shuffled = [task.shuffled(one) for task, one in zip(tasks, own, strict=True)]
        nets.learn(
            torch.stack([one.inputs for one in shuffled]),
            torch.stack([one.labels for one in shuffled]),
        )
        wait()
        run["seconds"] += time.perf_counter() - start
        run["done"] = number + 1
        late = time.perf_counter() - first > args.seconds
        if run["done"] % args.every == 0 or run["done"] == args.tasks or late:
            run["field"] = nets.field.cpu()
            run["records"].append(record(program, nets.field, args, run, test))
            shown(run["records"][-1])
            if args.state:
                with atomic_output(args.state) as stream:
                    torch.save(run, stream)
            write_json(args.out, {"settings": settings, "records": run["records"]})
        if late:
            break


def record(
    program: Program, field: Tensor, args: argparse.Namespace, run: dict[str, Any], test: Images
) -> dict[str, Any]:
    """What the nets answer now: of the newest task first."""
    done, accuracy, auc = run["done"], [], []
    numbers = range(done - 1, max(0, done - (SPLIT if args.split else LATE)) - 1, -1)
    for net, seed in enumerate(args.seeds):
        found = [
            answered(program, field[net], Task(seed, number, args.split).of(test))
            for number in numbers
        ]
        accuracy.append([round(right, 5) for right, _ in found])
        if not args.split:
            unseen = Task(seed, 10**5 + done, False).of(test)
            new = answered(program, field[net], unseen)[1]
            auc.append([round(_auc(new, seen), 4) for _, seen in found])
    return {
        "tasks": done,
        "seconds": round(run["seconds"], 1),
        "accuracy": accuracy,
        "auc": auc,
        "bytes": field[0].numel() * field.element_size(),
    }


def _auc(new: np.ndarray, seen: np.ndarray) -> float:
    truth = np.concatenate([np.ones(len(new)), np.zeros(len(seen))])
    return float(roc_auc_score(truth, np.concatenate([new, seen])))


def shown(row: dict[str, Any]) -> None:
    """One line of a record: of each net the mean of its tasks, the newest, and the AUC."""
    cells = [
        f"{100 * np.mean(accuracy):6.2f} {100 * accuracy[0]:6.2f}" for accuracy in row["accuracy"]
    ]
    auc = f"  auc {np.mean(row['auc']):.3f} newest {np.mean([a[0] for a in row['auc']]):.3f}"
    tail = auc if row["auc"] else ""
    print(f"{row['tasks']:5} tasks {row['seconds']:7.1f} s {' |'.join(cells)}{tail}", flush=True)


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path, help="where the four idx files of MNIST are")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="one net each")
    parser.add_argument("--split", action="store_true", help="two digits per task, not permuted")
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--memory", type=float, default=400e3, help="rows")
    parser.add_argument("--width", type=float, default=2.0, help="of the gates")
    parser.add_argument("--contrast", type=float, default=0.3)
    parser.add_argument("--held-out", type=int, default=0, help="training images to evaluate on")
    parser.add_argument("--rows", type=int, help="training images, at most")
    parser.add_argument("--every", type=int, default=10, help="tasks between evaluations")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--state", type=Path, help="the run's file: beliefs and records")
    parser.add_argument("--out", type=Path, help="JSON of the records")
    return parser.parse_args()


if __name__ == "__main__":
    main()
