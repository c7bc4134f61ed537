"""Measured parts of documentation pages, each between two marks."""

from __future__ import annotations

from pathlib import Path


def write_between(path: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between the two marks of a page."""
    before, has_begin, rest = path.read_text(encoding="utf-8").partition(begin)
    _, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"{path} needs the marks {begin!r} and {end!r} around its measured part")
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
