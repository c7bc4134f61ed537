"""The report as one page that needs nothing but itself: no script, no file, no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from vitrail import __version__
from vitrail.export.c import c_header
from vitrail.export.devices import TARGETS, Cost, cost
from vitrail.export.errors import ExportError
from vitrail.export.formats import golden_rows
from vitrail.export.report import work_of
from vitrail.model import Model
from vitrail.output import atomic_output
from vitrail.report.charts import line_chart, panes
from vitrail.report.measures import Column, Measures, Row, measure

FORM = Path(__file__).with_name("page.html")
MOST_BITS = 2**21  # of networks that are compiled for devices; more would take minutes
ENTRY = "predict"  # the function whose bytes are told: rows in, an answer out
MOST_CLASSES = 30  # of a confusion matrix that fits a page


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
    text = page(model, measure(model, table, labels), table, rows_are)
    with atomic_output(path) as stream:
        stream.write(text.encode())
    return Path(path)


def page(model: Model, found: Measures, table: Any, rows_are: str) -> str:
    """The page as text."""
    record = model.record
    target, data = record.get("target"), record.get("data")
    title = f"{target} from {data}" if target and data else "A model of one-bit weights"
    settings = record.get("settings") or {}
    trained = f"Trained on {record['rows']:,} rows. " if "rows" in record else ""
    return Template(FORM.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        lead=escape(f"{trained}Measured on {found.rows:,} rows {rows_are}."),
        facts=_facts(model, found),
        reliability=_reliability(found),
        coverage=_coverage(found),
        sizes=_sizes(found),
        confusion=_confusion(found),
        columns=_pictures(found) if found.picture is not None else _columns(found.columns),
        hardest=_rows(found, found.hardest, "Rows whose label has the lowest probability."),
        disputed=_rows(found, found.disputed, "Rows with most votes against the answer."),
        device=_device(model, table),
        foot=escape(
            f"Made by vitrail {__version__}. "
            + ", ".join(f"{name} {value}" for name, value in settings.items())
        ),
    )


def _facts(model: Model, found: Measures) -> str:
    bits = model.networks.numel()
    facts = {
        "accuracy": f"{found.accuracy:.1%} ± {found.error:.1%}",
        "calibration error": f"{found.calibration_error:.1%}",
        "networks that vote": f"{len(model.networks):,}",
        "bytes of weights": f"{-(-bits // 8):,}",
    }
    return "".join(f"<li><b>{value}</b>{escape(name)}</li>" for name, value in facts.items())


def _figure(chart: str, words: str) -> str:
    return f"<figure>{chart}<figcaption>{escape(words)}</figcaption></figure>"


def _reliability(found: Measures) -> str:
    points = [(confidence, right) for confidence, right, _ in found.reliability]
    chart = line_chart(points, "confidence", "accuracy", diagonal=True)
    words = "On the dashed line confidence equals accuracy; above it, answers are underconfident."
    return _figure(chart, words)


def _coverage(found: Measures) -> str:
    low = min(accuracy for _, accuracy in found.coverage)
    floor = math.floor(low * 10) / 10 if low < 1 else 0.9
    chart = line_chart(
        found.coverage, "coverage: share of rows answered", "accuracy", y_range=(floor, 1.0)
    )
    half = next(accuracy for share, accuracy in found.coverage if share >= 0.5)
    words = f"On the half with the highest confidence, accuracy is {half:.1%}."
    return _figure(chart, f"{words} vitrail predict --abstain RATE leaves the others empty.")


def _sizes(found: Measures) -> str:
    chosen = found.sizes[-1]
    if chosen.networks == 1:
        return f"<p>One network of {chosen.bits:,} bits answers.</p>"
    points = [(math.log2(size.bits), size.accuracy) for size in found.sizes]
    ends = (points[0][0], points[-1][0])
    low = math.floor(min(accuracy for _, accuracy in points) * 20) / 20
    high = min(1.0, math.ceil(max(accuracy for _, accuracy in points) * 20 + 0.2) / 20)
    ticks = [(math.log2(size.bits), _short(size.bits)) for size in found.sizes[::2]]
    chart = line_chart(
        points,
        "bits of weights",
        "accuracy",
        x_range=ends,
        y_range=(low, high),
        x_ticks=ticks,
        marked=points[-1],
    )
    one = found.sizes[0]
    words = (
        f"The first 1, 2, 4, … of {chosen.networks} networks: {one.accuracy:.1%} with one, "
        f"{chosen.accuracy:.1%} with all, which is what this model uses (ringed)."
    )
    return _figure(chart, words)


def _short(count: int) -> str:
    for unit, name in ((10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count / unit:.3g}{name}"
    return str(count)


def _confusion(found: Measures) -> str:
    names = found.classes
    if len(names) > MOST_CLASSES:
        return _most_confused(found)
    head = "".join(f'<th class="number">{escape(name)}</th>' for name in names)
    body = []
    for i, name in enumerate(names):
        cells = "".join(
            f'<td class="number{_mark(i, j, int(count))}">{int(count):,}</td>'
            for j, count in enumerate(found.confusion[i])
        )
        body.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    table = f"<tr><th>label \\ answer</th>{head}</tr>{''.join(body)}"
    return f'<div class="scroll" tabindex="0"><table>{table}</table></div>'


def _mark(label: int, answer: int, count: int) -> str:
    if not count:
        return ""
    return " right" if label == answer else " wrong"


def _most_confused(found: Measures) -> str:
    wrong = [
        (int(count), found.classes[i], found.classes[j])
        for (i, j), count in _each(found.confusion)
        if i != j and count
    ]
    lines = [
        f"<li>{escape(label)} predicted as {escape(answer)}: {count:,}</li>"
        for count, label, answer in sorted(wrong, reverse=True)[:20]
    ]
    return f"<ol>{''.join(lines)}</ol>" if lines else "<p>There are no errors.</p>"


def _each(array: Any) -> Any:
    return (((i, j), array[i, j]) for i in range(len(array)) for j in range(len(array)))


def _columns(columns: Sequence[Column]) -> str:
    most = max((column.loss for column in columns), default=0.0)
    lines = []
    for column in columns:
        width = 100 * max(0.0, column.loss) / most if most > 0 else 0.0
        bits = "; ".join(
            f"{escape(bit.name)} → {escape(bit.favours)} ({bit.agreement:.0%})"
            for bit in column.bits
        )
        lines.append(
            f'<tr><td>{escape(column.name)}<span class="bar" style="width:{width:.0f}%"></span>'
            f'</td><td class="number">{100 * column.loss:.1f}</td><td class="bits">{bits}</td></tr>'
        )
    head = '<tr><th>column</th><th class="number">points lost</th><th>strongest bits</th></tr>'
    words = (
        "Points of accuracy lost when a column's values are shuffled, and the bits that networks "
        "agree on most: the class that each favours, and the share of networks that agree."
    )
    table = f'<div class="scroll" tabindex="0"><table>{head}{"".join(lines)}</table></div>'
    return f'<p class="soft">{words}</p>{table}'


def _pictures(found: Measures) -> str:
    assert found.picture is not None
    shown = "".join(
        f"<figure>{panes(picture, f'pixels for and against {name}')}"
        f"<figcaption>{escape(name)}</figcaption></figure>"
        for name, picture in zip(found.classes, found.picture, strict=True)
    )
    words = "Pixels that favour a class (blue) or oppose it (red), pale where networks disagree."
    return f'<p class="soft">{words}</p><div class="panes">{shown}</div>'


def _rows(found: Measures, rows: Sequence[Row], words: str) -> str:
    if not rows:
        return "<p>There are none.</p>"
    names = (
        "row",
        "label",
        "answer",
        "label probability",
        "votes against",
        *found.cell_names,
    )
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td>{escape(cell)}</td>"
            for cell in (
                row.place,
                row.label,
                row.answer,
                f"{row.probability:.1%}",
                f"{row.against:.0%}",
                *row.cells,
            )
        )
        + "</tr>"
        for row in rows
    )
    table = f'<div class="scroll" tabindex="0"><table><tr>{head}</tr>{body}</table></div>'
    return f'<p class="soft">{escape(words)}</p>{table}'


def _device(model: Model, table: Any) -> str:
    """Flash and work where compilers for devices are here, bytes of weights in any case."""
    bits = model.networks.numel()
    words = [f"{-(-bits // 8):,} bytes of weights in {len(model.networks):,} networks."]
    found: list[Cost] = []
    installed = [target for target in TARGETS if target.installed]
    if bits > MOST_BITS:
        words.append("That is more than small devices hold; --predictor best gives one network.")
    elif not installed:
        words.append("No compiler is installed here, so nothing was measured.")
    else:
        try:
            header = c_header(model, "tiny", golden_rows(model, table))
        except ExportError as error:
            installed = []
            words.append(f"It cannot be exported to C: {error}.")
        for target in installed:
            one = cost(header, "tiny", target, (ENTRY,))
            if one.sizes:
                found.append(one)
            else:
                words.append(f"It does not fit on {target.title}.")
    lines = "".join(
        f"<tr><td>{escape(one.target.title)}</td>"
        f'<td class="number">{size.flash:,}</td><td class="number">{size.data:,}</td>'
        f'<td class="number">{size.stack:,}</td><td>{escape(work_of(one))}</td></tr>'
        for one in found
        for size in (one.sizes[ENTRY],)
    )
    head = (
        '<tr><th>device</th><th class="number">flash</th><th class="number">RAM</th>'
        '<th class="number">stack, at most</th><th>work</th></tr>'
    )
    table_of = f'<div class="scroll" tabindex="0"><table>{head}{lines}</table></div>'
    return f"<p>{escape(' '.join(words))}</p>{table_of if lines else ''}"
