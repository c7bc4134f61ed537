"""vitrail learns a posterior over networks whose weights are bits.

`BinaryNetClassifier().fit(X, y)` encodes rows to bits, settles an inverse temperature on held-out
rows, draws many networks by Metropolis chains and calibrates their vote. Message passing on factor
graphs is solver="messages" there, and `factor_graph` and `run` here.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# Threads of torch that wait burn their core for milliseconds, and several processes side by side
# then take each other's. A short wait is all that pays; this acts where torch is not loaded yet.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

# Names load on first use, so that `vitrail --version` and a short script start fast.
_HOME = {
    "BinaryNetClassifier": "vitrail.estimator",
    "FactorGraph": "vitrail.graph",
    "Solution": "vitrail.solvers",
    "Status": "vitrail.solvers",
    "belief_propagation": "vitrail.solvers",
    "blackbox": "vitrail.factors",
    "compress": "vitrail.learning",
    "factor_graph": "vitrail.graph",
    "fit_stream": "vitrail.learning",
    "iter_table": "vitrail.tables",
    "join": "vitrail.graph",
    "load_model": "vitrail.model",
    "network": "vitrail.factors",
    "perceptron": "vitrail.factors",
    "read_table": "vitrail.tables",
    "run": "vitrail.solvers",
    "table": "vitrail.factors",
}

if TYPE_CHECKING:
    from vitrail.estimator import BinaryNetClassifier
    from vitrail.factors import blackbox, network, perceptron, table
    from vitrail.graph import FactorGraph, factor_graph, join
    from vitrail.learning import compress, fit_stream
    from vitrail.model import load_model
    from vitrail.solvers import Solution, Status, belief_propagation, run
    from vitrail.tables import iter_table, read_table

__all__ = [
    "BinaryNetClassifier",
    "FactorGraph",
    "Solution",
    "Status",
    "__version__",
    "belief_propagation",
    "blackbox",
    "compress",
    "factor_graph",
    "fit_stream",
    "iter_table",
    "join",
    "load_model",
    "network",
    "perceptron",
    "read_table",
    "run",
    "table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'vitrail' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
