"""All figures, made without a display; `save` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vitrail import interrupts
from vitrail.extras import needs
from vitrail.output import atomic_output

with needs("lab", "a figure"):
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure as Figure  # callers name it without matplotlib
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MultipleLocator

INK = "#23252b"
COLOURS = ("#1f4e9c", "#c8352e", "#e0a021", "#2f8559", "#7b3f98", "#d9722b", "#4b8fb0")
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
    """Write a figure to a file, completely or not at all."""
    # a stop while matplotlib loads its renderer would leave a module that cannot be imported
    with interrupts.defer_stop(), atomic_output(path) as stream:
        figure.savefig(stream, dpi=150, format=path.suffix.lstrip(".") or "png")
    return path


def demo_figure(images: np.ndarray, reliability: Panel, search: Panel) -> Figure:
    """Ten images of agreement on pixels, above two charts.

    images: (10, height, width), −1…1: blue for pixels that favour the digit in all networks, red
    for those that oppose it, pale where networks disagree.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(9, 7.4), layout="constrained")
        halves: Any = figure.subfigures(2, 1, height_ratios=[1.25, 1])
        top, bottom = halves
        for digit, axes in enumerate(top.subplots(2, 5).flat):
            draw_weights(axes, images[digit], str(digit))
        top.suptitle(
            "Agreement of networks of one-bit weights on pixels, ten images per digit: blue for "
            "the digit, red against, pale undecided",
            fontsize=10,
        )
        left, right = bottom.subplots(1, 2)
        names = _names([reliability, search])
        for axes, panel in ((left, reliability), (right, search)):
            handles = _draw_panel(axes, panel, names)
            axes.legend(list(handles.values()), list(handles), fontsize=8)
        left.plot([0, 1], [0, 1], color=INK, ls="--", lw=1)
        left.set(xlim=(0, 1), ylim=(0, 1))
        right.set(ylim=(-1, None), yscale="symlog")
    return figure


def curves_figure(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], title: str) -> Figure:
    """Training accuracy of several solvers: name → (epochs, accuracy), each (steps,)."""
    lines = []
    for name, (epochs, accuracy) in curves.items():
        best = np.maximum.accumulate(accuracy)
        label = f"{name}: {best[-1]:.3f}"
        lines += [Line(label, epochs, best), Line(label, epochs, accuracy, thin=True)]
    panel = Panel(title, "epoch", "training accuracy", tuple(lines))
    return line_figure([panel], 1, thin="thin: now, thick: best so far")


def survey_figure(surveys: Mapping[str, np.ndarray], columns: int) -> Figure:
    """Surveys of one variable over the steps: title → (steps, B), dark where there is mass.

    A column is a step, a row a bin of P(w = 1), from 0 at the bottom to 1 at the top.
    """
    with rc_context(STYLE):
        figure, places = _grid(len(surveys), columns, height=2.9, width=2.2)
        for axes, (title, survey) in zip(places, surveys.items(), strict=True):
            extent = (0.5, len(survey) + 0.5, 0.0, 1.0)
            # the square root makes small masses visible beside large ones
            axes.imshow(
                np.sqrt(survey.T), origin="lower", aspect="auto", extent=extent, cmap="Blues"
            )
            axes.grid(visible=False)
            axes.set(xlabel="step", title=title, xticks=np.linspace(0, len(survey), 5)[1:].round())
        for axes in places[::columns]:
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
    """An image of weights or marginals, −1 red, +1 blue, undecided pale."""
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
    """One method: its mean over repeats, and a band from low to high values."""

    name: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    band: tuple[Sequence[float], Sequence[float]] | None = None
    reference: bool = False  # drawn in black, such as the optimum
    thin: bool = False  # without markers, such as the last configuration beside the best


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False
    bounds: tuple[float, float] = (0.0, 1.0)  # of the quantity; bands are clipped to them
    limits: tuple[float, float] | None = None  # of the y axis
    marks: Mapping[str, float] = field(default_factory=dict)  # name → x of a vertical line


MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (3, 1)), ":")


