"""Inference on a model of discrete variables: log Z, marginals, the best configuration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from vitrail.checks import checked_choice
from vitrail.factors import DiscreteModel
from vitrail.solvers.bethe import bethe
from vitrail.solvers.bp import belief_propagation
from vitrail.solvers.elimination import WidthError, eliminate, log_partition
from vitrail.solvers.polish import polish
from vitrail.solvers.run import run
from vitrail.updates import exact

Task = Literal["pr", "mar", "map"]
Method = Literal["auto", "elimination", "messages"]
BP_STEPS = 500  # of damped belief propagation, at most
FLIPS = 1_000_000  # per step of the search for the best configuration
DAMPING = 0.5


@dataclass(frozen=True)
class Inference:
    """The answer to one query."""

    answer: float | list[int] | list[list[float]]  # log10 Z; values; probabilities of values
    method: str  # method used: elimination or messages


def infer(
    model: DiscreteModel, task: Task = "mar", *, method: Method = "auto", seed: int = 0
) -> Inference:
    """Answer a query about a model, exactly where its width allows it.

    "messages" is belief propagation on the bits of the variables, with the Bethe estimate of log Z,
    and local search for the best configuration. It is approximate on graphs with loops and for
    variables of more than two values.

    Args:
        model: A model, such as `read_model` returns.
        task: "pr" for log10 Z, "mar" for marginals, "map" for a best configuration.
        method: "elimination", "messages", or "auto": elimination within its memory limit.
        seed: Same number, same result.

    Returns:
        The answer and the method used.

    Examples:
        >>> import numpy as np
        >>> from vitrail.factors import DiscreteModel, LogTable
        >>> model = DiscreteModel((2,), (LogTable((0,), np.log([1.0, 3.0])),))
        >>> [round(p, 6) for p in infer(model, "mar").answer[0]]
        [0.25, 0.75]
    """
    checked_choice("task", task, get_args(Task))
    checked_choice("method", method, get_args(Method))
    if method != "messages":
        try:
            return Inference(_infer_exactly(model, task), "elimination")
        except WidthError:
            if method == "elimination":
                raise
    return Inference(_infer_by_messages(model, task, seed), "messages")


def _infer_exactly(model: DiscreteModel, task: Task) -> float | list[int] | list[list[float]]:
    if task == "pr":
        return _log10(model, float(log_partition(model.graph)))
    answer = eliminate(model.graph)
    if not math.isfinite(float(answer.log_z) + model.log_constant):
        raise ValueError("no configuration is possible: Z is 0; correct the model or the evidence")
    if task == "map":
        return model.values(answer.best)
    return model.marginals(answer.marginals, answer.factor_marginals)


def _infer_by_messages(
    model: DiscreteModel, task: Task, seed: int
) -> float | list[int] | list[list[float]]:
    if task == "map":
        found = run(polish(FLIPS), model.graph, seed=seed, max_steps=8)
        return model.values(found.best)
    solver = belief_propagation(exact(), damping=DAMPING, prior_scale=0.0)
    estimate = bethe(model.graph, run(solver, model.graph, seed=seed, max_steps=BP_STEPS).state)
    if task == "pr":
        return _log10(model, float(estimate.log_z))
    return model.marginals(estimate.marginals, estimate.factor_marginals)


def _log10(model: DiscreteModel, log_z: float) -> float:
    return (log_z + model.log_constant) / math.log(10)
