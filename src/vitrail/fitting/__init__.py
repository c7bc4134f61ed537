"""The room that decides: names, plans, the choice of a net, training, the posterior, its size."""

from vitrail.fitting.compression import compress
from vitrail.fitting.names import SOLVERS, canonical
from vitrail.fitting.plan import Plan, plan
from vitrail.fitting.problem import Problem, Settings

__all__ = ["SOLVERS", "Plan", "Problem", "Settings", "canonical", "compress", "plan"]
