"""Measurements: our updates against the paper's formulation and this machine's ceilings."""

from vitrail.lab.bench.report import run_bench

__all__ = ["run_bench"]
