"""The page about a model: its charts, tables and words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from vitrail import __version__, pages
from vitrail.export import ExportError
from vitrail.export.devices import TARGETS, costs, work_of
from vitrail.export.formats import golden_rows
from vitrail.model import Explanation, Model
from vitrail.report.measures import Measures, measure

MOST_BITS = 2**21  # of networks that are compiled for devices; more would take minutes
ENTRY = "predict"  # the function whose bytes are shown: rows in, an answer out
MOST_CLASSES = 30  # of a confusion matrix that fits a page
MOST_CONFUSED = 20  # pairs of classes that are listed instead
MOST_EXPLAINED = 200  # rows on a page of reasons
SHOWN_REASONS = 6  # per row
FEW_VALUES = 4  # of a column that are all named on its curve
MONOTONE = {0: "", 1: "; monotone, rising", -1: "; monotone, falling"}  # by direction
LONGEST_NAME = 14  # characters of a value under a curve
WIDTH, HEIGHT = 320, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 40
MOST_STEPS = 5.5  # between the first tick and the last
ROUNDING = 1e-9
LONG_NAME = 5  # characters that would leave the picture at its edge
Point = tuple[float, float]


def write_report(
    model: Model, table: Any, labels: np.ndarray, path: str | Path, rows_are: str
) -> Path:
    """Measure a model on rows with labels, and write the page.

    Args:
        model: Any model.
        table: The rows, with the columns that the model was trained with.
        labels: Labels (rows,).
        path: The file of the page.
        rows_are: A few words that say which rows they are, after "Measured on 100 rows".

    Returns:
        The file.

    Examples:
        >>> from vitrail import load_model, read_table
        >>> table = read_table("test.csv")  # doctest: +SKIP
        >>> model = load_model("net.safetensors")  # doctest: +SKIP
        >>> write_report(model, table, table["kind"], "r.html", "held out")  # doctest: +SKIP
    """
    found = measure(model, table, labels)
    record = model.record
    target, data = record.get("target"), record.get("data")
    settings = record.get("settings") or {}
    trained = f"Trained on {record['rows']:,} rows. " if "rows" in record else ""
    size = f"{-(-model.networks.numel() // 8):,}"
    device, sizes = _device(model, table)
    return pages.write_page(
        Path(path),
        "model.html",
        title=f"{target} from {data}" if target and data else "A model of one-bit weights",
        lead=f"{trained}Measured on {found.rows:,} rows {rows_are}.",
        found=found,
        facts={
            "accuracy": f"{found.accuracy:.1%} ± {found.error:.1%}",
            "accuracy of the most frequent class": _percent(found.base_accuracy),
            "AUC": "–" if math.isnan(found.auc) else f"{found.auc:.3f}",
            f"log-loss; base rate {found.base_log_loss:.3f}": f"{found.log_loss:.3f}",
            "calibration error": f"{found.calibration_error:.1%}",
            "networks that vote": f"{len(model.networks):,}",
            "bytes of weights": size,
        },
        reliability=_reliability(found),
        coverage=_coverage(found),
        half=_percent(next(accuracy for share, accuracy in found.coverage if share >= 0.5)),
        confused=_most_confused(found) if len(found.classes) > MOST_CLASSES else None,
        pictures={
            name: panes(picture, f"pixels for and against {name}")
            for name, picture in zip(found.classes, found.picture, strict=True)
        }
        if found.picture is not None
        else None,
        curves=None if found.explanation is None else curve_charts(found.explanation, model),
        hardest=[
            (
                row.place,
                row.label,
                row.answer,
                _percent(row.probability),
                f"{row.against:.0%}",
                row.reasons,
                *row.cells,
            )
            for row in found.hardest
        ],
        device=f"{size} bytes of weights in {len(model.networks):,} networks. {device}",
        costs=sizes,
        foot=f"Made by vitrail {__version__}. "
        + ", ".join(f"{name} {value}" for name, value in settings.items()),
    )


def write_explanation(found: Explanation, model: Model, table: Any, path: Path, data: str) -> Path:
    """Write the page of `vitrail explain`: reasons for each row, shape curves, interactions."""
    most = float(np.abs(found.reasons).max()) or 1.0
    rows = [
        {
            "place": table.place(row),
            "label": str(found.classes[row]),
            "log_odds": _signed(found.log_odds[row]),
            "base": _signed(found.base[row]),
            "bars": [
                (name, _signed(value), error, value > 0, 100 * abs(value) / most)
                for name, value, error in found.top(row, SHOWN_REASONS)
            ],
        }
        for row in range(min(len(found.reasons), MOST_EXPLAINED))
    ]
    how = (
        "exact, as the score is linear"
        if found.exact
        else "sampled Shapley values ± one standard error"
    )
    return pages.write_page(
        path,
        "explain.html",
        title=f"Reasons for the rows of {data}",
        lead=f"{len(found.reasons):,} rows; {len(rows):,} are shown. Reasons are {how}.",
        rows=rows,
        found=found,
        exact=found.exact,
        curves=curve_charts(found, model),
    )


def curve_charts(found: Explanation, model: Model) -> list[tuple[str, str]]:
    """A chart and its caption for each shape curve, of the class that varies most along it."""
    charts = []
    for curve in found.curves:
        number = int(np.ptp(curve.log_odds, axis=0).argmax())
        values, spread = curve.log_odds[:, number].tolist(), curve.spread[:, number].tolist()
        last = len(values) - 1
        low = min(a - b for a, b in zip(values, spread, strict=True))
        high = max(a + b for a, b in zip(values, spread, strict=True))
        margin = 0.05 * (high - low) or 1.0
        few = range(last + 1) if last < FEW_VALUES else (0, last // 2, last)
        chart = line_chart(
            list(enumerate(values)),
            curve.column,
            "log-odds",
            x_range=(0, last),
            y_range=(low - margin, high + margin),
            x_ticks=[(place, _shortened(curve.values[place])) for place in few],
            band=spread,
        )
        label = model.labels.classes[1 if model.num_classes == 2 else number]
        order = MONOTONE[model.directions.get(curve.column, 0)]
        charts.append((chart, f"{curve.column}: log-odds of {label}{order}"))
    return charts


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _reliability(found: Measures) -> str:
    points = [(confidence, right) for confidence, right, _ in found.reliability]
    return line_chart(points, "confidence", "accuracy", diagonal=True)


def _coverage(found: Measures) -> str:
    low = min(accuracy for _, accuracy in found.coverage)
    floor = math.floor(low * 10) / 10 if low < 1 else 0.9
    return line_chart(
        found.coverage, "coverage: share of rows answered", "accuracy", y_range=(floor, 1.0)
    )


def _most_confused(found: Measures) -> list[tuple[int, str, str]]:
    wrong = [
        (int(count), found.classes[label], found.classes[answer])
        for (label, answer), count in np.ndenumerate(found.confusion)
        if label != answer and count
    ]
    return sorted(wrong, reverse=True)[:MOST_CONFUSED]


def _device(model: Model, table: Any) -> tuple[str, list[tuple[str, ...]]]:
    """Why nothing was measured, or a line for each device that has its compiler here."""
    if model.networks.numel() > MOST_BITS:
        return "That is more than small devices hold; --predictor best gives one network.", []
    if not any(target.installed for target in TARGETS):
        return "No compiler is installed here, so nothing was measured.", []
    try:
        found = costs(model, "tiny", golden_rows(model, table), (ENTRY,))
    except ExportError as error:
        return f"It cannot be exported to C: {error}.", []
    too_large = [f"It does not fit on {one.target.title}." for one in found if not one.sizes]
    return " ".join(too_large), [
        (one.target.title, *(f"{n:,}" for n in (b.flash, b.data, b.stack)), work_of(one))
        for one in found
        for b in one.sizes.values()
    ]


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
