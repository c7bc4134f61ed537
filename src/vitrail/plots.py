"""All drawing. Figures are made without a display and returned; `save` writes them whole.

Colours follow the name: leaded glass, deep and few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as Figure  # callers name it without matplotlib

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
    "grid.color": "#e4e1d8",
    "legend.frameon": False,
    "figure.facecolor": "white",
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


def training_figure(
    curves: Mapping[str, np.ndarray],
    steps_per_epoch: float,
    images: Mapping[str, np.ndarray],
    title: str,
) -> Figure:
    """Accuracy by epoch of several solvers, with what they learned beside it.

    curves: name → (steps,) training accuracy of the decoded network; the best so far is drawn
    over it. images: name → (height, width), −1…1: weights, or 2·P(w = 1) − 1 for marginals.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(4.4 + 2.6 * len(images), 3.2), layout="constrained")
        grid = figure.add_gridspec(1, 1 + len(images), width_ratios=[1.6, *[1] * len(images)])
        axes = figure.add_subplot(grid[0])
        for colour, (name, accuracy) in zip(PANES, curves.items(), strict=False):
            epochs = np.arange(1, len(accuracy) + 1) / steps_per_epoch
            axes.plot(epochs, accuracy, color=colour, lw=0.8, alpha=0.35)
            best = np.maximum.accumulate(accuracy)
            axes.plot(epochs, best, color=colour, lw=2, label=f"{name}: {best[-1]:.3f}")
        axes.set(xlabel="epoch", ylabel="training accuracy", title=title)
        low = min(float(np.quantile(curve, 0.05)) for curve in curves.values())
        high = max(float(curve.max()) for curve in curves.values())
        axes.set_ylim(low - 0.02, high + 0.02)
        axes.legend(loc="lower right", title="best so far", alignment="left")
        for place, (name, image) in enumerate(images.items(), 1):
            draw_weights(figure.add_subplot(grid[place]), image, name)
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


def panes(num: int) -> Sequence[str]:
    """As many colours as lines to draw; they come round again after the seventh."""
    return [PANES[i % len(PANES)] for i in range(num)]
