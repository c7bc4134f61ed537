"""The loop that runs every solver.

It steps, decodes, scores candidates, keeps the best configuration of each problem, freezes solved
problems and writes checkpoints. It stops when all problems are solved or converged, when the steps
or the budget are used up, or at Ctrl-C with the best result so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from vitrail import interrupts
from vitrail.brief import brief
from vitrail.checks import check_made, checked_count, checked_number, checked_path
from vitrail.factors import Factors
from vitrail.graph import FactorGraph
from vitrail.kernels.dispatch import find
from vitrail.numerics import bernoulli_entropy
from vitrail.random import Key
from vitrail.solvers import checkpoint as files
from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.history import History, Status
from vitrail.solvers.progress import Progress, progress_bar, silent

StateT = TypeVar("StateT")


@dataclass(frozen=True)
class Solution(Generic[StateT]):
    """The result of a run, for V variables and P problems."""

    weights: Tensor  # (V,) bool, the last decoded configuration
    best: Tensor  # (V,) bool, the best configuration of the run
    marginals: Tensor  # (V,) float64, P(w = 1)
    accuracy: Tensor  # (P,) float64, of `weights`
    best_accuracy: Tensor  # (P,) float64, of `best`
    energy: Tensor | None  # (P,) float64, of `best`; None where all factors are constraints
    status: tuple[Status, ...]  # one per problem
    history: History  # one row per step
    steps: int  # number of steps
    evaluations: int  # of factors, by messages and searches; scoring is not counted
    seconds: float  # wall-clock time
    state: StateT  # to continue from, or to read messages from

    def __repr__(self) -> str:
        names = ("status", "best_accuracy", "energy", "best", "marginals", "steps", "seconds")
        return brief(self, **{name: getattr(self, name) for name in names})

    @property
    def solved(self) -> Tensor:
        """Whether every factor of each problem is satisfied, (P,) bool."""
        return torch.tensor([status == Status.SOLVED for status in self.status])


@dataclass(frozen=True)
class _Track:
    """The loop's own tensors, saved beside the solver's state."""

    weights: Tensor  # (V,) bool
    best: Tensor  # (V,) bool
    accuracy: Tensor  # (P,) float64
    best_accuracy: Tensor  # (P,) float64
    best_objective: Tensor  # (P,) float64, minus the energy of `best`, or its accuracy
    quiet: Tensor  # (P,) int64, consecutive steps with changes below the tolerance
    status: Tensor  # (P,) int64
    evaluations: Tensor  # () int64
    seconds: Tensor  # () float64, of all parts of a resumed run


def run(
    solver: Solver[StateT],
    graph: FactorGraph,
    *,
    seed: int = 0,
    max_steps: int = 100,
    max_evaluations: int | None = None,
    max_seconds: float | None = None,
    tolerance: float = 1e-7,
    score_every: int = 1,
    state: StateT | None = None,
    after: Solution | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 50,
    progress: bool | Progress = False,
    on_step: Callable[[int, Feedback, Info], None] | None = None,
) -> Solution[StateT]:
    """Run a solver on a graph.

    Args:
        solver: The solver, e.g. `belief_propagation(flip())`.
        graph: One problem or several, or a rank's share of them.
        seed: Same number, same result, on any number of ranks.
        max_steps: Maximum number of steps; a step updates all factors, or one batch of them.
        max_evaluations: Budget of factor evaluations by messages and searches; scoring and decoding
            are not counted.
        max_seconds: Wall-clock limit; the result then depends on the machine.
        tolerance: Messages that change less (as probabilities) for a whole epoch have converged.
        score_every: Steps between two scorings; the last step is always scored.
        state: Initial state instead of `solver.init`; the run may write into it.
        after: An earlier solution of the same graph: its solved problems are left unchanged, and
            its best configurations are kept until better ones are found.
        checkpoint: A file to save to; if it exists, the run resumes from it and ends exactly as if
            it had never stopped. Ranks write one file, from which any number of ranks can resume.
        checkpoint_every: Steps between two saves.
        progress: True shows a bar on a terminal.
        on_step: Called after every step with its number, its feedback and its info.

    Examples:
        >>> from vitrail import belief_propagation, factor_graph, perceptron
        >>> from vitrail.datasets import glass
        >>> from vitrail.updates import flip
        >>> data = glass(5, 11, seed=0)
        >>> graph = factor_graph(perceptron(data.inputs, data.labels))
        >>> solution = run(belief_propagation(flip(50), damping=0.5), graph, seed=1)
        >>> str(solution.status[0])
        'solved'
    """
    check_made(solver, "step", "belief_propagation(…) or another solver")
    check_made(graph, "over_variables", "factor_graph(…)")
    if after is not None and after.best.shape != (graph.num_variables,):
        raise ValueError(
            f"`after` is a solution of {len(after.best)} variables, the graph has "
            f"{graph.num_variables}; give one of the same graph"
        )
    checked_path("checkpoint", checkpoint)
    checked_count("max_steps", max_steps, 0)
    checked_count("score_every", score_every, 1)
    checked_count("checkpoint_every", checkpoint_every, 1)
    checked_number("tolerance", tolerance)
    for name, limit in (("max_evaluations", max_evaluations), ("max_seconds", max_seconds)):
        if limit is not None:
            checked_number(name, limit)
    graph = graph if solver.over_ranks else graph.everything
    world = graph.world
    loop = _Loop(solver, graph, Key(seed), tolerance)
    begun = time.perf_counter()
    saver = None
    if checkpoint is not None:
        known = None if after is None else (after.best, after.best_accuracy, after.status)
        start = state
        if state is not None and world.size > 1:
            start = files.gather_state(state, world)
        digest = files.run_digest(world, solver, graph.everything, seed, start, known)
        saver = _Saver(files.Checkpoint(Path(checkpoint), digest, world))
    now = solver.init(Key(seed), graph) if state is None else state
    track, history, step = loop.start(now, after), History(), 0
    if saver is not None:
        resumed = saver.load(now, track)
        if resumed is not None:
            now, track, history, step = resumed
    before = float(track.seconds)
    bar: AbstractContextManager[Progress]
    shown = progress if world.first else False
    bar = progress_bar(max_steps) if shown is True else nullcontext(shown or silent)
    finish, whole = Status.MAX_STEPS, True
    # a step may write into its state, so a stop waits until the step is complete
    with bar as show, interrupts.defer_stop():
        try:
            while True:
                running = [code == Status.RUNNING for code in track.status.tolist()]
                if not any(running):
                    break  # nothing is left to interrupt, so a pending stop waits
                interrupts.check()
                if step >= max_steps:
                    break
                spent = before + time.perf_counter() - begun
                if max_seconds is not None:  # clocks differ, but all ranks must stop together
                    spent = float(world.max(torch.tensor(spent, dtype=torch.float64))[0])
                if (max_evaluations is not None and int(track.evaluations) >= max_evaluations) or (
                    max_seconds is not None and spent >= max_seconds
                ):
                    finish = Status.BUDGET
                    break
                key = Key(seed).at(step)
                active = track.status == Status.RUNNING
                feedback = Feedback(track.accuracy, active, all(running))
                whole = False
                now, info = solver.step(key, graph, now, feedback)
                step += 1
                score = step % score_every == 0 or step == max_steps
                track = loop.update_track(key, now, track, info, feedback, score)
                spent = before + time.perf_counter() - begun
                track = replace(track, seconds=torch.tensor(spent, dtype=torch.float64))
                _record_step(history, graph, solver, now, track, info)
                whole = True
                show(step, track.accuracy, track.best_accuracy)
                if on_step is not None:
                    on_step(step, feedback, info)
                if saver is not None and (step % checkpoint_every == 0 or step == max_steps):
                    saver.save(now, track, history, step)
        except KeyboardInterrupt:
            if world.size > 1:
                raise  # other ranks continue, so no common file can be written
            finish = Status.INTERRUPTED
            if not whole:  # a forced stop: the state may be partly updated
                step = len(history)
            elif saver is not None and step > 0:
                saver.save(now, track, history, step)
    codes = torch.where(track.status == Status.RUNNING, int(finish), track.status)
    return Solution(
        track.weights,
        track.best,
        solver.marginals(graph, now),
        track.accuracy,
        track.best_accuracy,
        graph.energy(track.best[None])[0] if graph.has_energies else None,
        tuple(Status(code) for code in codes.tolist()),
        history,
        step,
        int(track.evaluations),
        before + time.perf_counter() - begun,
        now,
    )


@dataclass(frozen=True)
class _Loop(Generic[StateT]):
    """Decoding, scoring and stopping rules of `run`."""

    solver: Solver[StateT]
    graph: FactorGraph
    key: Key
    tolerance: float

    def start(self, state: StateT, after: Solution | None) -> _Track:
        """The track after scoring the first state, and with the results of an earlier run."""
        problems, device = self.graph.num_problems, self.graph.device
        none = torch.full((problems,), -1.0, dtype=torch.float64, device=device)
        nothing = torch.zeros(self.graph.num_variables, dtype=torch.bool, device=device)
        track = _Track(
            nothing,
            nothing,
            none,
            none,
            torch.full_like(none, -torch.inf),
            torch.zeros(problems, dtype=torch.int64, device=device),
            torch.full((problems,), int(Status.RUNNING), device=device),
            torch.zeros((), dtype=torch.int64),
            torch.zeros((), dtype=torch.float64),
        )
        if after is not None:
            solved = torch.where(after.solved.to(device), int(Status.SOLVED), track.status)
            track = replace(
                track,
                weights=after.weights,
                best=after.best,
                accuracy=after.accuracy,
                best_accuracy=after.best_accuracy,
                best_objective=self._objective(after.best[None], after.best_accuracy[None])[0],
                status=solved,
            )
        return self._score(self.key, state, track, track.status == Status.RUNNING)

    def update_track(
        self, key: Key, state: StateT, track: _Track, info: Info, feedback: Feedback, score: bool
    ) -> _Track:
        """The track after a step."""
        if score:
            track = self._score(key, state, track, feedback.active)
        still = (info.residual <= self.tolerance) & feedback.active
        quiet = torch.where(still, track.quiet + 1, 0)
        graph, status = self.graph, track.status
        running = status == Status.RUNNING
        lost = graph.over_variables(~torch.isfinite(self.solver.log_odds(graph, state))) > 0
        for ended, how in (
            (quiet >= self.solver.epoch_steps(graph), Status.CONVERGED),
            (info.contradiction, Status.CONTRADICTION),
            (lost, Status.NON_FINITE),
            (info.diverged, Status.DIVERGED),
        ):
            if ended is None:
                continue
            status = torch.where(running & ended, int(how), status)
        evaluations = track.evaluations + info.evaluations
        return replace(track, quiet=quiet, status=status, evaluations=evaluations)

    def _objective(self, states: Tensor, accuracy: Tensor) -> Tensor:
        """Objective (C, P), to be maximised, of configurations (C, V) with these accuracies."""
        return self.graph.objective(states) if self.graph.has_energies else accuracy

    def _agrees_with_prior(self, states: Tensor) -> Tensor:
        """Whether no bit opposes the prior, if that counts as energy; (C, P), or (1, 1) True."""
        graph, prior = self.graph, self.graph.log_prior
        if not graph.has_energies:
            return torch.ones(1, 1, dtype=torch.bool, device=graph.device)
        against = torch.where(states, prior < 0, prior > 0).double()
        return torch.stack([graph.over_variables(row) for row in against]) == 0

    def _score(self, key: Key, state: StateT, track: _Track, active: Tensor) -> _Track:
        graph = self.graph
        candidates = self.solver.candidates(key, graph, state)
        weight = graph.weight_per_problem
        met = satisfied(graph, candidates)
        accuracy = met / weight
        value, which = self._objective(candidates, accuracy).max(0)
        better = (value > track.best_objective) & active
        mine = candidates.gather(0, which[graph.problem][None])[0]
        complete = (met >= weight) & self._agrees_with_prior(candidates)
        reached = accuracy.gather(0, which[None])[0]
        return replace(
            track,
            weights=torch.where(active[graph.problem], candidates[0], track.weights),
            best=torch.where(better[graph.problem], mine, track.best),
            accuracy=torch.where(active, accuracy[0], track.accuracy),
            best_accuracy=torch.where(better, reached, track.best_accuracy),
            best_objective=torch.where(better, value, track.best_objective),
            status=torch.where(complete.any(0) & active, int(Status.SOLVED), track.status),
        )


@dataclass
class _Saver:
    """The checkpoint of a run: tensors of the solver's state, the track and the history."""

    file: files.Checkpoint
    step: int = -1  # the last step saved

    def save(self, state: Any, track: _Track, history: History, step: int) -> None:
        if step == self.step:
            return
        self.step = step
        tensors = files.gather_state(state, self.file.world) | files.flatten(track, "track")
        tensors |= {f"history.{name}": history[name] for name in history.columns}
        self.file.save(tensors, step=step)

    def load(self, state: Any, track: _Track) -> tuple[Any, _Track, History, int] | None:
        found = self.file.load()
        if found is None:
            return None
        tensors, meta = found
        columns = {
            name.removeprefix("history."): list(rows.unbind(0))
            for name, rows in tensors.items()
            if name.startswith("history.")
        }
        return (
            files.unflatten(state, files.own_rows(tensors, state, self.file.world), "state"),
            files.unflatten(track, tensors, "track"),
            History(columns),
            int(meta["step"]),
        )


