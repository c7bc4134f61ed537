"""Other methods of training, for comparison; `BASELINES` lists them by name.

Every baseline is a solver for `run`, with the same data and budgets as vitrail's solvers.
"""

from collections.abc import Callable
from typing import Any

from vitrail.baselines.annealing import annealing
from vitrail.baselines.bayesbinn import bayesbinn
from vitrail.baselines.bop import bop
from vitrail.baselines.cpsat import cpsat
from vitrail.baselines.exhaustive import Optimum, exhaustive, optima
from vitrail.baselines.ste import straight_through
from vitrail.solvers.base import Solver

BASELINES: dict[str, Callable[..., Solver[Any]]] = {
    "straight_through": straight_through,
    "bop": bop,
    "bayesbinn": bayesbinn,
    "annealing": annealing,
    "cpsat": cpsat,
    "exhaustive": exhaustive,
}
"""Each baseline by name."""

__all__ = [
    "BASELINES",
    "Optimum",
    "annealing",
    "bayesbinn",
    "bop",
    "cpsat",
    "exhaustive",
    "optima",
    "straight_through",
]
