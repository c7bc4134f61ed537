"""Models as code for other places: C for devices, JavaScript, ONNX, plain numpy files."""

from vitrail.export.formats import FORMATS, export_model
from vitrail.export.layouts import LAYOUTS
from vitrail.export.plan import ExportError

__all__ = ["FORMATS", "LAYOUTS", "ExportError", "export_model"]
