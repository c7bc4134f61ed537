"""Learners by name, the rules that choose one, the posterior they return, and its compression."""

from vitrail.learning.compression import compress
from vitrail.learning.plan import Plan, plan
from vitrail.learning.problem import Problem, Settings
from vitrail.learning.table import SOLVERS, canonical

__all__ = ["SOLVERS", "Plan", "Problem", "Settings", "canonical", "compress", "plan"]
