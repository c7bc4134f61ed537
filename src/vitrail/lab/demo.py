"""The first thing to try: what bits found by message passing can do, in three short scenes.

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

from vitrail.baselines.annealing import annealing
from vitrail.baselines.ste import straight_through
from vitrail.data import glass, mnist
from vitrail.data.draws import random_order
from vitrail.estimator import BinaryNetClassifier
from vitrail.factors import perceptron
from vitrail.graph import FactorGraph, factor_graph
from vitrail.lab.plots import Figure, demo_figure
from vitrail.model import Model
from vitrail.solvers import Solution, portfolio, run, run_stages

SHOTS = 10  # images of every digit
TESTED = 10_000  # test images, all of them: 2,000 differ by a percent from draw to draw
INPUTS, ALPHA = 501, 0.7  # of the random perceptron
WARMING = 0.1  # seconds of a search that only makes kernels ready
PATIENCE = 60.0  # seconds that messages may take; they need a few
FOREVER = 10**9  # steps; seconds are what ends these runs
DESCENT = 1000  # steps of logistic regression; its chances move by less than 1e-5 after
BINS = 10  # of confidence
SIDE = 14  # pixels of an image


@dataclass
class Watch:
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
class Answered:
    """A way to learn ten digits, and what it said of images that it had not seen."""

    name: str
    bits: int
    chances: np.ndarray  # (rows, 10)
    labels: np.ndarray  # (rows,)
    seconds: float

    @property
    def accuracy(self) -> float:
        return float((self.chances.argmax(1) == self.labels).mean())

    @property
    def reliability(self) -> list[tuple[float, float, float]]:
        """Of every bin of confidence: mean confidence, share right, share of rows."""
        sure, right = self.chances.max(1), self.chances.argmax(1) == self.labels
        place = np.minimum((sure * BINS).astype(int), BINS - 1)
        return [
            (float(sure[place == one].mean()), float(right[place == one].mean()), share)
            for one in range(BINS)
            if (share := float((place == one).mean())) > 0
        ]

    @property
    def calibration_error(self) -> float:
        """How far confidence and accuracy are apart, on average."""
        return sum(abs(sure - right) * share for sure, right, share in self.reliability)


@dataclass(frozen=True)
class Searched:
    """A solver on the random perceptron."""

    name: str
    bits: int
    unsatisfied: int
    constraints: int
    seconds: float
    course: np.ndarray  # (steps,) constraints unsatisfied at best so far

    @property
    def solved(self) -> bool:
        return self.unsatisfied == 0


@dataclass
class Shown:
    """All that the demo found."""

    digits: list[Answered]
    committee: Model
    pair: Model
    pair_accuracy: float
    pair_seconds: float
    searches: list[Searched]
    watch: Watch = field(default_factory=Watch)


def show(seed: int = 0, tell: Callable[[str], None] = lambda line: None) -> Shown:
    """Play the three scenes; `tell` hears what comes next."""
    watch = Watch()
    tell(f"ten digits from {SHOTS} images each")
    digits, committee = learn_digits(seed, watch)
    tell("a 3 from a 5, one unit")
    pair, accuracy, seconds = learn_pair(seed, watch)
    tell(f"a random perceptron, {INPUTS} bits and {round(ALPHA * INPUTS)} constraints")
    return Shown(digits, committee, pair, accuracy, seconds, search_perceptron(seed, watch), watch)


def learn_digits(seed: int, watch: Watch) -> tuple[list[Answered], Model]:
    """The average over networks, one network, straight-through and logistic regression."""
    data = mnist()
    images, labels = data.inputs.numpy(), data.labels.numpy()
    order = random_order(seed, len(labels))
    rows = np.concatenate([order[labels[order] == digit][:SHOTS] for digit in range(10)])
    unseen, truth = data.test_inputs.numpy()[:TESTED], data.test_labels.numpy()[:TESTED]
    found, committee = [], None
    for name, settings in LEARNERS.items():
        before = watch.work
        with watch.running():
            net = BinaryNetClassifier(random_state=seed, **settings)
            net.fit(images[rows], labels[rows])
            chances = net.predict_proba(unseen)
        committee = committee or net.model_
        bits = net.model_.networks.numel()
        found.append(Answered(name, bits, chances, truth, watch.work - before))
    before = watch.work
    with watch.running():
        chances, size = logistic_regression(images[rows], labels[rows], unseen)
    found.append(Answered("logistic regression", 32 * size, chances, truth, watch.work - before))
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
    """Chances by weights of full precision, and how many weights; as scikit-learn's default.

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
    for _ in range(DESCENT):
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


