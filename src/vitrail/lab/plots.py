"""All drawing. Figures are made without a display and returned; `save` writes them whole.

Colours follow the name: leaded glass, deep and few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.extras import needs

with needs("lab", "a figure"):
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure as Figure  # callers name it without matplotlib
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MultipleLocator

INK = "#23252b"
PANES = ("#1f4e9c", "#c8352e", "#e0a021", "#2f8559", "#7b3f98", "#d9722b", "#4b8fb0")
GLASS = LinearSegmentedColormap.from_list("glass", ["#c8352e", "#f7f3e9", "#1f4e9c"])

STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e1d8",
    "legend.frameon": False,
    "figure.facecolor": "white",
    "figure.constrained_layout.w_pad": 0.08,
    "figure.constrained_layout.h_pad": 0.08,
}


def save(figure: Figure, path: Path) -> Path:
    """Write a figure in one go: a reader never sees half of it."""
    part = path.with_name(f".{path.name}.part")
    try:
        figure.savefig(part, dpi=150, format=path.suffix.lstrip(".") or "png")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def demo_figure(
    panes: np.ndarray,
    reliability: Mapping[str, Sequence[tuple[float, float]]],
    searches: Mapping[str, tuple[np.ndarray, float]],
) -> Figure:
    """Ten panes of pixels that networks agree on, over two charts.

    panes: (10, height, width), −1…1: red for pixels that are against their digit in all networks,
    blue for it, pale where networks disagree. reliability: name → (confidence, accuracy) per bin.
    searches: name → (constraints unsatisfied at best per step, seconds in all).
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(9, 7.4), layout="constrained")
        halves: Any = figure.subfigures(2, 1, height_ratios=[1.25, 1])
        top, bottom = halves
        for digit, axes in enumerate(top.subplots(2, 5).flat):
            draw_weights(axes, panes[digit], str(digit))
        top.suptitle(
            "What many networks of one-bit weights agree on, ten images per digit: blue for, red "
            "against, pale undecided",
            fontsize=10,
        )
        calibration, search = bottom.subplots(1, 2)
        names = list(dict.fromkeys([*reliability, *searches]))
        for name, points in reliability.items():
            confidence, accuracy = zip(*points, strict=True)
            _draw_line(calibration, Line(name, confidence, accuracy), names)
        calibration.plot([0, 1], [0, 1], color=INK, ls="--", lw=1)
        calibration.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1))
        calibration.set_title("ten digits, unseen images")
        lines = list(calibration.lines[:-1])
        calibration.legend(lines, list(reliability), fontsize=8, loc="lower right")
        for name, (unsatisfied, seconds) in searches.items():
            clock = np.linspace(0, seconds, len(unsatisfied) + 1)[1:]
            _draw_line(search, Line(name, list(clock), list(unsatisfied)), names)
        search.set(xlabel="seconds", ylabel="constraints not satisfied", ylim=(-1, None))
        search.set(title="random perceptron", yscale="symlog")
        search.legend(list(search.lines), list(searches), fontsize=8)
    return figure


def curves_figure(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], title: str) -> Figure:
    """Training accuracy of several solvers: name → (epochs, accuracy), each (steps,)."""
    with rc_context(STYLE):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for colour, (name, (epochs, accuracy)) in zip(
            panes(len(curves)), curves.items(), strict=True
        ):
            best = np.maximum.accumulate(accuracy)
            axes.plot(epochs, accuracy, color=colour, lw=0.8, alpha=0.35)
            axes.plot(epochs, best, color=colour, lw=2, label=f"{name}: {best[-1]:.3f}")
        axes.set(xlabel="epoch", ylabel="training accuracy", title=title)
        axes.legend(loc="lower right", title="best so far", alignment="left")
    return figure


def survey_figure(
    surveys: Sequence[np.ndarray], titles: Sequence[str], columns: int | None = None
) -> Figure:
    """Surveys of one variable over the steps, side by side: each (steps, B), dark where mass is.

    A column is a step, a row a bin of P(w = 1), from 0 at the bottom to 1 at the top.
    """
    with rc_context(STYLE):
        columns = min(columns or len(surveys), len(surveys))
        rows = -(-len(surveys) // columns)
        figure = Figure(figsize=(2.2 * columns, 2.9 * rows), layout="constrained")
        panels = [figure.add_subplot(rows, columns, n + 1) for n in range(len(surveys))]
        for axes, survey, title in zip(panels, surveys, titles, strict=True):
            extent = (0.5, len(survey) + 0.5, 0.0, 1.0)
            # the square root lets a few draws be seen beside a bin that holds most of the mass
            axes.imshow(
                np.sqrt(survey.T), origin="lower", aspect="auto", extent=extent, cmap="Blues"
            )
            axes.grid(visible=False)
            axes.set(xlabel="step", title=title, xticks=np.linspace(0, len(survey), 5)[1:].round())
        for axes in panels[::columns]:
            axes.set_ylabel("P(w = 1)")
    return figure


def beliefs_figure(beliefs: Mapping[str, np.ndarray]) -> Figure:
    """Beliefs as images side by side: title → P(w = 1), red for 0, pale for ½, blue for 1."""
    with rc_context(STYLE):
        figure = Figure(figsize=(2.6 * len(beliefs), 3.2), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(beliefs)))
        for one, (title, image) in zip(axes, beliefs.items(), strict=True):
            draw_weights(one, 2 * image - 1, title)
    return figure


