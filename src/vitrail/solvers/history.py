"""The history of a run, step by step, and its status."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from itertools import groupby

import torch
from torch import Tensor


@dataclass
class History:
    """One growing column per quantity: `history["accuracy"]` is a tensor (steps, P) on the CPU.

    - accuracy and best: share of satisfied weight of the decoded and of the best configuration;
    - best_energy: energy of the best configuration, where factors have energies;
    - residual: largest change of a message, as a probability;
    - entropy: mean over the marginals, bits;
    - evaluations: factor evaluations so far, (steps,), by messages and searches, not by scoring.

    Solvers may add columns. Rows stay on their device until a column is read.
    """

    columns: dict[str, list[Tensor]] = field(default_factory=dict)  # rows of each quantity

    def add(self, **values: Tensor | float) -> None:
        for name, value in values.items():
            row = torch.as_tensor(value, dtype=None if isinstance(value, Tensor) else torch.float64)
            self.columns.setdefault(name, []).append(row.detach())

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.columns:
            known = ", ".join(sorted(self.columns)) or "none: the run had no steps"
            raise KeyError(f"no column {name!r} in the history; columns are: {known}")
        rows = groupby(self.columns[name], key=lambda row: row.device)
        return torch.cat([torch.stack(list(alike)).cpu() for _, alike in rows])

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return max((len(column) for column in self.columns.values()), default=0)


class Status(IntEnum):
    """How a run ended, for one problem. `str(status)` is its name in small letters.

    Attributes:
        RUNNING: The run continues.
        SOLVED: Every factor is satisfied.
        CONVERGED: Messages have converged; another seed or more damping may change the result.
        MAX_STEPS: Messages still change after the last step; raise max_steps or the damping.
        CONTRADICTION: No configuration satisfies every hard factor; use a finite beta.
        NON_FINITE: A message became NaN or infinite; check the factor function.
        BUDGET: The run reached its limit of evaluations or seconds; raise it to continue.
        INTERRUPTED: The user stopped the run; the best configuration so far is kept.
        DIVERGED: Beliefs grew worse at every rate tried, and the last good ones are kept; lower the
            rate or beta, or take another solver.

    Examples:
        >>> str(Status.BUDGET)
        'budget'
    """

    RUNNING = 0
    SOLVED = 1
    CONVERGED = 2
    MAX_STEPS = 3
    CONTRADICTION = 4
    NON_FINITE = 5
    BUDGET = 6
    INTERRUPTED = 7
    DIVERGED = 8

    def __str__(self) -> str:
        return self.name.lower()
