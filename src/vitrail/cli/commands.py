"""Every command; importing a module here is what registers it."""

from vitrail.cli import (
    bench,
    capacity,
    compare,
    compress,
    demo,
    export,
    fit,
    inspect,
    predict,
    report,
    reproduce,
)

__all__ = [
    "bench",
    "capacity",
    "compare",
    "compress",
    "demo",
    "export",
    "fit",
    "inspect",
    "predict",
    "report",
    "reproduce",
]
