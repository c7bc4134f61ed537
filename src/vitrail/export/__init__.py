"""Models as code for other places: C for devices, JavaScript, ONNX, plain numpy files."""

from vitrail.export.devices import LAYOUTS
from vitrail.export.flash import Flash, flash_bytes
from vitrail.export.formats import FORMATS, export_model
from vitrail.export.plan import ExportError

__all__ = ["FORMATS", "LAYOUTS", "ExportError", "Flash", "export_model", "flash_bytes"]
