"""One page about a model: accuracy, calibration, important columns, size."""

from vitrail.report.page import write_report

__all__ = ["write_report"]