def _record_step(
    history: History, graph: FactorGraph, solver: Solver, state: Any, track: _Track, info: Info
) -> None:
    total = graph.over_variables(bernoulli_entropy(solver.marginals(graph, state)))
    sizes = graph.variables_per_problem.clamp(min=1)
    history.add(
        accuracy=track.accuracy,
        best=track.best_accuracy,
        residual=info.residual,
        entropy=total / sizes,
        evaluations=float(track.evaluations),
        starved=torch.as_tensor(info.starved).double(),
        **info.records,
    )
    if graph.has_energies:
        history.add(best_energy=-track.best_objective)
    if info.min_hits is not None:
        history.add(min_hits=info.min_hits)
    if info.effective_samples is not None:
        history.add(effective_samples=info.effective_samples)


def satisfied(graph: FactorGraph, states: Tensor) -> Tensor:
    """`graph.satisfied` of configurations (C, V) bool: (C, P) float64, compiled where it can be."""
    weighted = []
    for block, weight in zip(graph.blocks, graph.weights, strict=True):
        found = _by_kernel(block, states)
        if found is None:
            return graph.satisfied(states)
        weighted.append(found.to(torch.float64) * weight)
    return graph.per_problem(weighted)


def _by_kernel(block: Factors, states: Tensor) -> Tensor | None:
    terms = block.num_factors * block.arity * len(states)
    kernel = find("score", "auto", block, terms // 4, 1)  # four cost about a draw
    return None if kernel is None else kernel.satisfied(block, states)
