"""Models as code for other places: C for devices, JavaScript, ONNX, plain numpy files."""

from vitrail.export.errors import ExportError
from vitrail.export.formats import FORMATS, export_model
from vitrail.export.layouts import LAYOUTS

__all__ = ["FORMATS", "LAYOUTS", "ExportError", "export_model"]
