"""Models as C."""

from vitrail.export.c.header import c_header

__all__ = ["c_header"]