def draw_weights(axes: Axes, image: np.ndarray, title: str) -> None:
    """An image of weights or marginals, −1 red, +1 blue, undecided pale; lead between panes."""
    axes.imshow(image, cmap=GLASS, vmin=-1, vmax=1, interpolation="nearest")
    height, width = image.shape
    axes.set_xticks(np.arange(-0.5, width), minor=True)
    axes.set_yticks(np.arange(-0.5, height), minor=True)
    axes.grid(visible=False)
    axes.grid(visible=True, which="minor", color=INK, lw=0.5)
    axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    for side in axes.spines.values():
        side.set(visible=True, color=INK, lw=1.5)
    axes.set_title(title)


@dataclass(frozen=True)
class Line:
    """One method's mean over repeats and its spread, drawn with a marker and dashes of its own."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None
    reference: bool = False  # something to compare with, such as the optimum: plain black
    thin: bool = False  # the method's last configuration beside its best: no markers


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    bounds: tuple[float, float] = (0.0, 1.0)  # what the quantity can be: spreads end there


THIN = "thin: the last"
NO_BOUNDS = (-np.inf, np.inf)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)), ":")


def line_figure(panels: Sequence[Panel], columns: int) -> Figure:
    """Panels of lines with one legend; a name keeps its colour, marker and dashes throughout."""
    names = list(
        dict.fromkeys(line.name for panel in panels for line in panel.lines if not line.reference)
    )
    with rc_context(STYLE):
        figure, places = _grid(len(panels), columns)
        handles: dict[str, Any] = {}
        for axes, panel in zip(places, panels, strict=True):
            for line in panel.lines:
                handle = _draw_line(axes, line, names, panel.bounds)
                if not line.thin:
                    handles.setdefault(line.name, handle)
            axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
            if panel.log_x:
                axes.set_xscale("log")
                ticks = panel.lines[0].x
                axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
                axes.minorticks_off()
        if any(line.thin for panel in panels for line in panel.lines):
            handles[THIN] = Line2D([], [], color=INK, lw=0.8)
        _legend(figure, handles)
    return figure


def _draw_line(
    axes: Axes, line: Line, names: Sequence[str], bounds: tuple[float, float] = NO_BOUNDS
) -> Any:
    if line.reference:
        return axes.plot(line.x, line.y, color=INK, lw=1, marker="_", ms=7, zorder=3)[0]
    place = names.index(line.name) % len(PANES)
    if line.thin:
        return axes.plot(line.x, line.y, color=PANES[place], ls=DASHES[place], lw=0.8)[0]
    (handle,) = axes.plot(
        line.x,
        line.y,
        color=PANES[place],
        ls=DASHES[place],
        lw=1.6,
        marker=MARKERS[place],
        ms=4.5,
        markevery=max(1, len(line.x) // 12),
        markerfacecolor="white",
    )
    if line.spread is not None:
        low = np.clip(np.subtract(line.y, line.spread), *bounds)
        high = np.clip(np.add(line.y, line.spread), *bounds)
        axes.fill_between(line.x, low, high, color=PANES[place], alpha=0.12, lw=0)
    return handle


@dataclass(frozen=True)
class Cloud:
    """Points of one group in a scatter, sized by a quantity."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    size: Sequence[float]


@dataclass(frozen=True)
class Comparison:
    """A scatter of one method against another; the dashed line is equality."""

    title: str
    x_label: str
    y_label: str
    clouds: tuple[Cloud, ...]
    note: str  # what the area of a marker stands for


