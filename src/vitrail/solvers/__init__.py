"""Solvers: init/step pairs under one loop."""

from vitrail.solvers.amp import approximate_message_passing
from vitrail.solvers.annealed import annealed, geometric
from vitrail.solvers.base import Feedback, Info, MessagePassing, Solver
from vitrail.solvers.bethe import BetheEstimate, bethe
from vitrail.solvers.bp import belief_propagation
from vitrail.solvers.checkpoint import CheckpointError
from vitrail.solvers.damping import Damping, adaptive
from vitrail.solvers.decimation import decimated
from vitrail.solvers.elimination import (
    ExactAnswer,
    WidthError,
    eliminate,
    elimination,
    log_partition,
)
from vitrail.solvers.history import History, Status
from vitrail.solvers.inference import Inference, infer
from vitrail.solvers.polish import polish
from vitrail.solvers.portfolio import MessageOptions, portfolio
from vitrail.solvers.reinforcement import linear, reinforced
from vitrail.solvers.run import Solution, run
from vitrail.solvers.s4p import s3p, s4p, snmp
from vitrail.solvers.sat import Assignment, solve_formula
from vitrail.solvers.schedules import Batches
from vitrail.solvers.stages import Stage, StagedSolution, run_stages
from vitrail.solvers.steady import steady
from vitrail.solvers.streaming import falling, streaming, usual_rate

__all__ = [
    "Assignment",
    "Batches",
    "BetheEstimate",
    "CheckpointError",
    "Damping",
    "ExactAnswer",
    "Feedback",
    "History",
    "Inference",
    "Info",
    "MessageOptions",
    "MessagePassing",
    "Solution",
    "Solver",
    "Stage",
    "StagedSolution",
    "Status",
    "WidthError",
    "adaptive",
    "annealed",
    "approximate_message_passing",
    "belief_propagation",
    "bethe",
    "decimated",
    "eliminate",
    "elimination",
    "falling",
    "geometric",
    "infer",
    "linear",
    "log_partition",
    "polish",
    "portfolio",
    "reinforced",
    "run",
    "run_stages",
    "s3p",
    "s4p",
    "snmp",
    "solve_formula",
    "steady",
    "streaming",
    "usual_rate",
]
