"""The demo: three short examples of networks of one-bit weights.

Ten digits learned from ten images each, the digits 3 and 5, and a random perceptron that annealing
does not solve in ten times the time of messages. Nothing is downloaded. Seconds of compiling
kernels, which happens once, are counted separately.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from vitrail.datasets import mnist
from vitrail.draws import random_order
from vitrail.estimator import BinaryNetClassifier
from vitrail.lab.experiments.capacity import SOLVERS, annealing_restarts, instance
from vitrail.lab.plots import Figure, Line, Panel, demo_figure
from vitrail.model import Model
from vitrail.scores import calibration_error, reliability

SHOTS = 10  # images of every digit
TEST_IMAGES = 10_000  # all of them: accuracy on 2,000 varies by a percent
INPUTS, ALPHA = 501, 0.74  # of the random perceptron
WARM_UP = 0.1  # seconds of a search that loads kernels
MAX_SECONDS = 60.0  # for messages, which take one or two
LONGER = 10  # factor of the time limit of annealing
SIDE = 14  # pixels per row of an image
LEARNERS: dict[str, dict[str, Any]] = {
    "many networks vote": {"predictor": "posterior"},
    "best network": {"predictor": "best", "hidden": ()},
    "straight-through": {"solver": "ste", "predictor": "best", "hidden": ()},
}
SEARCHES = {"approximate messages": "amp", "annealing": "annealing"}  # names of SOLVERS


@dataclass
class Stopwatch:
    """Seconds of work, and, separately, of compiling kernels."""

    work: float = 0.0
    compiling: float = 0.0
    last: float = 0.0  # work of the last block

    @contextmanager
    def running(self) -> Iterator[None]:
        from vitrail.kernels.cpu.compiled import compiling_seconds

        begun, before = time.perf_counter(), compiling_seconds()
        yield
        compiled = compiling_seconds() - before
        self.last = time.perf_counter() - begun - compiled
        self.work += self.last
        self.compiling += compiled


@dataclass(frozen=True)
class DemoRow:
    """One method on one problem."""

    problem: str
    method: str
    accuracy: float  # on test images; of a search, the share of satisfied constraints
    calibration_error: float | None
    bits: int
    seconds: float


@dataclass
class DemoResult:
    """Rows of the three examples, and the lines and images of their figure."""

    rows: list[DemoRow] = field(default_factory=list)
    reliability: list[Line] = field(default_factory=list)
    searches: list[Line] = field(default_factory=list)
    pixels: np.ndarray = field(default_factory=lambda: np.zeros((10, SIDE, SIDE)))
    stopwatch: Stopwatch = field(default_factory=Stopwatch)


def run_demo(seed: int = 0, progress: Callable[[str], None] = lambda line: None) -> DemoResult:
    """Run the three examples; `progress` is called with a line before each."""
    result = DemoResult()
    for problem, example in (
        (f"ten digits, {SHOTS} images each", learn_digits),
        ("MNIST 3-vs-5, one unit", learn_pair),
        (f"random, {round(ALPHA * INPUTS)} constraints", search_perceptron),
    ):
        progress(problem)
        example(result, problem, seed)
    return result


def learn_digits(result: DemoResult, problem: str, seed: int) -> None:
    """A vote of networks, one network, straight-through and logistic regression."""
    from sklearn.linear_model import LogisticRegression

    data = mnist()
    rows = few_per_class(data.labels.numpy(), SHOTS, seed)
    images, labels = data.inputs.numpy()[rows], data.labels.numpy()[rows]
    test, truth = data.test_inputs.numpy()[:TEST_IMAGES], data.test_labels.numpy()[:TEST_IMAGES]
    learners: dict[str, Any] = {
        name: BinaryNetClassifier(random_state=seed, **settings)
        for name, settings in LEARNERS.items()
    }
    learners["logistic regression"] = LogisticRegression(max_iter=1000)
    for name, learner in learners.items():
        with result.stopwatch.running():
            probabilities = learner.fit(images, labels).predict_proba(test)
        if name in LEARNERS:
            bits = learner.model_.networks.numel()
        else:
            bits = 32 * (learner.coef_.size + learner.intercept_.size)
        confidence, correct = probabilities.max(1), probabilities.argmax(1) == truth
        error, seconds = calibration_error(confidence, correct), result.stopwatch.last
        row = DemoRow(problem, name, float(correct.mean()), error, bits, seconds)
        result.rows.append(row)
        x, y, _ = zip(*reliability(confidence, correct), strict=True)
        result.reliability.append(Line(name, x, y))
    result.pixels = pixel_agreement(learners[next(iter(LEARNERS))].model_)


def few_per_class(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Row numbers of `count` randomly drawn examples of every class."""
    order = random_order(seed, len(labels))
    return np.concatenate([order[labels[order] == label][:count] for label in np.unique(labels)])