def line_figure(panels: Sequence[Panel], columns: int, thin: str = "thin: the last") -> Figure:
    """Panels of lines with one legend; a name keeps its colour, marker and dashes throughout."""
    names = _names(panels)
    with rc_context(STYLE):
        figure, places = _grid(len(panels), columns)
        handles: dict[str, Any] = {}
        for axes, panel in zip(places, panels, strict=True):
            handles = {**_draw_panel(axes, panel, names), **handles}
        if any(line.thin for panel in panels for line in panel.lines):
            handles[thin] = Line2D([], [], color=INK, lw=0.8)
        longest = 0.8 + 0.08 * max(map(len, handles))  # inches, at this style's letters
        rows = -(-len(handles) // max(1, int(figure.get_figwidth() / longest)))
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside upper center",
            ncols=-(-len(handles) // rows),
        )
    return figure


def _names(panels: Sequence[Panel]) -> list[str]:
    lines = [line for panel in panels for line in panel.lines]
    return list(dict.fromkeys(line.name for line in lines if not line.reference))


def _draw_panel(axes: Axes, panel: Panel, names: Sequence[str]) -> dict[str, Any]:
    """Draw a panel and return its legend handles by name."""
    handles: dict[str, Any] = {}
    for line in panel.lines:
        handle = _draw_line(axes, line, names, panel.bounds)
        if not line.thin:
            handles.setdefault(line.name, handle)
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    if panel.limits is not None:
        axes.set_ylim(panel.limits)
    if panel.log_y:
        axes.set_yscale("log")
    if panel.log_x:
        axes.set_xscale("log")
        ticks = panel.lines[0].x
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    for place, (name, x) in enumerate(panel.marks.items()):
        axes.axvline(x, color=INK, lw=1, ls=(0, (2, 2)))
        # right of the line, on a white background
        ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
        axes.text(x + 0.004, 0.65 - 0.1 * place, name, rotation=90, va="center", bbox=ground)
    return handles


def _draw_line(axes: Axes, line: Line, names: Sequence[str], bounds: tuple[float, float]) -> Any:
    if line.reference:
        return axes.plot(line.x, line.y, color=INK, lw=1, marker="_", ms=7, zorder=3)[0]
    place = names.index(line.name) % len(COLOURS)
    look: dict[str, Any] = {"color": COLOURS[place], "ls": DASHES[place]}
    if line.thin:
        return axes.plot(line.x, line.y, lw=0.8, **look)[0]
    look |= {"marker": MARKERS[place], "ms": 4.5, "markerfacecolor": "white"}
    (handle,) = axes.plot(line.x, line.y, lw=1.6, markevery=max(1, len(line.x) // 12), **look)
    if line.band is not None:
        low, high = (np.clip(edge, *bounds) for edge in line.band)
        axes.fill_between(line.x, low, high, color=COLOURS[place], alpha=0.12, lw=0)
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
    """A scatter of the accuracies of one method against another's; the dashed line is equality."""

    x: str
    y: str
    clouds: tuple[Cloud, ...]
    note: str  # meaning of a marker's area


def comparison_figure(comparisons: Sequence[Comparison], columns: int) -> Figure:
    """Scatter plots of paired results, each with its legend below."""
    with rc_context(STYLE):
        figure, places = _grid(len(comparisons), columns, height=4.9)
        for axes, comparison in zip(places, comparisons, strict=True):
            for place, cloud in enumerate(comparison.clouds):
                look: dict[str, Any] = {
                    "marker": MARKERS[place % len(MARKERS)],
                    "facecolors": "none",
                    "edgecolors": COLOURS[place % len(COLOURS)],
                    "linewidths": 0.8,
                }
                axes.scatter(cloud.x, cloud.y, s=cloud.size, **look)
                axes.scatter([], [], s=40, label=cloud.name, **look)
            values = [v for cloud in comparison.clouds for v in (*cloud.x, *cloud.y)]
            ends = (min(values) - 0.03, max(values) + 0.03)
            axes.plot(ends, ends, color=INK, ls="--", lw=1, zorder=1)
            axes.set(title=f"{comparison.y} against {comparison.x}", aspect="equal")
            axes.set(xlabel=f"accuracy of {comparison.x}", ylabel=f"accuracy of {comparison.y}")
            axes.set(xlim=ends, ylim=ends)
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


PANEL_WIDTHS = {1: 3.9, 2: 3.9, 3: 3.4}  # inches by columns, so that text stays legible
NARROWEST = 3.0


def _grid(
    count: int, columns: int, height: float = 3.1, width: float | None = None
) -> tuple[Figure, list[Axes]]:
    columns = min(columns, count)
    rows = -(-count // columns)
    width = width or PANEL_WIDTHS.get(columns, NARROWEST)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, [figure.add_subplot(rows, columns, place + 1) for place in range(count)]


def capacity_figure(
    rows: Sequence[Mapping[str, Any]], marks: Mapping[str, float], title: str
) -> Figure:
    """Share solved and time to solution against α, one line per solver.

    rows: solver, alpha, solved (share, low and high of its interval), seconds (median of solved
    trials, None without any).
    marks: name → α of a vertical line, such as the capacity.
    """

    def lines(name: str, interval: bool = False) -> tuple[Line, ...]:
        found = []
        for solver in dict.fromkeys(row["solver"] for row in rows):
            known = [row for row in rows if row["solver"] == solver and row[name] is not None]
            x, y, low, high = (
                [row[part] for row in known] for part in ("alpha", name, "low", "high")
            )
            found.append(Line(solver, x, y, (low, high) if interval else None))
        return tuple(found)

    shares = lines("solved", interval=True)
    return line_figure(
        [
            Panel(title, "α = M/N", "solved", shares, limits=(-0.03, 1.03), marks=marks),
            Panel("time to solution", "α = M/N", "seconds", lines("seconds"), log_y=True),
        ],
        2,
    )


def bench_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Speedup over the paper's formulation, and time against each size, on logarithmic axes."""
    ours = [row for row in rows if row["speedup"] and row["update"] != "paper"]
    growth = [row for row in rows if row["size"]]
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 0.8 + 0.34 * max(8, len(ours))), layout="constrained")
        bars, lines = figure.subplots(1, 2, width_ratios=[1.5, 1])
        nets = list(dict.fromkeys((row["net"], row["solver"]) for row in ours))
        names = ["{net} {solver}: {update} {samples} ({backend})".format_map(row) for row in ours]
        colours = [COLOURS[nets.index((row["net"], row["solver"])) % len(COLOURS)] for row in ours]
        bars.barh(names, [row["speedup"] for row in ours], color=colours)
        bars.set(xscale="log", xlabel="times faster than the paper's formulation")
        bars.invert_yaxis()
        for colour, line in zip(COLOURS, growth, strict=False):
            label = f"{line['size']}: {line['exponent']:.2f}"
            values = np.array(line["values"])
            lines.plot(values / values[-1], line["times"], "o-", color=colour, ms=3, label=label)
        lines.set(xscale="log", yscale="log", xlabel="size / largest", ylabel="seconds")
        title = "exponent of time in the larger half"
        figure.legend(loc="outside lower right", ncols=len(growth), title=title)
    return figure
