"""HTML pages that need nothing but themselves: no other file, no network.

`base.html` has the style, which reads on a phone and on a desk, in the light and in the dark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vitrail.output import atomic_output


def render(template: str, **values: Any) -> str:
    """The page of a template beside this file; values are escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    engine = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return engine.get_template(template).render(values)


def write_page(path: Path, template: str, **values: Any) -> Path:
    """Write the page; a reader never sees half of it."""
    with atomic_output(path) as stream:
        stream.write(render(template, **values).encode())
    return path
