"""The page about a model: its charts, tables and words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrail import __version__, pages
from vitrail.export.c import c_header
from vitrail.export.devices import TARGETS, Cost, cost
from vitrail.export.formats import golden_rows
from vitrail.export.plan import ExportError
from vitrail.export.report import work_of
from vitrail.model import Model
from vitrail.report.charts import line_chart, panes
from vitrail.report.measures import Measures, ShownRow, measure

MOST_BITS = 2**21  # of networks that are compiled for devices; more would take minutes
ENTRY = "predict"  # the function whose bytes are shown: rows in, an answer out
MOST_CLASSES = 30  # of a confusion matrix that fits a page
MOST_CONFUSED = 20  # pairs of classes that are listed instead


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
    device, costs = _device(model, table)
    return pages.write_page(
        Path(path),
        "model.html",
        title=f"{target} from {data}" if target and data else "A model of one-bit weights",
        lead=f"{trained}Measured on {found.rows:,} rows {rows_are}.",
        found=found,
        facts={
            "accuracy": f"{found.accuracy:.1%} ± {found.error:.1%}",
            "calibration error": f"{found.calibration_error:.1%}",
            "networks that vote": f"{len(model.networks):,}",
            "bytes of weights": size,
        },
        reliability=_reliability(found),
        coverage=_coverage(found),
        half=_percent(next(accuracy for share, accuracy in found.coverage if share >= 0.5)),
        sizes=_sizes(found) if found.sizes[-1].networks > 1 else None,
        percent=_percent,
        confused=_most_confused(found) if len(found.classes) > MOST_CLASSES else None,
        pictures={
            name: panes(picture, f"pixels for and against {name}")
            for name, picture in zip(found.classes, found.picture, strict=True)
        }
        if found.picture is not None
        else None,
        hardest=_rows(found.hardest),
        disputed=_rows(found.disputed),
        device=f"{size} bytes of weights in {len(model.networks):,} networks. {device}",
        costs=costs,
        foot=f"Made by vitrail {__version__}. "
        + ", ".join(f"{name} {value}" for name, value in settings.items()),
    )


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


def _sizes(found: Measures) -> str:
    points = [(math.log2(size.bits), size.accuracy) for size in found.sizes]
    low = math.floor(min(accuracy for _, accuracy in points) * 20) / 20
    high = min(1.0, math.ceil(max(accuracy for _, accuracy in points) * 20 + 0.2) / 20)
    return line_chart(
        points,
        "bits of weights",
        "accuracy",
        x_range=(points[0][0], points[-1][0]),
        y_range=(low, high),
        x_ticks=[(math.log2(size.bits), _short(size.bits)) for size in found.sizes[::2]],
        marked=points[-1],
    )


def _short(count: int) -> str:
    for unit, name in ((10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count / unit:.3g}{name}"
    return str(count)


def _most_confused(found: Measures) -> list[tuple[int, str, str]]:
    wrong = [
        (int(count), found.classes[label], found.classes[answer])
        for (label, answer), count in np.ndenumerate(found.confusion)
        if label != answer and count
    ]
    return sorted(wrong, reverse=True)[:MOST_CONFUSED]


def _rows(rows: Sequence[ShownRow]) -> list[tuple[str, ...]]:
    return [
        (row.place, row.label, row.answer, _percent(row.probability), votes, *row.cells)
        for row in rows
        for votes in (f"{row.against:.0%}",)
    ]


def _device(model: Model, table: Any) -> tuple[str, list[tuple[str, ...]]]:
    """Why nothing was measured, or a line for each device that has its compiler here."""
    installed = [target for target in TARGETS if target.installed]
    if model.networks.numel() > MOST_BITS:
        return "That is more than small devices hold; --predictor best gives one network.", []
    if not installed:
        return "No compiler is installed here, so nothing was measured.", []
    try:
        header = c_header(model, "tiny", golden_rows(model, table))
    except ExportError as error:
        return f"It cannot be exported to C: {error}.", []
    costs = [cost(header, "tiny", target, (ENTRY,)) for target in installed]
    too_large = [f"It does not fit on {one.target.title}." for one in costs if not one.sizes]
    return " ".join(too_large), [_line(one) for one in costs if one.sizes]


def _line(found: Cost) -> tuple[str, ...]:
    size = found.sizes[ENTRY]
    numbers = (f"{number:,}" for number in (size.flash, size.data, size.stack))
    return (found.target.title, *numbers, work_of(found))
