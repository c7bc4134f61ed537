"""Every command; importing a module here is what registers it."""

from vitrail.cli import capacity, compare, demo, fit, inspect, predict, reproduce

__all__ = ["capacity", "compare", "demo", "fit", "inspect", "predict", "reproduce"]