def learn_pair(result: DemoResult, problem: str, seed: int) -> None:
    """MNIST 3-vs-5 by one unit."""
    pair = mnist(pair=(3, 5))
    net = BinaryNetClassifier(hidden=(), solver="messages", predictor="best", random_state=seed)
    with result.stopwatch.running():
        net.fit(pair.inputs.numpy(), pair.labels.numpy())
    accuracy = float(net.score(pair.test_inputs.numpy(), pair.test_labels.numpy()))
    seconds = result.stopwatch.last
    result.rows.append(DemoRow(problem, "messages", accuracy, None, net.model_.bits, seconds))


def search_perceptron(result: DemoResult, problem: str, seed: int) -> None:
    """Approximate message passing, then annealing for `LONGER` times as many seconds."""
    graph = instance(INPUTS, ALPHA, seed)

    def search(solver: str, seconds: float) -> list[Any]:
        """The runs within a time limit: annealing restarts, the other runs once."""
        if solver == "annealing":
            return list(annealing_restarts(graph, seed, seconds))
        return [SOLVERS[solver](graph, seed, seconds)]

    with result.stopwatch.running():  # loads kernels before searches are timed
        for solver in SEARCHES.values():
            search(solver, WARM_UP)
    limit = MAX_SECONDS
    for name, solver in SEARCHES.items():
        with result.stopwatch.running():
            runs = search(solver, limit)
        seconds = sum(part.seconds for part in runs)
        limit = LONGER * seconds
        best = float(runs[-1].best_accuracy)
        result.rows.append(DemoRow(problem, name, best, None, graph.num_variables, seconds))
        # time may be up before the first step, which leaves an empty history
        parts = [part.history["best"][:, 0] for part in runs if len(part.history)]
        accuracy = torch.cat([*parts, torch.empty(0)]).double().numpy()
        violated = np.minimum.accumulate((1 - accuracy) * graph.num_factors)
        clock = np.linspace(0, seconds, len(violated) + 1)[1:]
        result.searches.append(Line(name, clock, violated))


def pixel_agreement(committee: Model) -> np.ndarray:
    """Agreement of networks on the sign of each pixel for every digit: (10, 14, 14), −1 to 1.

    In a network, a pixel favours the digit if most hidden units vote for the digit when it is on.
    1 means that it does in all networks, 0 in half of them, −1 in none.
    """
    (units,) = committee.program.hidden or (0,)
    size = committee.program.num_inputs
    bits = 2 * committee.networks.to(torch.int32) - 1  # (K, N, A)
    inner = bits[..., : units * size].unflatten(-1, (units, size))
    votes = (inner * bits[..., units * size :, None]).sum(2)[..., : SIDE * SIDE]
    return votes.sign().double().mean(0).reshape(-1, SIDE, SIDE).numpy()


def figure(result: DemoResult) -> Figure:
    """Agreement on pixels, reliability diagram, and progress of the searches."""
    return demo_figure(
        result.pixels,
        Panel("ten digits, test images", "confidence", "accuracy", tuple(result.reliability)),
        Panel("random perceptron", "seconds", "constraints violated", tuple(result.searches)),
    )
