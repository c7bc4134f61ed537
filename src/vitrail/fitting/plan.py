"""A plan: the stages of one training run, made once, with the settings they were made from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from numbers import Real
from typing import Any

from vitrail.fitting.names import SOLVERS, canonical, polish
from vitrail.fitting.problem import AUTO, Problem, Settings, usual
from vitrail.solvers import Solver, Stage
from vitrail.updates import UPDATES

WHOLE = {"samples": 1, "batch": 1, "epochs": 1, "restarts": 1, "polish": 0}  # least values
OWN = ("update", "samples", "damping", "batch")  # what a solver object settles itself


@dataclass(frozen=True)
class Plan(Settings):
    """What a training run does: `stages`, one after another, on `restarts` copies of each net."""

    stages: tuple[Stage, ...]
    problem: Problem

    @property
    def settings(self) -> dict[str, Any]:
        """The plain values, as a record keeps them; inf as text, which JSON can hold."""
        names = [field.name for field in fields(Settings)]
        plain = {name: getattr(self, name) for name in names}
        return {name: "inf" if value == math.inf else value for name, value in plain.items()}

    def changed(self, **given: Any) -> Plan:
        """The plan with some settings changed; stages are made anew."""
        return plan(self.problem, {**self.given(), **given})

    def __reduce__(self) -> Any:
        """Pickled by its settings: stages may hold functions that cannot be."""
        return plan, (self.problem, self.given())

    def given(self) -> dict[str, Any]:
        """Settings under which `plan` makes this plan again."""
        names = [field.name for field in fields(Settings)]
        given = {name: getattr(self, name) for name in names}
        if self.solver not in SOLVERS:
            given = {name: value for name, value in given.items() if name not in OWN}
            given["solver"] = self.stages[: len(self.stages) - bool(self.polish)]
        return given


def plan(problem: Problem, given: Mapping[str, Any]) -> Plan:
    """The plan for a problem; what is given and not "auto" stands as it is.

    given: any fields of Settings; `solver` is a name, a solver, or a sequence of stages.
    """
    given = {name: value for name, value in given.items() if not _auto(value)}
    solver = given.pop("solver", AUTO)
    if isinstance(solver, str):
        entry = SOLVERS[canonical(solver)]
        settings = replace(entry.settings(problem), **given)
        _check(settings)
        stages = entry.stages(settings, problem)
        if canonical(solver) != AUTO:
            stages = (*stages, *polish(settings, problem))
        return Plan(**asdict(settings), stages=tuple(stages), problem=problem)
    foreign = [name for name in OWN if name in given]
    if foreign:
        raise ValueError(
            f"{foreign[0]} belongs to the solver that was passed; set it there, or leave it auto"
        )
    stages = _stages(solver)
    settings = replace(usual(problem), solver=_told(solver), **given)
    _check(settings)
    if stages is None:
        stages = (_paced(solver, settings, problem),)
    stages = (*stages, *polish(settings, problem))
    return Plan(**asdict(settings), stages=stages, problem=problem)


def _auto(value: Any) -> bool:
    return isinstance(value, str) and value == AUTO


def _stages(solver: Any) -> tuple[Stage, ...] | None:
    """The stages that were passed; None for a solver."""
    if isinstance(solver, Solver):
        return None
    if (
        isinstance(solver, Sequence)
        and len(solver)
        and all(isinstance(stage, Stage) for stage in solver)
    ):
        return tuple(solver)
    raise ValueError(
        f"solver must be a name ({', '.join(SOLVERS)}), a solver or stages of vitrail.solvers, "
        f"got {solver!r}"
    )


def _told(solver: Any) -> str:
    stages = _stages(solver)
    return repr(solver) if stages is None else " + ".join(stage.name for stage in stages)


def _paced(solver: Any, settings: Settings, problem: Problem) -> Stage:
    """As many steps as the solver has, or so many that it sees every example `epochs` times."""
    passing = replace(settings.passing(), batch=getattr(solver, "batch", None))
    steps = getattr(solver, "steps", None)
    name = type(solver).__name__
    if isinstance(steps, int):
        return Stage(name, solver, steps)
    every = passing.score_every(problem.factors)
    return Stage(name, solver, passing.steps(problem.factors), score_every=every)


def _check(settings: Settings) -> None:
    if not isinstance(settings.update, str) or settings.update not in UPDATES:
        known = ", ".join(UPDATES)
        raise ValueError(f"unknown update {settings.update!r}; choose one of: auto, {known}")
    if not _number(settings.beta) or not settings.beta > 0:
        raise ValueError(f"beta must be positive (math.inf for hard rows), got {settings.beta!r}")
    for name, least in WHOLE.items():
        value = getattr(settings, name)
        if name == "batch" and value is None:
            continue
        if not _number(value) or not math.isfinite(value) or int(value) != value or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def _number(value: Any) -> bool:
    """Whether it is a number that a float can hold."""
    try:
        return isinstance(value, Real) and not math.isnan(value)
    except OverflowError:
        return False
