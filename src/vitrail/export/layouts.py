"""A C header as the libraries that people's build tools take."""

from __future__ import annotations

import re
from pathlib import Path

from vitrail import __version__
from vitrail.export.c.text import with_prefix
from vitrail.export.plan import ExportError

CORTEX = ("main.c", "startup.c", "say.h", "link.ld", "Makefile")
AVR = ("avr.c", "say.h")
LAYOUTS: dict[str, dict[str, str]] = {
    "header": {"tiny.h": "header"},
    "arduino": {
        "tiny/library.properties": "libraries/library.properties",
        "tiny/src/tiny.h": "header",
        "tiny/examples/Check/Check.ino": "libraries/Check.ino",
    },
    "platformio": {
        "tiny/library.json": "libraries/library.json",
        "tiny/src/tiny.h": "header",
        "tiny/examples/check/main.c": "libraries/check.c",
    },
    "zephyr": {
        "tiny/zephyr/module.yml": "libraries/module.yml",
        "tiny/CMakeLists.txt": "libraries/module.cmake",
        "tiny/include/tiny.h": "header",
        "tiny/samples/check/CMakeLists.txt": "libraries/sample.cmake",
        "tiny/samples/check/prj.conf": "libraries/prj.conf",
        "tiny/samples/check/src/main.c": "libraries/check.c",
    },
    "firmware": {
        "tiny/tiny.h": "header",
        **{f"tiny/{part}": f"firmware/{part}" for part in CORTEX},
    },
}
"""The files of each layout of C by name: where they go for the name `tiny`, what they are."""


def layout_files(header: str, name: str, layout: str) -> dict[str, str]:
    """The files of a layout by path; ExportError if there is none of that name."""
    if layout not in LAYOUTS:
        raise ExportError(f"unknown layout {layout!r}; choose one of: {', '.join(LAYOUTS)}")
    return {
        program(path, name): header if source == "header" else program(text_of(source), name)
        for path, source in LAYOUTS[layout].items()
    }


def text_of(source: str) -> str:
    """A file beside this one."""
    text = (Path(__file__).parent / source).read_text(encoding="utf-8")
    return text.replace("@version@", __version__)


def program(text: str, name: str) -> str:
    """A text about `tiny`.h for the header `name`.h."""
    return re.sub(r"\btiny\b", name, with_prefix(text, name))
