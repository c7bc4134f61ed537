"""The demo: what networks of one-bit weights can do, in three short scenes.

Ten digits from ten images each; a 3 from a 5; and a random perceptron that only messages solve.
Nothing is downloaded. Seconds of compiling kernels, which are spent once, are counted apart.
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
from vitrail.estimator import BinaryNetClassifier
from vitrail.graph import FactorGraph
from vitrail.lab.datasets import few_per_class
from vitrail.lab.experiments.capacity import SOLVERS, annealing_restarts, instance
from vitrail.lab.plots import Figure, demo_figure
from vitrail.model import Model
from vitrail.scores import calibration_error, reliability
from vitrail.solvers import Solution

SHOTS = 10  # images of every digit
TEST_IMAGES = 10_000  # all of them: 2,000 differ by a percent from draw to draw
INPUTS, ALPHA = 501, 0.7  # of the random perceptron
WARM_UP = 0.1  # seconds of a search that only makes kernels ready
MAX_SECONDS = 60.0  # for messages; they need a few
DESCENT_STEPS = 1000  # of logistic regression; its probabilities move by less than 1e-5 after
SIDE = 14  # pixels of an image


@dataclass
class Stopwatch:
    """Seconds of work, with those spent on compiling kernels apart."""

    work: float = 0.0
    compiling: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        from vitrail.kernels.cpu.compiled import compiling_seconds

        begun, before = time.perf_counter(), compiling_seconds()
        yield
        compiled = compiling_seconds() - before
        self.work += time.perf_counter() - begun - compiled
        self.compiling += compiled


@dataclass(frozen=True)
class DigitsResult:
    """What one classifier predicts for unseen images of ten digits."""

    name: str
    bits: int
    probabilities: np.ndarray  # (rows, 10)
    labels: np.ndarray  # (rows,)
    seconds: float

    @property
    def accuracy(self) -> float:
        return float(self._right.mean())

    @property
    def reliability(self) -> list[tuple[float, float, int]]:
        return reliability(self.probabilities.max(1), self._right)

    @property
    def calibration_error(self) -> float:
        return calibration_error(self.probabilities.max(1), self._right)

    @property
    def _right(self) -> np.ndarray:
        return self.probabilities.argmax(1) == self.labels


@dataclass(frozen=True)
class SearchResult:
    """What one solver reached on the random perceptron."""

    name: str
    bits: int
    unsatisfied: int
    constraints: int
    seconds: float
    course: np.ndarray  # (steps,) constraints unsatisfied by the best configuration so far

    @property
    def solved(self) -> bool:
        return self.unsatisfied == 0


@dataclass
class DemoResult:
    """The three scenes of the demo."""

    digits: list[DigitsResult]
    committee: Model
    pair: Model
    pair_accuracy: float
    pair_seconds: float
    searches: list[SearchResult]
    stopwatch: Stopwatch = field(default_factory=Stopwatch)


def run_demo(seed: int = 0, progress: Callable[[str], None] = lambda line: None) -> DemoResult:
    """Run the three scenes; `progress` is called with a line before each."""
    watch = Stopwatch()
    progress(f"ten digits from {SHOTS} images each")
    digits, committee = learn_digits(seed, watch)
    progress("a 3 from a 5, one unit")
    pair, accuracy, seconds = learn_pair(seed, watch)
    progress(f"a random perceptron, {INPUTS} bits and {round(ALPHA * INPUTS)} constraints")
    searches = search_perceptron(seed, watch)
    return DemoResult(digits, committee, pair, accuracy, seconds, searches, watch)


def learn_digits(seed: int, watch: Stopwatch) -> tuple[list[DigitsResult], Model]:
    """The average over networks, one network, straight-through and logistic regression."""
    data = mnist()
    images, labels = data.inputs.numpy(), data.labels.numpy()
    rows = few_per_class(labels, SHOTS, seed)
    unseen, truth = data.test_inputs.numpy()[:TEST_IMAGES], data.test_labels.numpy()[:TEST_IMAGES]
    found, committee = [], None
    for name, settings in LEARNERS.items():
        before = watch.work
        with watch.running():
            net = BinaryNetClassifier(random_state=seed, **settings)
            net.fit(images[rows], labels[rows])
            probabilities = net.predict_proba(unseen)
        committee = committee or net.model_
        bits = net.model_.networks.numel()
        found.append(DigitsResult(name, bits, probabilities, truth, watch.work - before))
    before = watch.work
    with watch.running():
        probabilities, size = logistic_regression(images[rows], labels[rows], unseen)
    seconds = watch.work - before
    found.append(DigitsResult("logistic regression", 32 * size, probabilities, truth, seconds))
    assert committee is not None
    return found, committee


LEARNERS: dict[str, dict[str, Any]] = {
    "many networks vote": {"predictor": "posterior"},
    "best network": {"predictor": "best", "hidden": ()},
    "straight-through": {"solver": "ste", "predictor": "best", "hidden": ()},
}


def logistic_regression(
    rows: np.ndarray, labels: np.ndarray, unseen: np.ndarray, penalty: float = 1.0
) -> tuple[np.ndarray, int]:
    """Probabilities by weights of full precision, and how many; as scikit-learn's default.

    Gradient descent with momentum, which starts anew where it points uphill; torch's optimisers
    take two seconds to import. Around the mean row it is short, and the bias makes up for that.
    """
    middle = rows.mean(0)
    inputs, target = _with_ones(rows - middle), np.eye(10)[labels]
    pull = np.full((inputs.shape[1], 1), 1 / penalty)
    pull[-1] = 0  # the bias is free
    step = 1 / (np.linalg.norm(inputs, 2) ** 2 / 2 + 1 / penalty)
    weights = ahead = np.zeros((inputs.shape[1], 10))
    age = 0
    for _ in range(DESCENT_STEPS):
        slope = inputs.T @ (_softmax(inputs @ ahead) - target) + pull * ahead
        before, weights = weights, ahead - step * slope
        age = 0 if (slope * (weights - before)).sum() > 0 else age + 1
        ahead = weights + age / (age + 3) * (weights - before)
    return _softmax(_with_ones(unseen - middle) @ weights), weights.size


def _with_ones(rows: np.ndarray) -> np.ndarray:
    return np.concatenate([rows, np.ones((len(rows), 1))], 1)


def _softmax(scores: np.ndarray) -> np.ndarray:
    shares = np.exp(scores - scores.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True)


def learn_pair(seed: int, watch: Stopwatch) -> tuple[Model, float, float]:
    """MNIST 3-vs-5 by one unit: the model, its test accuracy and the seconds it took."""
    pair, before = mnist(pair=(3, 5)), watch.work
    with watch.running():
        net = BinaryNetClassifier(hidden=(), solver="messages", predictor="best", random_state=seed)
        net.fit(pair.inputs.numpy(), pair.labels.numpy())
    accuracy = net.score(pair.test_inputs.numpy(), pair.test_labels.numpy())
    return net.model_, float(accuracy), watch.work - before


def search_perceptron(seed: int, watch: Stopwatch) -> list[SearchResult]:
    """Reinforced messages, and then two other searches with as many seconds."""
    graph = instance(INPUTS, ALPHA, seed)
    with watch.running():  # so that kernels are ready when the clock of a search runs
        for solver in SEARCHES.values():
            search(solver, graph, seed, WARM_UP)
    found: list[SearchResult] = []
    for name, solver in SEARCHES.items():
        with watch.running():
            runs = search(solver, graph, seed, found[0].seconds if found else MAX_SECONDS)
        # seconds may be over before a first step, which leaves an empty history
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


SEARCHES = {  # by the names of the capacity sweep
    "reinforced messages": "reinforced",
    "straight-through": "ste",
    "annealing": "annealing",
}


def search(solver: str, graph: FactorGraph, seed: int, seconds: float) -> list[Solution[Any]]:
    """The runs of a solver within so many seconds: annealing restarts, the others run once."""
    if solver == "annealing":
        return list(annealing_restarts(graph, seed, seconds))
    return [SOLVERS[solver](graph, seed, seconds)]


def pixel_agreement(committee: Model) -> np.ndarray:
    """How far networks agree on each pixel's part, for every digit: (10, 14, 14) from −1 to 1.

    A pixel is for its digit in a network where the hidden units it turns on, by the signs of their
    own weights, are more often for the digit than against it. The share of networks in which it
    is, from all (1) over half (0) to none (−1).
    """
    (units,) = committee.program.hidden or (0,)
    size = committee.program.num_inputs
    bits = 2 * committee.networks.to(torch.int32) - 1  # (K, N, A)
    inner = bits[..., : units * size].unflatten(-1, (units, size))
    votes = (inner * bits[..., units * size :, None]).sum(2)[..., : SIDE * SIDE]
    return votes.sign().double().mean(0).reshape(-1, SIDE, SIDE).numpy()


def figure(result: DemoResult) -> Figure:
    """Where networks agree, the reliability of their confidence, and the search."""
    return demo_figure(
        pixel_agreement(result.committee),
        {
            one.name: [(confidence, accuracy) for confidence, accuracy, _ in one.reliability]
            for one in result.digits
        },
        {one.name: (one.course, one.seconds) for one in result.searches},
    )
