"""Solvers: init/step pairs under one loop."""

from vitrail.solvers.annealed import Annealed, annealed, geometric
from vitrail.solvers.base import Feedback, Info, MessagePassing, Solver
from vitrail.solvers.bp import BeliefPropagation, BPState, belief_propagation
from vitrail.solvers.checkpoint import CheckpointError
from vitrail.solvers.copies import CopiesFound, run_copies
from vitrail.solvers.damping import Damping, adaptive, constant, scheduled
from vitrail.solvers.decimation import Decimated, decimated
from vitrail.solvers.history import History
from vitrail.solvers.polish import Polish, polish
from vitrail.solvers.portfolio import Passing, portfolio, usual_passing
from vitrail.solvers.reinforcement import Reinforced, exponential, linear, reinforced
from vitrail.solvers.run import Solution, run
from vitrail.solvers.s3p import S3P, s3p
from vitrail.solvers.s4p import S4P, s4p
from vitrail.solvers.schedules import Batches
from vitrail.solvers.snmp import snmp
from vitrail.solvers.sp_state import SPState
from vitrail.solvers.stages import Stage, StagedSolution, run_stages
from vitrail.solvers.status import Status
from vitrail.solvers.steady import Steady, steady
from vitrail.solvers.streaming import Streaming, StreamState, streaming

__all__ = [
    "S3P",
    "S4P",
    "Annealed",
    "BPState",
    "Batches",
    "BeliefPropagation",
    "CheckpointError",
    "CopiesFound",
    "Damping",
    "Decimated",
    "Feedback",
    "History",
    "Info",
    "MessagePassing",
    "Passing",
    "Polish",
    "Reinforced",
    "SPState",
    "Solution",
    "Solver",
    "Stage",
    "StagedSolution",
    "Status",
    "Steady",
    "StreamState",
    "Streaming",
    "adaptive",
    "annealed",
    "belief_propagation",
    "constant",
    "decimated",
    "exponential",
    "geometric",
    "linear",
    "polish",
    "portfolio",
    "reinforced",
    "run",
    "run_copies",
    "run_stages",
    "s3p",
    "s4p",
    "scheduled",
    "snmp",
    "steady",
    "streaming",
    "usual_passing",
]
