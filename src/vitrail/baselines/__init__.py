"""What users would pick instead. `BASELINES` is the table that names them.

Every baseline is a solver, run by the same `run` as ours: same data, same budget, best and last.
"""

from collections.abc import Callable
from typing import Any

from vitrail.baselines.bayesbinn import BayesBiNN, bayesbinn
from vitrail.baselines.bop import Bop, bop
from vitrail.baselines.ste import StraightThrough, straight_through
from vitrail.solvers.base import Solver

BASELINES: dict[str, Callable[..., Solver[Any]]] = {
    "straight_through": straight_through,
    "bop": bop,
    "bayesbinn": bayesbinn,
}

__all__ = [
    "BASELINES",
    "BayesBiNN",
    "Bop",
    "StraightThrough",
    "bayesbinn",
    "bop",
    "straight_through",
]
