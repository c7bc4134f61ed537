"""A C header as the libraries that people's build tools take."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from vitrail import __version__
from vitrail.export.c.text import renamed
from vitrail.export.plan import ExportError

Files = dict[str, str]  # contents by path
SENTENCE = "A classifier made by vitrail: predictions from one-bit weights, without heap or libm"


def laid_out(header: str, name: str, layout: str) -> Files:
    """The files of a layout; ExportError if there is none of that name."""
    if layout not in LAYOUTS:
        raise ExportError(f"unknown layout {layout!r}; choose one of: {', '.join(LAYOUTS)}")
    return LAYOUTS[layout](header, name)


def _header(header: str, name: str) -> Files:
    return {f"{name}.h": header}


def _arduino(header: str, name: str) -> Files:
    properties = {
        "name": name,
        "version": __version__,
        "author": "vitrail",
        "maintainer": "vitrail",
        "sentence": SENTENCE,
        "paragraph": "See the header for the columns of a row and the names of the classes.",
        "category": "Data Processing",
        "url": "",
        "architectures": "*",
        "includes": f"{name}.h",
    }
    sketch = f"""\
// Checks the rows with known answers and says on the serial line whether they agree.
#define {name.upper()}_CHECK
#include <{name}.h>

void setup() {{
  Serial.begin(9600);
  Serial.print({name}_check());
  Serial.println(" known answers differ");
}}

void loop() {{}}
"""
    return {
        f"{name}/library.properties": "".join(f"{k}={v}\n" for k, v in properties.items()),
        f"{name}/src/{name}.h": header,
        f"{name}/examples/Check/Check.ino": sketch,
    }


def _platformio(header: str, name: str) -> Files:
    library = {
        "name": name,
        "version": __version__,
        "description": SENTENCE,
        "headers": f"{name}.h",
        "frameworks": "*",
        "platforms": "*",
    }
    return {
        f"{name}/library.json": json.dumps(library, indent=2) + "\n",
        f"{name}/src/{name}.h": header,
        f"{name}/examples/check/main.c": check_program(name),
    }


def _zephyr(header: str, name: str) -> Files:
    return {
        f"{name}/zephyr/module.yml": f"name: {name}\nbuild:\n  cmake: .\n",
        f"{name}/CMakeLists.txt": "zephyr_include_directories(include)\n",
        f"{name}/include/{name}.h": header,
        f"{name}/samples/check/CMakeLists.txt": f"""\
cmake_minimum_required(VERSION 3.20.0)
list(APPEND ZEPHYR_EXTRA_MODULES ${{CMAKE_CURRENT_SOURCE_DIR}}/../..)
find_package(Zephyr REQUIRED HINTS $ENV{{ZEPHYR_BASE}})
project({name}_check)
target_sources(app PRIVATE src/main.c)
""",
        f"{name}/samples/check/prj.conf": "",
        f"{name}/samples/check/src/main.c": check_program(name),
    }


def _firmware(header: str, name: str) -> Files:
    return {f"{name}/{name}.h": header, **firmware_files(name, name)}


CORTEX = ("main.c", "startup.c", "say.h", "link.ld", "Makefile")
AVR = ("avr.c", "say.h")


def firmware_files(name: str, folder: str, parts: Sequence[str] = CORTEX) -> Files:
    """A whole program that checks the header beside it."""
    own = Path(__file__).with_name("firmware")
    texts = {part: (own / part).read_text(encoding="utf-8") for part in parts}
    return {str(Path(folder) / part): program(text, name) for part, text in texts.items()}


def program(text: str, name: str) -> str:
    """A program of the folder `firmware` for the header `name`.h."""
    return re.sub(r"\btiny\b", name, renamed(text, name))


def check_program(name: str) -> str:
    """A program that prints how many known answers agree; its exit code is 0 if all do."""
    upper = name.upper()
    return f"""\
#define {upper}_CHECK
#include "{name}.h"

#include <stdio.h>

int main(void)
{{
    const unsigned wrong = {name}_check();
    printf("%u of %u known answers agree\\n", {upper}_GOLDEN - wrong, {upper}_GOLDEN);
    return wrong != 0;
}}
"""


LAYOUTS: dict[str, Callable[[str, str], Files]] = {
    "header": _header,
    "arduino": _arduino,
    "platformio": _platformio,
    "zephyr": _zephyr,
    "firmware": _firmware,
}
"""Each layout of C files by name, as a function that gives the files."""
