"""Every command; importing a module here is what registers it."""

from vitrail.cli import compare, demo, fit, inspect, predict

__all__ = ["compare", "demo", "fit", "inspect", "predict"]