def learn_pair(seed: int, watch: Watch) -> tuple[Model, float, float]:
    """MNIST 3-vs-5 by one unit: the model, its test accuracy and the seconds it took."""
    pair, before = mnist(pair=(3, 5)), watch.work
    with watch.running():
        net = BinaryNetClassifier(hidden=(), solver="auto", predictor="best", random_state=seed)
        net.fit(pair.inputs.numpy(), pair.labels.numpy())
    accuracy = net.score(pair.test_inputs.numpy(), pair.test_labels.numpy())
    return net.model_, float(accuracy), watch.work - before


def search_perceptron(seed: int, watch: Watch) -> list[Searched]:
    """Reinforced messages, and then their rivals with as many seconds."""
    data = glass(round(ALPHA * INPUTS), INPUTS, seed=seed)
    graph = factor_graph(perceptron(data.inputs, data.labels))
    solvers = {
        "reinforced messages": messages,
        "straight-through": gradients,
        "annealing": annealed,
    }
    with watch.running():  # so that kernels are ready when the clock of a search runs
        for search in solvers.values():
            search(graph, seed, WARMING)
    found: list[Searched] = []
    for name, search in solvers.items():
        with watch.running():
            ended = search(graph, seed, found[0].seconds if found else PATIENCE)
        unsatisfied = (1 - ended.course[:, 0].double().numpy()) * graph.num_factors
        left = round((1 - float(ended.solution.best_accuracy)) * graph.num_factors)
        found.append(
            Searched(
                name,
                graph.num_variables,
                left,
                graph.num_factors,
                ended.seconds,
                np.minimum.accumulate(unsatisfied),
            )
        )
    return found


@dataclass(frozen=True)
class Search:
    """How a search went: what it found, in how many seconds, its best accuracy at each step."""

    solution: Solution[Any]
    seconds: float
    course: torch.Tensor  # (steps, 1)


def best_so_far(solution: Solution[Any]) -> torch.Tensor:
    """The best accuracy at each step, (steps, 1); of none if the seconds were over before."""
    return solution.history["best"] if len(solution.history) else torch.empty(0, 1)


def annealed(graph: FactorGraph, seed: int, seconds: float) -> Search:
    """Whole searches from new starts, one after another, until the seconds are over."""
    solver, found, spent, course = annealing(), None, 0.0, []
    while found is None or (spent < seconds and not bool(found.solved.all())):
        left = max(0.0, seconds - spent)
        found = run(solver, graph, seed=seed, max_steps=solver.steps, max_seconds=left, after=found)
        seed, spent = seed + 1, spent + found.seconds
        course.append(best_so_far(found))
    return Search(found, spent, torch.cat(course))


def gradients(graph: FactorGraph, seed: int, seconds: float) -> Search:
    """Straight-through until the seconds are over."""
    found = run(straight_through(), graph, seed=seed, max_steps=FOREVER, max_seconds=seconds)
    return Search(found, found.seconds, best_so_far(found))


def messages(graph: FactorGraph, seed: int, seconds: float) -> Search:
    """Reinforced messages."""
    stages = portfolio(graph, ("reinforced",))
    found = run_stages(stages, graph, seed=seed, max_seconds=seconds)
    return Search(found, found.seconds, best_so_far(found))


def certainty(committee: Model) -> np.ndarray:
    """How sure each pixel's part is, for every digit: (10, 14, 14) from −1 to 1.

    A pixel pulls for its digit in a network where the hidden units it turns on, by the signs of
    their own weights, are more often for it than against. The share of networks in which it does,
    from all (1) over half (0) to none (−1).
    """
    (units,) = committee.program.hidden or (0,)
    size = committee.program.num_inputs
    bits = 2 * committee.networks.to(torch.int32) - 1  # (K, N, A)
    inner = bits[..., : units * size].unflatten(-1, (units, size))
    pull = (inner * bits[..., units * size :, None]).sum(2)[..., : SIDE * SIDE]
    return pull.sign().double().mean(0).reshape(-1, SIDE, SIDE).numpy()


def figure(shown: Shown) -> Figure:
    """The certainty of every pixel's part, how far answers can be trusted, and the search."""
    return demo_figure(
        certainty(shown.committee),
        {one.name: [(sure, right) for sure, right, _ in one.reliability] for one in shown.digits},
        {one.name: (one.course, one.seconds) for one in shown.searches},
    )
