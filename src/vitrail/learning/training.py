"""One run of a plan on all nets at once, and its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitrail import ranks
from vitrail.errors import TableTooLargeError
from vitrail.learning.examples import Examples, graph_of
from vitrail.learning.table import AUTO, Plan, Problem
from vitrail.memory import available_memory, in_gigabytes
from vitrail.nn import Program
from vitrail.solvers import MessagePassing, Solution, Stage, Status, run_stages
from vitrail.solvers.checkpoint import checkpoint_path, run_digest
from vitrail.solvers.stages import remove_checkpoints
from vitrail.solvers.streaming import Streaming

Progress = Callable[[int, Tensor, Tensor], None]
NAN = float("nan")
GPU_MESSAGES = 5_000_000  # below, a few cores are done before a GPU has started
MESSAGE_BYTES = 10  # of an example and a weight: a message, its copy as it changes, the input


@dataclass(frozen=True)
class Trained:
    """The result for N nets, each from R starts. NaN is a net without examples."""

    solution: Any  # a Solution: its problems are the nets that had examples, start by start
    starts: Tensor  # (R, N, A) bool, the best network of each start
    unpolished_starts: Tensor  # (R, N, A) bool, the same before local search
    accuracy: Tensor  # (R, N) float64, on the training rows, of `starts`
    log_odds: Tensor  # (R, N, A) float64, the marginals of message passing
    stage: tuple[tuple[str, ...], ...]  # (R, N), which found each of `starts`; "" for none

    @property
    def best_start(self) -> Tensor:
        """The start that found the best network of each net, (N,) int64."""
        return self.accuracy.nan_to_num(-1.0).argmax(0)

    @property
    def best(self) -> Tensor:
        """The best network of each net, (N, A) bool."""
        return self.of_best(self.starts)

    @property
    def unpolished(self) -> Tensor:
        """What message passing alone found, (N, A) bool."""
        return self.of_best(self.unpolished_starts)

    @property
    def marginals(self) -> Tensor:
        """P(w = 1) at the end of the chosen start, (N, A) float32."""
        return torch.sigmoid(self.of_best(self.log_odds)).to(torch.float32)

    @property
    def status(self) -> tuple[Status, ...]:
        """How the runs ended, one per net that had examples: solved if any start was."""
        rows = self.solution.status
        nets = len(rows) // self.starts.shape[0]
        of_net = [rows[net::nets] for net in range(nets)]
        return tuple(Status.SOLVED if Status.SOLVED in row else row[0] for row in of_net)

    @property
    def found_by(self) -> tuple[str, ...]:
        """The stage that found the best network of each net; "" where none had examples."""
        return tuple(self.stage[start][net] for net, start in enumerate(self.best_start.tolist()))

    def faded(self, kept: float) -> Trained:
        """The same, as evidence that weighs less than it did."""
        return self if kept == 1 else replace(self, log_odds=self.log_odds * kept)

    def of_best(self, values: Tensor) -> Tensor:
        """Of values (R, N, …), those of the best start of each net, (N, …)."""
        return values[self.best_start, torch.arange(values.shape[1])]


def problem_of(program: Program, nets: Sequence[Examples]) -> Problem:
    """What a plan is made from."""
    sizes = [len(examples) for examples in nets]
    weight = sum(float(examples.weight.sum()) for examples in nets)
    return Problem(program, max(sizes), sum(sizes), weight / max(1, sum(sizes)))


def train(
    nets: Sequence[Examples],
    plan: Plan,
    *,
    seed: int,
    device: str = AUTO,
    earlier: Trained | None = None,
    progress: Progress | bool = False,
    checkpoint: str | Path | None = None,
) -> Trained:
    """Run a plan on every net at once and keep the best start of each; ranks share the examples.

    device: "auto" is a GPU where there is one and enough messages to fill it.
    earlier: what the nets were before: their marginals are the prior, and a net without examples
    stays as it was. Ctrl-C ends the run with the best so far, or raises without one.
    checkpoint: the name of files, to which a digest of the problem is appended: fits of other rows
    or settings have files of their own. They are removed when the run has ended without a stop.
    """
    program = plan.problem.program
    if device == AUTO:
        large = plan.problem.examples * program.num_bits >= GPU_MESSAGES
        device = "cuda" if large and torch.cuda.is_available() else "cpu"
    present = [number for number, examples in enumerate(nets) if len(examples)]
    _check_memory(plan)
    graph = graph_of(program, [nets[number] for number in present], plan.beta, plan.restarts)
    if earlier is not None:
        graph = graph.with_prior(earlier.log_odds[:, present].flatten())
    graph = graph.to(device).shared(ranks.current_world())
    stages = plan.stages if earlier is None else tuple(map(_from_earlier, plan.stages))
    if checkpoint is not None:
        solvers = (stage.solver for stage in stages)
        digest = run_digest(graph.world, *solvers, graph.everything, seed)
        checkpoint = checkpoint_path(checkpoint, digest)
    kept = _StageResults()

    def keep(stage: Stage, found: Solution[Any]) -> None:
        if stage.marginals or kept.log_odds is None:
            kept.log_odds = stage.solver.log_odds(graph, found.state).cpu()
            kept.best = found.best.cpu()
        kept.solution = found

    try:
        found = run_stages(
            stages,
            graph,
            seed=seed,
            progress=progress,
            checkpoint=checkpoint,
            on_stage=keep,
        )
        if found.steps == 0 and Status.INTERRUPTED in found.status:
            kept.solution = None  # where a run begins nothing is found yet
            raise KeyboardInterrupt
        by = found.found_by
    except KeyboardInterrupt:  # between two stages
        if kept.solution is None:
            raise
        found = replace(kept.solution, status=(Status.INTERRUPTED,) * graph.num_problems)
        by = ("",) * graph.num_problems
    assert kept.log_odds is not None
    assert kept.best is not None
    if checkpoint is not None and graph.world.first and Status.INTERRUPTED not in found.status:
        remove_checkpoints(checkpoint, stages)

    some, every = (plan.restarts, len(present)), (plan.restarts, len(nets))
    bits = torch.zeros(*every, program.num_bits, dtype=torch.bool)
    starts, unpolished, log_odds = bits.clone(), bits.clone(), bits.double()
    accuracy = torch.full(every, NAN, dtype=torch.float64)
    stage = [[""] * len(nets) for _ in range(plan.restarts)]
    if earlier is not None:
        starts, unpolished, log_odds = (
            part.clone() for part in (earlier.starts, earlier.unpolished_starts, earlier.log_odds)
        )
        accuracy = earlier.accuracy.clone()
        stage = [[*names] for names in earlier.stage]
    starts[:, present] = found.best.cpu().reshape(*some, -1)
    unpolished[:, present] = kept.best.reshape(*some, -1)
    log_odds[:, present] = kept.log_odds.reshape(*some, -1)
    accuracy[:, present] = found.best_accuracy.cpu().reshape(some)
    for place, name in enumerate(by):
        start, net = divmod(place, len(present))
        stage[start][present[net]] = name
    found_by = tuple(tuple(names) for names in stage)
    return Trained(found, starts, unpolished, accuracy, log_odds, found_by)


def _from_earlier(stage: Stage) -> Stage:
    """The stage started from earlier beliefs, where its solver can continue."""
    if not isinstance(stage.solver, Streaming):
        return stage
    return replace(stage, solver=stage.solver.from_earlier())


@dataclass
class _StageResults:
    """What stages have found so far."""

    solution: Solution[Any] | None = None
    log_odds: Tensor | None = None  # (V,), of message passing, before any local search
    best: Tensor | None = None  # (V,) bool, the best network before any local search


def messages_fit(problem: Problem, restarts: int = 1) -> bool:
    """Whether a message from every example to every weight fits into memory."""
    return _message_bytes(problem, restarts) <= available_memory()


def _message_bytes(problem: Problem, restarts: int) -> int:
    total = MESSAGE_BYTES * problem.examples * problem.program.num_bits * restarts
    return total // ranks.current_world().machines


def _check_memory(plan: Plan) -> None:
    """Raise, before anything is allocated, where the messages will not fit."""
    solvers = [stage.solver for stage in plan.stages]
    if not any(isinstance(s, MessagePassing) and not isinstance(s, Streaming) for s in solvers):
        return  # these keep one number per weight
    num_examples, weights = plan.problem.examples, plan.problem.program.num_bits
    needed, available = _message_bytes(plan.problem, plan.restarts), available_memory()
    if needed > available:
        raise TableTooLargeError(
            f"training {weights} weights on {num_examples:,} different rows needs "
            f"{in_gigabytes(needed)} of memory for messages, {in_gigabytes(available)} is "
            "available; use solver='streaming', fewer rows or hidden units, or more machines"
        )
