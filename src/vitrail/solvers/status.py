"""How a run ended, for each problem, and what can be done about it."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """How a run ended, for one problem. `str(status)` is its name in small letters.

    Attributes:
        RUNNING: The run goes on.
        SOLVED: Every factor is satisfied.
        CONVERGED: Messages have settled.
        MAX_STEPS: Messages still move after the last step.
        CONTRADICTION: No configuration satisfies every hard factor.
        NON_FINITE: A message became NaN or infinite.
        BUDGET: The limit of evaluations or seconds cut the run.
        INTERRUPTED: Stopped by hand.

    Examples:
        >>> Status.BUDGET.remedy
        'the limit of evaluations or seconds cut the run; raise it to go on'
    """

    RUNNING = 0
    SOLVED = 1
    CONVERGED = 2
    MAX_STEPS = 3
    CONTRADICTION = 4
    NON_FINITE = 5
    BUDGET = 6
    INTERRUPTED = 7

    def __str__(self) -> str:
        return self.name.lower()

    @property
    def remedy(self) -> str:
        """What happened, and what to try next."""
        return _REMEDIES[self]


_REMEDIES = {
    Status.RUNNING: "the run goes on",
    Status.SOLVED: "every factor is satisfied",
    Status.CONVERGED: "messages have settled; another seed or a higher damping may lead elsewhere",
    Status.MAX_STEPS: "messages still move; raise max_steps or the damping",
    Status.CONTRADICTION: "no configuration satisfies every hard factor; use a finite beta",
    Status.NON_FINITE: "a message became NaN or infinite; check the factor function",
    Status.BUDGET: "the limit of evaluations or seconds cut the run; raise it to go on",
    Status.INTERRUPTED: "stopped by hand; the best configuration so far is kept",
}
