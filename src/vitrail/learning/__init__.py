"""The room that decides: names, plans, the choice of a net, training, the posterior, its size."""

from vitrail.learning.compression import compress
from vitrail.learning.plan import Plan, plan
from vitrail.learning.problem import Problem, Settings
from vitrail.learning.table import SOLVERS, canonical

__all__ = ["SOLVERS", "Plan", "Problem", "Settings", "canonical", "compress", "plan"]
