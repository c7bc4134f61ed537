"""What the rules look at, and the settings that they fill in."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vitrail.nn import Program
from vitrail.solvers.portfolio import LEAST_HITS, Passing, Shape, usual_passing
from vitrail.updates import UPDATES, Update, counting

AUTO = "auto"
EPOCHS = 5  # at least: marginals are also what the posterior and later rows start from
BETA = 5.0  # of an example of mean weight
POLISH_ROUNDS = 20  # of local search, where a flip is cheap
POLISH_FLIPS = 20_000  # proposals a round


@dataclass(frozen=True)
class Problem:
    """Nets of one program, each with its examples, that are trained side by side."""

    program: Program
    factors: int  # distinct examples of the largest net
    examples: int  # of all nets together
    weight: float = 1.0  # mean weight of an example: how many rows it stands for

    def beta(self, of_example: float = BETA) -> float:
        """Inverse temperature of a row under which an example has this one on average.

        Many rows on few distinct examples would otherwise make every example as good as hard, the
        rare wrong labels as much as the frequent right ones.
        """
        return of_example / self.weight

    @property
    def linear(self) -> bool:
        return self.program.perceptron_low is not None

    @property
    def cheap_flips(self) -> bool:
        """Whether the effect of one weight is known without evaluating the net anew."""
        return self.program.shallow is not None

    def shape(self, beta: float, restarts: int) -> Shape:
        """The same as the portfolio sees it."""
        bits = self.program.num_bits
        return Shape(
            factors=self.factors,
            variables=bits,
            edges=self.examples * bits * restarts,
            arity=bits,
            weight=self.factors * self.weight,
            linear=self.linear,
            cheap_flips=self.cheap_flips,
            hard=math.isinf(beta),
        )


@dataclass(frozen=True)
class Settings:
    """All that can be set of a training run, as plain values."""

    solver: str
    update: str
    samples: int  # draws of the update, where it draws
    beta: float
    damping: float  # share of the old message that is kept
    batch: int | None
    epochs: int
    restarts: int
    polish: int  # rounds of local search after the solver

    def made_update(self) -> Update:
        """The update that the settings name."""
        if self.update in ("exact", "closed_form"):
            return UPDATES[self.update]()
        if self.update == "counting":
            return counting(self.samples, least_hits=LEAST_HITS)
        return UPDATES[self.update](self.samples)

    def passing(self) -> Passing:
        """How messages pass."""
        return Passing(self.made_update(), self.damping, self.batch, self.epochs)


def usual(problem: Problem) -> Settings:
    """Stochastic belief propagation in batches of factors: what other rules begin with."""
    passing = usual_passing(problem.factors, problem.cheap_flips)
    return Settings(
        solver="sbp",
        update="flip" if problem.cheap_flips else "counting",
        samples=5 if problem.cheap_flips else 64,
        beta=problem.beta(),
        damping=passing.damping,
        batch=passing.batch,
        epochs=max(passing.epochs, EPOCHS),
        restarts=1,
        polish=0,
    )
