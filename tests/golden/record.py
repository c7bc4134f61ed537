"""What is kept of a run: short digests of its bits, and plain numbers that say how it went.

Real numbers are rounded before they are digested: far finer than a step of the message lattice
can show, far coarser than the last bit in which processors' sigmoids differ. Where sums are real
(gaussian messages, pools, gradients) marginals are left out and bits and accuracies speak.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from vitrail import BinaryNetClassifier
from vitrail.graph import FactorGraph
from vitrail.solvers import Solution, Solver, Stage, run, run_stages

Record = dict[str, Any]
Rows = dict[str, Callable[[], Record]]
GRAIN = 2.0**-32


def digest(values: Tensor | np.ndarray) -> str:
    """Sixteen hex digits of SHA-256 over shape, kind and values."""
    array = np.asarray(values.cpu() if isinstance(values, Tensor) else values)
    if array.dtype.kind == "f":
        array = np.rint(array.astype(np.float64) / GRAIN).astype("<i8")
    spelled = f"{array.shape}{array.dtype.str}".encode() + np.ascontiguousarray(array).tobytes()
    return hashlib.sha256(spelled).hexdigest()[:16]


def record(solution: Solution[Any], marginals: bool) -> Record:
    """What must not change about a solution."""
    kept = {
        "status": [status.name for status in solution.status],
        "steps": solution.steps,
        "evaluations": solution.evaluations,
        "best_accuracy": [round(value, 6) for value in solution.best_accuracy.tolist()],
        "best": digest(solution.best),
        "weights": digest(solution.weights),
        "accuracy": digest(solution.history["accuracy"]),
    }
    return {**kept, "marginals": digest(solution.marginals)} if marginals else kept


def found(
    solver: Solver[Any],
    graph: FactorGraph,
    *,
    seed: int,
    steps: int,
    score_every: int = 1,
    marginals: bool = True,
) -> Record:
    """The record of one solver on one graph."""
    solution = run(
        solver,
        graph,
        seed=seed,
        max_steps=steps,
        max_evaluations=None,
        max_seconds=None,
        tolerance=1e-7,
        score_every=score_every,
    )
    return record(solution, marginals)


def staged(
    stages: Sequence[Stage], graph: FactorGraph, *, seed: int, marginals: bool = True
) -> Record:
    """The record of stages, with the ones that ran and found the best."""
    solution = run_stages(
        stages, graph, seed=seed, max_evaluations=None, max_seconds=None, tolerance=1e-7
    )
    names = {"stages": list(solution.stages), "found_by": list(solution.found_by)}
    return {**record(solution, marginals), **names}


def fitted(
    classifier: BinaryNetClassifier, rows: np.ndarray, labels: np.ndarray, marginals: bool = True
) -> Record:
    """The record of a classifier fitted to rows of bits."""
    net = classifier.fit(rows, labels)
    kept: Record = {
        "status": [status.name for status in net.status_],
        "steps": int(net.n_iter_),
        "found_by": list(net.found_by_),
        "score": round(float(net.score(rows, labels)), 6),
        "weights": digest(net.weights_),
    }
    return {**kept, "marginals": digest(net.marginals_)} if marginals else kept
