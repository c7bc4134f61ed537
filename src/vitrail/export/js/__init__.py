"""Models as one ES module of JavaScript, for browsers and node."""

from vitrail.export.js.module import js_module

__all__ = ["js_module"]
