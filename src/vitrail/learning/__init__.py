"""Learners by name, the rules that choose one, the posterior they return, and its compression."""

from vitrail.learning.compression import compress
from vitrail.learning.online import OnlineLearner
from vitrail.learning.streams import fit_stream
from vitrail.learning.table import SOLVERS

__all__ = ["SOLVERS", "OnlineLearner", "compress", "fit_stream"]
