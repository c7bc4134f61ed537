"""Solvers one after another: each stage works only on the problems that are still unsolved.

solution = run_stages([Stage("sbp", …, 20), Stage("s4p", …, 20, start=…)], graph, seed=1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitrail.checks import checked_path
from vitrail.graph import FactorGraph
from vitrail.random import MAX_SEED, Key
from vitrail.solvers.base import Solver
from vitrail.solvers.checkpoint import remove
from vitrail.solvers.history import History, Status
from vitrail.solvers.progress import Progress
from vitrail.solvers.run import Solution, run

Start = Callable[[Key, FactorGraph, Solution[Any]], Any]
STAGE_SEED_STEP = 2**48  # stages draw from seeds this far apart, so that no two share a draw


@dataclass(frozen=True)
class Stage:
    """A solver with its limits and initial state."""

    name: str  # in histories and checkpoints
    solver: Solver[Any]  # the solver
    max_steps: int  # maximum number of steps
    start: Start | None = None  # first state from (key, graph, solution so far); None is `init`
    score_every: int = 1  # steps between two scorings
    max_evaluations: int | None = None  # maximum number of factor evaluations
    marginals: bool = True  # whether beliefs are posterior marginals; those of a search are not


@dataclass(frozen=True, repr=False)
class StagedSolution(Solution[Any]):
    """The solution of all stages, with their joint history and the state of the last stage.

    history["stage"] (steps,) is the index of the stage of each step. A column that a stage lacks is
    NaN there.
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
    """Run the stages in order until every problem is solved or the budget is used up.

    Args:
        stages: The stages; each runs only on problems that are still unsolved.
        graph: One problem or several.
        seed: Same number, same result.
        max_evaluations: Limit for all stages together; a stage may also have its own.
        max_seconds: Wall-clock limit for all stages together.
        tolerance: Messages that change less (as probabilities) for a whole epoch have converged.
        checkpoint: Each stage writes to this file with its name appended; an interrupted run
            resumes from there.
        checkpoint_every: Steps between two saves.
        progress: True shows a bar on a terminal.
        on_stage: Called after every stage with the stage and the solution so far.

    Examples:
        >>> from vitrail import factor_graph, perceptron
        >>> from vitrail.datasets import glass
        >>> from vitrail.solvers import snmp
        >>> from vitrail.updates import exact
        >>> data = glass(5, 11, seed=0)
        >>> graph = factor_graph(perceptron(data.inputs, data.labels))
        >>> run_stages(snmp(exact()), graph).found_by
        ('sbp',)
    """
    checked_path("checkpoint", checkpoint)
    names = [stage.name for stage in stages]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"stages are one or more with different names, got {names}")
    solutions: list[Solution[Any]] = []  # only the last keeps its state
    evaluations, seconds = 0, 0.0
    for number, stage in enumerate(stages):
        stage_seed = (seed + number * STAGE_SEED_STEP) % MAX_SEED
        state, earlier = None, solutions[-1] if solutions else None
        if stage.start is not None and earlier is not None:
            state = stage.start(Key(stage_seed), graph, earlier)
        budgets = (_remaining(max_evaluations, evaluations), stage.max_evaluations)
        found = run(
            stage.solver,
            graph,
            seed=stage_seed,
            max_steps=stage.max_steps,
            max_evaluations=min((b for b in budgets if b is not None), default=None),
            max_seconds=_remaining(max_seconds, seconds),
            tolerance=tolerance,
            score_every=stage.score_every,
            state=state,
            after=earlier,
            checkpoint=None if checkpoint is None else _stage_path(checkpoint, stage),
            checkpoint_every=checkpoint_every,
            progress=progress,
        )
        evaluations, seconds = evaluations + found.evaluations, seconds + found.seconds
        if earlier is not None:
            # problems solved by an earlier stage keep its marginals
            settled = earlier.solved.to(graph.device)[graph.problem]
            kept = torch.where(settled, earlier.marginals, found.marginals)
            found = replace(found, marginals=kept)
            solutions[-1] = replace(earlier, state=None)
        solutions.append(found)
        if on_stage is not None:
            on_stage(stage, found)
        if (
            bool(found.solved.all())
            or Status.INTERRUPTED in found.status
            or _remaining(max_evaluations, evaluations) == 0
            or _remaining(max_seconds, seconds) == 0
        ):
            break
    return _join_solutions(names[: len(solutions)], solutions)


def remove_checkpoints(checkpoint: str | Path, stages: Sequence[Stage]) -> None:
    """Delete all files that `run_stages` may have written."""
    for stage in stages:
        remove(_stage_path(checkpoint, stage))


def _stage_path(checkpoint: str | Path, stage: Stage) -> Path:
    return Path(f"{checkpoint}.{stage.name}")


def _join_solutions(names: Sequence[str], solutions: Sequence[Solution[Any]]) -> StagedSolution:
    """One solution of all stages that ran."""
    last = solutions[-1]
    history = _join_histories([found.history for found in solutions])
    best_stage = torch.full_like(_best_score(last), -1, dtype=torch.int64)
    before = torch.full_like(_best_score(last), -torch.inf)
    for number, found in enumerate(solutions):
        best_stage = torch.where(_best_score(found) > before, number, best_stage)
        before = _best_score(found)
    parts = {part.name: getattr(last, part.name) for part in fields(Solution)}
    for name in ("steps", "evaluations", "seconds"):
        parts[name] = sum(getattr(found, name) for found in solutions)
    return StagedSolution(
        **{**parts, "history": history}, stages=tuple(names), best_stage=best_stage
    )


def _best_score(solution: Solution[Any]) -> Tensor:
    """The score by which best configurations are chosen, (P,)."""
    return solution.best_accuracy if solution.energy is None else -solution.energy


def _remaining(limit: Any, spent: Any) -> Any:
    return None if limit is None else max(limit - spent, 0)


def _join_histories(parts: Sequence[History]) -> History:
    """Concatenated histories: missing columns are NaN, and evaluations are cumulative."""
    shapes = {name: rows[0] for part in parts for name, rows in part.columns.items() if rows}
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
        if len(part):
            joined.columns.setdefault("stage", []).extend([torch.tensor(number)] * len(part))
            evaluations += float(part["evaluations"][-1])
    return joined
