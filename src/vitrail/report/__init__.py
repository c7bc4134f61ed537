"""One page about a model: accuracy, calibration, important columns, size."""

from vitrail.report.measures import Measures, measure
from vitrail.report.page import write_page

__all__ = ["Measures", "measure", "write_page"]
