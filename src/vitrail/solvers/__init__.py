"""Solvers: init/step pairs under one loop."""

from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.bp import BeliefPropagation, BPState, belief_propagation
from vitrail.solvers.checkpoint import CheckpointError
from vitrail.solvers.damping import Damping, adaptive, constant, scheduled
from vitrail.solvers.history import History
from vitrail.solvers.run import Solution, run
from vitrail.solvers.schedules import Batches
from vitrail.solvers.status import Status

__all__ = [
    "BPState",
    "Batches",
    "BeliefPropagation",
    "CheckpointError",
    "Damping",
    "Feedback",
    "History",
    "Info",
    "Solution",
    "Solver",
    "Status",
    "adaptive",
    "belief_propagation",
    "constant",
    "run",
    "scheduled",
]
