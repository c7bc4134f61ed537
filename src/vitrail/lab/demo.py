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
from vitrail.graph import FactorGraph
from vitrail.lab.experiments.capacity import SOLVERS, annealing_restarts, instance
from vitrail.lab.plots import Figure, Line, Panel, demo_figure
from vitrail.model import Model
from vitrail.scores import calibration_error, reliability
from vitrail.solvers import Solution

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
SEARCHES = {  # by the names of the capacity sweep
    "approximate messages": "amp",
    "annealing": "annealing",
}


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
class DigitsResult:
    """Predictions of one classifier for test images of ten digits."""

    name: str
    bits: int
    confidence: np.ndarray  # (rows,)
    right: np.ndarray  # (rows,)
    seconds: float

    @property
    def accuracy(self) -> float:
        return float(self.right.mean())

    @property
    def calibration_error(self) -> float:
        return calibration_error(self.confidence, self.right)


@dataclass(frozen=True)
class SearchResult:
    """Result of one solver on the random perceptron."""

    name: str
    bits: int
    unsatisfied: int
    constraints: int
    seconds: float
    history: np.ndarray  # (steps,) constraints unsatisfied by the best configuration so far


@dataclass
class DemoResult:
    """Results of the three examples."""

    digits: list[DigitsResult]
    committee: Model
    pair: Model
    pair_accuracy: float
    pair_seconds: float
    searches: list[SearchResult]
    stopwatch: Stopwatch = field(default_factory=Stopwatch)


def run_demo(seed: int = 0, progress: Callable[[str], None] = lambda line: None) -> DemoResult:
    """Run the three examples; `progress` is called with a line before each."""
    watch = Stopwatch()
    progress(f"ten digits from {SHOTS} images each")
    digits, committee = learn_digits(seed, watch)
    progress("a 3 from a 5, one unit")
    pair, accuracy, seconds = learn_pair(seed, watch)
    progress(f"a random perceptron, {INPUTS} bits and {round(ALPHA * INPUTS)} constraints")
    searches = search_perceptron(seed, watch)
    return DemoResult(digits, committee, pair, accuracy, seconds, searches, watch)


def learn_digits(seed: int, watch: Stopwatch) -> tuple[list[DigitsResult], Model]:
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
    found = []
    for name, learner in learners.items():
        with watch.running():
            probabilities = learner.fit(images, labels).predict_proba(test)
        if name in LEARNERS:
            bits = learner.model_.networks.numel()
        else:
            bits = 32 * (learner.coef_.size + learner.intercept_.size)
        right = probabilities.argmax(1) == truth
        found.append(DigitsResult(name, bits, probabilities.max(1), right, watch.last))
    return found, learners[next(iter(LEARNERS))].model_


def few_per_class(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Row numbers of `count` randomly drawn examples of every class."""
    order = random_order(seed, len(labels))
    return np.concatenate([order[labels[order] == label][:count] for label in np.unique(labels)])


def learn_pair(seed: int, watch: Stopwatch) -> tuple[Model, float, float]:
    """MNIST 3-vs-5 by one unit: the model, its test accuracy and the seconds it took."""
    pair = mnist(pair=(3, 5))
    with watch.running():
        net = BinaryNetClassifier(hidden=(), solver="messages", predictor="best", random_state=seed)
        net.fit(pair.inputs.numpy(), pair.labels.numpy())
    accuracy = net.score(pair.test_inputs.numpy(), pair.test_labels.numpy())
    return net.model_, float(accuracy), watch.last


def search_perceptron(seed: int, watch: Stopwatch) -> list[SearchResult]:
    """Approximate message passing, then annealing for `LONGER` times as many seconds."""
    graph = instance(INPUTS, ALPHA, seed)
    with watch.running():  # loads kernels before searches are timed
        for solver in SEARCHES.values():
            search(solver, graph, seed, WARM_UP)
    found: list[SearchResult] = []
    for name, solver in SEARCHES.items():
        with watch.running():
            limit = LONGER * found[0].seconds if found else MAX_SECONDS
            runs = search(solver, graph, seed, limit)
        # time may be up before the first step, which leaves an empty history
        best = [part.history["best"][:, 0] for part in runs if len(part.history)]
        accuracy = torch.cat([*best, torch.empty(0)]).double().numpy()
        found.append(
            SearchResult(
                name,
                graph.num_variables,
                round((1 - float(runs[-1].best_accuracy)) * graph.num_factors),
                graph.num_factors,
                sum(part.seconds for part in runs),
                np.minimum.accumulate((1 - accuracy) * graph.num_factors),
            )
        )
    return found


def search(solver: str, graph: FactorGraph, seed: int, seconds: float) -> list[Solution[Any]]:
    """The runs of a solver within a time limit: annealing restarts, the others run once."""
    if solver == "annealing":
        return list(annealing_restarts(graph, seed, seconds))
    return [SOLVERS[solver](graph, seed, seconds)]


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
    calibration, searches = [], []
    for one in result.digits:
        confidence, accuracy, _ = zip(*reliability(one.confidence, one.right), strict=True)
        calibration.append(Line(one.name, confidence, accuracy))
    for one in result.searches:
        clock = np.linspace(0, one.seconds, len(one.history) + 1)[1:]
        searches.append(Line(one.name, clock, one.history))
    return demo_figure(
        pixel_agreement(result.committee),
        Panel("ten digits, test images", "confidence", "accuracy", tuple(calibration)),
        Panel("random perceptron", "seconds", "constraints not satisfied", tuple(searches)),
    )
