"""A plan: the stages of one training run, made once, with the settings they were made from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from vitrail.learning.checks import checked_setting, is_auto
from vitrail.learning.problem import Problem, Settings, usual
from vitrail.learning.table import SOLVERS, parameter_of, polish
from vitrail.solvers import Stage

OF_STAGES = ("beta", "epochs", "restarts", "polish")  # beside what a solver object settles
OWN = ("update", "samples", "damping", "batch")  # what a solver object settles itself


@dataclass(frozen=True)
class Plan(Settings):
    """What a training run does: `stages`, one after another, on `restarts` copies of each net."""

    stages: tuple[Stage, ...]
    problem: Problem

    @property
    def settings(self) -> dict[str, Any]:
        """What runs, as a record keeps it; inf as text, which JSON can hold."""
        own = SOLVERS[self.solver].options if self.solver in SOLVERS else OF_STAGES
        plain: dict[str, Any] = {"solver": self.solver}
        plain |= {parameter_of(name): getattr(self, name) for name in own}
        plain["stages"] = [stage.name for stage in self.stages]
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
    given = {
        name: checked_setting(name, value) for name, value in given.items() if not is_auto(value)
    }
    solver = given.pop("solver", "messages")
    if isinstance(solver, str):
        entry = SOLVERS[solver]
        if entry.settings is None or entry.stages is None:
            raise ValueError(f"{solver!r} runs no stages; it is a solver of the classifier")
        settings = replace(entry.settings(problem), **given)
        stages = entry.stages(settings, problem)
        if solver != "messages":
            stages = (*stages, *polish(settings, problem))
        return Plan(**asdict(settings), stages=tuple(stages), problem=problem)
    foreign = [name for name in OWN if name in given]
    if foreign:
        raise ValueError(
            f"{foreign[0]} belongs to the solver that was passed; set it there, or leave it auto"
        )
    staged = isinstance(solver, tuple)
    name = " + ".join(stage.name for stage in solver) if staged else repr(solver)
    settings = replace(usual(problem), solver=name, **given)
    stages = solver if staged else (_paced(solver, settings, problem),)
    stages = (*stages, *polish(settings, problem))
    return Plan(**asdict(settings), stages=stages, problem=problem)


def _paced(solver: Any, settings: Settings, problem: Problem) -> Stage:
    """As many steps as the solver has, or so many that it sees every example `epochs` times."""
    passing = replace(settings.passing(), batch=getattr(solver, "batch", None))
    steps = getattr(solver, "steps", None)
    name = type(solver).__name__
    if isinstance(steps, int):
        return Stage(name, solver, steps)
    every = passing.score_every(problem.factors)
    return Stage(name, solver, passing.steps(problem.factors), score_every=every)