def comparison_figure(comparisons: Sequence[Comparison], columns: int) -> Figure:
    """Scatters of paired results, the legend of each below it; area grows with the size given."""
    with rc_context(STYLE):
        figure, places = _grid(len(comparisons), columns, height=4.9)
        for axes, comparison in zip(places, comparisons, strict=True):
            for place, cloud in enumerate(comparison.clouds):
                look: dict[str, Any] = {
                    "marker": MARKERS[place % len(MARKERS)],
                    "facecolors": "none",
                    "edgecolors": PANES[place % len(PANES)],
                    "linewidths": 0.8,
                }
                axes.scatter(cloud.x, cloud.y, s=cloud.size, **look)
                axes.scatter([], [], s=40, label=cloud.name, **look)
            values = [v for cloud in comparison.clouds for v in (*cloud.x, *cloud.y)]
            ends = (min(values) - 0.03, max(values) + 0.03)
            axes.plot(ends, ends, color=INK, ls="--", lw=1, zorder=1)
            axes.set(
                title=comparison.title,
                xlabel=comparison.x_label,
                ylabel=comparison.y_label,
                xlim=ends,
                ylim=ends,
                aspect="equal",
            )
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MultipleLocator(0.05 if ends[1] - ends[0] < 0.4 else 0.1))
            axes.legend(
                loc="upper center",
                bbox_to_anchor=(0.45, -0.16),
                fontsize=8,
                ncols=2,
                title=comparison.note,
                title_fontsize=8,
            )
    return figure


PANEL_WIDTHS = {1: 3.9, 2: 3.9, 3: 3.4}  # inches by columns, so that a page's text stays legible
NARROWEST = 3.0


def _grid(count: int, columns: int, height: float = 3.1) -> tuple[Figure, list[Axes]]:
    columns = min(columns, count)
    rows = -(-count // columns)
    width = PANEL_WIDTHS.get(columns, NARROWEST)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    places = [figure.add_subplot(rows, columns, place + 1) for place in range(count)]
    return figure, places


def _legend(figure: Figure, handles: Mapping[str, Any]) -> None:
    """Above the panels, in as few rows as the width takes, evenly filled."""
    longest = 0.8 + 0.08 * max(map(len, handles))  # inches, at this style's letters
    rows = -(-len(handles) // max(1, int(figure.get_figwidth() / longest)))
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside upper center",
        ncols=-(-len(handles) // rows),
    )


def capacity_figure(
    rows: Sequence[Mapping[str, Any]], marks: Mapping[str, float], title: str
) -> Figure:
    """Share solved and time to solution against α, one line a solver.

    rows: solver, alpha, solved (share), seconds (median of the solved, None where none was).
    marks: name → α of a line to draw in, such as the capacity.
    """
    names = list(dict.fromkeys(row["solver"] for row in rows))
    with rc_context(STYLE):
        figure, (share, seconds) = _grid(2, 2)
        handles: dict[str, Any] = {}
        for name in names:
            mine = [row for row in rows if row["solver"] == name]
            alphas, solved = [row["alpha"] for row in mine], [row["solved"] for row in mine]
            handles[name] = _draw_line(share, Line(name, alphas, solved), names)
            timed = [row for row in mine if row["seconds"] is not None]
            times = Line(name, [r["alpha"] for r in timed], [r["seconds"] for r in timed])
            _draw_line(seconds, times, names)
        for place, (name, alpha) in enumerate(marks.items()):
            share.axvline(alpha, color=INK, lw=1, ls=(0, (2, 2)))
            # to the right of its line, on a ground of its own: curves fall to the left
            ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
            height = 0.65 - 0.1 * place
            share.text(alpha + 0.004, height, name, rotation=90, va="center", bbox=ground)
        share.set(title=title, xlabel="α = M/N", ylabel="solved", ylim=(-0.03, 1.03))
        seconds.set(title="time to solution", xlabel="α = M/N", ylabel="seconds", yscale="log")
        _legend(figure, handles)
    return figure


def panes(num: int) -> Sequence[str]:
    """As many colours as lines to draw; they come round again after the seventh."""
    return [PANES[i % len(PANES)] for i in range(num)]


def bench_figure(rows: Sequence[Mapping[str, Any]], growth: Sequence[Mapping[str, Any]]) -> Figure:
    """Speedup over the paper's formulation, and time against each size, on logarithmic axes."""
    ours = [row for row in rows if row["speedup"] and row["update"] != "paper"]
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 0.8 + 0.34 * max(8, len(ours))), layout="constrained")
        bars, lines = figure.subplots(1, 2, width_ratios=[1.5, 1])
        nets = list(dict.fromkeys((row["net"], row["solver"]) for row in ours))
        names = ["{net} {solver}: {update} {samples} ({backend})".format_map(row) for row in ours]
        colours = [PANES[nets.index((row["net"], row["solver"])) % len(PANES)] for row in ours]
        bars.barh(names, [row["speedup"] for row in ours], color=colours)
        bars.set(xscale="log", xlabel="times faster than the paper's formulation")
        bars.invert_yaxis()
        for colour, line in zip(PANES, growth, strict=False):
            label = f"{line['size']}: {line['exponent']:.2f}"
            values, seconds = np.array(line["values"]), np.array(line["seconds"])
            lines.plot(values / values[-1], seconds, "o-", color=colour, ms=3, label=label)
        lines.set(xscale="log", yscale="log", xlabel="size / largest", ylabel="seconds")
        title = "exponent of time in the larger half"
        figure.legend(loc="outside lower right", ncols=len(growth), title=title)
    return figure
