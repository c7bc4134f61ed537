"""What users would pick instead: every baseline is a solver, run by the same `run`."""

from vitrail.baselines.ste import StraightThrough, straight_through

__all__ = ["StraightThrough", "straight_through"]
