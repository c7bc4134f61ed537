"""All commands, in the order of the help; importing a module registers its commands."""

from vitrail.cli import fit, stream, compare, demo  # isort: skip
from vitrail.cli import predict, explain, inspect, report  # isort: skip
from vitrail.cli import compress, export, research, infer  # isort: skip

__all__ = [
    "compare", "compress", "demo", "explain", "export", "fit", "infer", "inspect", "predict",
    "report", "research", "stream",
]  # fmt: skip
