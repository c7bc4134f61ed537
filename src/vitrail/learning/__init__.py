"""Learners and their options, the choice of a net, training, the posterior, compression."""

from vitrail.learning.compression import compress
from vitrail.learning.streams import fit_stream
from vitrail.learning.table import SOLVERS

__all__ = ["SOLVERS", "compress", "fit_stream"]
