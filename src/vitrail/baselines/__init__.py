"""Other methods of training, for comparison.

Straight-through and annealing are solvers for `run`, with the same data and budgets as vitrail's
solvers; `optima` enumerates all configurations.
"""

from vitrail.baselines.annealing import annealing
from vitrail.baselines.exhaustive import Optimum, optima
from vitrail.baselines.ste import straight_through

__all__ = ["Optimum", "annealing", "optima", "straight_through"]
