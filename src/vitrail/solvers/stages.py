"""Solvers one after another: each stage works only on the problems that are still unsolved.

    solution = run_stages([Stage("sbp", …, 20), Stage("s4p", …, 20, start=…)], graph, seed=1)

Every stage is a `run` of its own, after the ones before it: what is solved stays as it is, the
best configuration of each problem is kept unless beaten, and budgets go over the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitrail.graph import FactorGraph
from vitrail.random import MAX_SEED, Key
from vitrail.solvers.base import Solver
from vitrail.solvers.history import History
from vitrail.solvers.progress import Progress
from vitrail.solvers.run import Solution, run
from vitrail.solvers.status import Status

Start = Callable[[Key, FactorGraph, Solution[Any]], Any]
SEEDS_APART = 2**48  # stages draw from seeds this far apart, so that no two share a draw


@dataclass(frozen=True)
class Stage:
    """A solver, how long it may run, and how it begins.

    start: the first state from (key, graph, solution so far); None is the solver's own init.
    """

    name: str
    solver: Solver[Any]
    max_steps: int
    start: Start | None = None
    score_every: int = 1
    max_evaluations: int | None = None


@dataclass(frozen=True)
class StagedSolution(Solution[Any]):
    """One solution of all stages. History columns run through; `state` is the last stage's.

    history["stage"] (steps,) is the number of the stage that made the step, and
    history["best_stage"] (steps, P) of the one that found the best configuration so far, −1 for
    none yet. A column that a stage does not have is NaN there.
    """

    stages: tuple[str, ...]  # names of the stages that ran
    best_stage: Tensor  # (P,) int64: the stage that found each problem's best configuration

    @property
    def found_by(self) -> tuple[str, ...]:
        """The name of the stage that found the best configuration of each problem."""
        return tuple(self.stages[number] for number in self.best_stage.tolist())


def run_stages(
    stages: Sequence[Stage],
    graph: FactorGraph,
    *,
    seed: int = 0,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    tolerance: float = 1e-7,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 50,
    progress: bool | Progress = False,
    on_stage: Callable[[Stage, Solution[Any]], None] | None = None,
) -> StagedSolution:
    """Run the stages in order until every problem is solved or the budget is spent.

    max_evaluations and max_seconds are for all stages together; a stage may have its own limit of
    evaluations too. checkpoint: each stage writes to the file with its name appended, and a run
    that was cut goes on from there. on_stage is called after every stage.
    """
    names = [stage.name for stage in stages]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"stages need names of their own, at least one, got {names}")
    done: list[Solution[Any]] = []
    merged: Solution[Any] | None = None
    best_stage = torch.full((graph.num_problems,), -1, dtype=torch.int64, device=graph.device)
    rows: list[Tensor] = []
    for number, stage in enumerate(stages):
        left = _less(max_evaluations, sum(part.evaluations for part in done))
        seconds = _less(max_seconds, sum(part.seconds for part in done))
        stage_seed = (seed + number * SEEDS_APART) % MAX_SEED
        state = None
        if stage.start is not None and merged is not None:
            state = stage.start(Key(stage_seed), graph, merged)
        found = run(
            stage.solver,
            graph,
            seed=stage_seed,
            max_steps=stage.max_steps,
            max_evaluations=_least(left, stage.max_evaluations),
            max_seconds=seconds,
            tolerance=tolerance,
            score_every=stage.score_every,
            state=state,
            after=merged,
            checkpoint=None if checkpoint is None else Path(f"{checkpoint}.{stage.name}"),
            checkpoint_every=checkpoint_every,
            progress=progress,
        )
        before = (
            torch.full_like(found.best_accuracy, -1) if merged is None else merged.best_accuracy
        )
        rows += _best_stages(found, before, best_stage, number)
        best_stage = torch.where(found.best_accuracy > before, number, best_stage)
        merged = found if merged is None else _merged(graph, merged, found)
        done.append(found)
        if on_stage is not None:
            on_stage(stage, found)
        spent = any(status in (Status.BUDGET, Status.INTERRUPTED) for status in found.status)
        own = stage.max_evaluations is not None and found.evaluations >= stage.max_evaluations
        if bool(merged.solved.all()) or (spent and not own):
            break
    assert merged is not None
    history = _joined([part.history for part in done])
    if rows:
        history.columns["best_stage"] = rows
    fields = {name: getattr(merged, name) for name in Solution.__dataclass_fields__}
    fields |= {
        "history": history,
        "steps": sum(part.steps for part in done),
        "evaluations": sum(part.evaluations for part in done),
        "seconds": sum(part.seconds for part in done),
    }
    return StagedSolution(**fields, stages=tuple(names[: len(done)]), best_stage=best_stage)


def _less(limit: Any, spent: Any) -> Any:
    return None if limit is None else max(limit - spent, 0)


def _least(first: int | None, second: int | None) -> int | None:
    given = [limit for limit in (first, second) if limit is not None]
    return min(given, default=None)


def _merged(graph: FactorGraph, earlier: Solution[Any], later: Solution[Any]) -> Solution[Any]:
    """The later solution, with the marginals of problems that were solved before it."""
    settled = earlier.solved.to(graph.device)[graph.problem]
    return replace(later, marginals=torch.where(settled, earlier.marginals, later.marginals))


def _best_stages(
    found: Solution[Any], before: Tensor, best_stage: Tensor, number: int
) -> list[Tensor]:
    """For each step of a stage: which stage found the best of each problem so far, (P,)."""
    if not len(found.history):
        return []
    return [torch.where(row > before, number, best_stage) for row in found.history["best"]]


def _joined(parts: Sequence[History]) -> History:
    """Histories one after another; what a part lacks is NaN; evaluations go on counting."""
    shapes = {
        name: part[name][0] for part in parts for name in part.names() if len(part.columns[name])
    }
    joined, evaluations = History(), 0.0
    for number, part in enumerate(parts):
        for name, like in shapes.items():
            if name in part:
                rows = list(part.columns[name])
            else:
                rows = [torch.full_like(like, torch.nan, dtype=torch.float64)] * len(part)
            if name == "evaluations":
                rows = [row + evaluations for row in rows]
            joined.columns.setdefault(name, []).extend(rows)
        joined.columns.setdefault("stage", []).extend([torch.tensor(number)] * len(part))
        if len(part):
            evaluations += float(part["evaluations"][-1])
    return joined
