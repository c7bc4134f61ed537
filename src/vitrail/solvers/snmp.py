"""SNMP, the paper's combination: stochastic belief propagation, then S4P on unsolved problems."""

from __future__ import annotations

from typing import Any

from vitrail.graph import FactorGraph
from vitrail.random import Key
from vitrail.solvers.bp import BPState, belief_propagation
from vitrail.solvers.run import Solution
from vitrail.solvers.s4p import s4p
from vitrail.solvers.sp import SPState, SurveyPropagation
from vitrail.solvers.stages import Stage, Start
from vitrail.updates import Update


def from_messages(surveys: SurveyPropagation) -> Start:
    """Start surveys as point masses at the final messages of belief propagation."""

    def start(key: Key, graph: FactorGraph, solution: Solution[Any]) -> SPState:
        state = solution.state
        if not isinstance(state, BPState):
            raise TypeError(
                "a warm start needs the messages of belief propagation, but the previous stage "
                f"returned {type(state).__name__}; put belief propagation before it"
            )
        return surveys.warm_start(key, graph, state.messages, state.prior)

    return start


def snmp(
    update: Update,
    *,
    inner: Update | None = None,
    steps: tuple[int, int] = (20, 20),
    sbp_damping: float = 0.8,
    batch: int | None = None,
    **survey_settings: Any,
) -> tuple[Stage, Stage]:
    """The two stages of SNMP, for `run_stages`: messages, then surveys started from them.

    Args:
        update: Update of the first stage.
        inner: Update inside surveys; None is `update`.
        steps: Maximum number of steps of belief propagation and of S4P.
        sbp_damping: Damping of the first stage.
        batch: Factors updated per step in each problem; None updates all.
        **survey_settings: Options of `s4p`.

    Examples:
        >>> from vitrail.updates import flip
        >>> [stage.name for stage in snmp(flip(5))]
        ['sbp', 's4p']
    """
    surveys = s4p(inner or update, batch=batch, **survey_settings)
    return (
        Stage("sbp", belief_propagation(update, damping=sbp_damping, batch=batch), steps[0]),
        Stage("s4p", surveys, steps[1], start=from_messages(surveys)),
    )
