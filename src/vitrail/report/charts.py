"""Small charts as SVG that take the page's colours, so that they read in the light and the dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

WIDTH, HEIGHT = 320, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 40
MOST_STEPS = 5.5  # between the first tick and the last
ROUNDING = 1e-9
LONG_NAME = 5  # characters that would leave the picture at its edge
Point = tuple[float, float]


def line_chart(
    points: Sequence[Point],
    x_label: str,
    y_label: str,
    *,
    x_range: Point = (0.0, 1.0),
    y_range: Point = (0.0, 1.0),
    diagonal: bool = False,
    x_ticks: Sequence[tuple[float, str]] | None = None,
    band: Sequence[float] = (),
    title: str = "",
) -> str:
    """A line with dots, and beside it a band of half-width `band`, a number per point.

    `diagonal` draws where both axes are equal.
    """

    def x(value: float) -> float:
        low, high = x_range
        return LEFT + (value - low) / ((high - low) or 1) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        low, high = y_range
        return HEIGHT - BOTTOM - (value - low) / ((high - low) or 1) * (HEIGHT - TOP - BOTTOM)

    parts = []
    for value, name in round_ticks(*y_range):
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" '
            f'y2="{y(value):.1f}"/><text x="{LEFT - 6}" y="{y(value) + 4:.1f}" '
            f'text-anchor="end">{name}</text>'
        )
    parts += [
        f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 16}" '
        f'text-anchor="{_anchor(value, x_range, name)}">{escape(name)}</text>'
        for value, name in x_ticks or round_ticks(*x_range)
    ]
    if diagonal:
        ends = (max(x_range[0], y_range[0]), min(x_range[1], y_range[1]))
        parts.append(
            f'<line class="even" x1="{x(ends[0]):.1f}" y1="{y(ends[0]):.1f}" '
            f'x2="{x(ends[1]):.1f}" y2="{y(ends[1]):.1f}"/>'
        )
    if any(band):
        edge = [(a, b + half) for (a, b), half in zip(points, band, strict=True)]
        edge += [(a, b - half) for (a, b), half in zip(points, band, strict=True)][::-1]
        corners = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in edge)
        parts.append(f'<polygon class="band" points="{corners}"/>')
    path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
    parts.append(f'<polyline class="line" points="{path}"/>')
    parts += [f'<circle class="dot" cx="{x(a):.1f}" cy="{y(b):.1f}" r="3.5"/>' for a, b in points]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>'
        f'<text transform="translate(11,{(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(y_label)}</text>'
    )
    return _svg("".join(parts), WIDTH, HEIGHT, title or f"{y_label} by {x_label}")


def round_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Four to eight round numbers from low to high, and how they are written: 0.6, 0.7, …"""
    if not high > low:
        return [(low, f"{low:g}")]
    power = math.floor(math.log10(high - low))
    steps = (digit * 10.0**place for place in (power - 1, power) for digit in (1, 2, 5))
    step = next((one for one in steps if (high - low) / one <= MOST_STEPS), 10.0**power)
    digits = max(0, -math.floor(math.log10(step) + ROUNDING))
    first, last = math.ceil(low / step - ROUNDING), math.floor(high / step + ROUNDING)
    return [(n * step, f"{n * step:.{digits}f}".replace("-", "−")) for n in range(first, last + 1)]


def _anchor(value: float, ends: Point, name: str) -> str:
    """Long names at the ends of an axis stay inside the picture."""
    if len(name) < LONG_NAME or value not in ends:
        return "middle"
    return "start" if value == ends[0] else "end"


def panes(picture: np.ndarray, title: str) -> str:
    """An image of agreement, −1…1: blue for, red against, pale undecided."""
    height, width = picture.shape
    cells = "".join(
        f'<rect x="{column}" y="{row}" width="1" height="1" '
        f'class="{"for" if value > 0 else "against"}" opacity="{abs(value):.2f}"/>'
        for row, line in enumerate(picture)
        for column, value in enumerate(line)
        if abs(value) >= 0.005
    )
    frame = f'<rect class="frame" x="0" y="0" width="{width}" height="{height}"/>'
    return _svg(cells + frame, width, height, title)


def _svg(content: str, width: int, height: int, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{content}</svg>"
    )
