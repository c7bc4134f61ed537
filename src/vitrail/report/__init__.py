"""One page about a model: how good, how sure, by which columns, how large."""

from vitrail.report.measures import Measures, measure
from vitrail.report.page import write_page

__all__ = ["Measures", "measure", "write_page"]
