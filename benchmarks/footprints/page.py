"""The measured part of docs/footprint.md, and its pictures."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import write_between
from matplotlib import pyplot as plt

from footprints.learners import OURS

BEGIN, END = "<!-- measured by benchmarks/footprint.py -->", "<!-- end -->"
PUBLISHED = {  # BTHOWeN (Susskind et al., 2022), accuracy and KiB of model without encoder
    "iris": (0.980, 0.28),
    "wine": (0.983, 0.42),
    "ecoli": (0.875, 0.88),
    "mnist": (0.934, 70.0),
}
COLOURS = {
    OURS: "tab:blue",
    "tree": "tab:orange",
    "forest": "tab:red",
    "boosting": "tab:purple",
    "logistic": "tab:green",
}

SIDES = {  # rivals, by what their methods begin with
    "any rival": ".",
    "trees and forests by emlearn": "tree|forest",
    "boosted trees by hand": "boosting",
    "logistic regression in eight bits": "logistic",
}
SHOWN = 0.25  # below the best accuracy
BUDGETS = 2 ** np.linspace(6.5, 17, 85)
HEADLINE = BUDGETS[BUDGETS <= 2**14]


def tables_of(found: dict[str, Any]) -> dict[str, Any]:
    """A frame of points for each table, by name."""
    return {name: pd.DataFrame(points) for name, points in sorted(found["splits"].items())}


def compared(points: Any, rivals: str = ".", answers: int | None = None) -> dict[str, Any]:
    """The smallest and the quickest of both sides at the highest accuracy that both reach.

    rivals: what the names of methods on the other side match
    answers: how many different rows were answered, where a standard error less is as good
    """
    mine = points[points.method == OURS]
    theirs = points[(points.method != OURS) & points.method.str.match(rivals)]
    level = min(mine.accuracy.max(), theirs.accuracy.max())
    if answers:
        level -= (level * (1 - level) / answers) ** 0.5
    best, best_rival = mine.accuracy.max(), theirs.accuracy.max()
    mine, theirs = mine[mine.accuracy >= level], theirs[theirs.accuracy >= level]
    many = theirs[theirs.method.str.match("forest|boosting")].sort_values("instructions")
    small, rival = (side.sort_values("flash").iloc[0] for side in (mine, theirs))
    return {
        "level": level,
        "ours": small,
        "quick": mine.sort_values("instructions").iloc[0],
        "rival": rival,
        "ratio": small.flash / rival.flash,
        "many": many.iloc[0] if len(many) else None,
        "best": best,
        "best_rival": best_rival,
    }


def text(found: dict[str, Any]) -> str:
    """How flash and work compare in the median, then on each table."""
    tables, answers = tables_of(found), found["answers"]
    parts = [_medians(tables, answers), _work(tables, answers), _lines(tables), _published(found)]
    return "\n\n".join("\n".join(part) for part in parts).strip()


def _medians(tables: dict[str, Any], answers: dict[str, int]) -> list[str]:
    """Flash beside each kind of rival at the highest accuracy that both reach, and near it."""
    lines = [
        "| our flash by that of | median | at most half on | larger on "
        "| within a standard error: median | at most half on | larger on |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, rivals in SIDES.items():
        cells = []
        for near in (False, True):
            ratios = np.array([
                compared(points, rivals, answers[name] if near else None)["ratio"]
                for name, points in tables.items()
            ])  # fmt: skip
            half, larger = (ratios <= 0.5).sum(), (ratios > 1).sum()
            cells += [f"{np.median(ratios):.2f}", f"{half} of {len(tables)} tables", str(larger)]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def _work(tables: dict[str, Any], answers: dict[str, int]) -> list[str]:
    """Where instructions are fewer than those of many trees."""
    parts = []
    for near in (False, True):
        pairs = {
            name: compared(points, answers=answers[name] if near else None)
            for name, points in tables.items()
        }
        pairs = {name: one for name, one in pairs.items() if one["many"] is not None}
        fewer = [
            name
            for name, one in pairs.items()
            if one["quick"].instructions < one["many"].instructions
        ]
        parts.append(f"{len(fewer)} of {len(pairs)} tables{f' ({_listed(fewer)})' * bool(fewer)}")
    return [
        "A prediction of our quickest takes fewer instructions than that of the quickest forest or "
        f"boosting, where one is as accurate, on {parts[0]}; within a standard error on {parts[1]}."
    ]


def _lines(tables: dict[str, Any]) -> list[str]:
    lines = [
        "| table | accuracy of both | vitrail, bytes | smallest rival, bytes | ratio "
        "| quickest of vitrail, instructions | quickest forest or boosting, instructions "
        "| best of vitrail | best of rivals |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, points in tables.items():
        one = compared(points)
        small, rival, many = one["ours"], one["rival"], one["many"]
        work = "none as accurate" if many is None else f"{many.instructions:,.0f} ({many.method})"
        lines.append(
            f"| {_spoken(name)} | {one['level']:.3f} | {small.flash:,} "
            f"| {rival.flash:,} ({rival.method}) | {one['ratio']:.2f} "
            f"| {one['quick'].instructions:,.0f} | {work} "
            f"| {one['best']:.3f} | {one['best_rival']:.3f} |"
        )
    return lines


def _listed(names: list[str]) -> str:
    return ", ".join(map(_spoken, names))


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _published(found: dict[str, Any]) -> list[str]:
    """Published points, each beside the most accurate of our models."""
    lines = [
        "| | splits | model | accuracy | standard error | bytes of model | BTHOWeN |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, splits in found.get("published", {}).items():
        points = pd.DataFrame(chain(*splits), columns=["model", "bytes", "accuracy"])
        means = points.groupby("model").agg(["mean", "sem"])
        size = means["accuracy", "mean"].idxmax()
        best = means.loc[size]
        accuracy, kib = PUBLISHED[name]
        lines.append(
            f"| {name} | {len(splits)} | {size} | {best['accuracy', 'mean']:.4f} "
            f"| {best['accuracy', 'sem']:.4f} | {best['bytes', 'mean']:.0f} "
            f"| {accuracy:.3f} in {kib * 1024:.0f} |"
        )
    return lines if len(lines) > 2 else []


def best_within(points: Any, method: str, budgets: np.ndarray) -> np.ndarray:
    """The highest accuracy of a method within a number of bytes; NaN where nothing fits."""
    own = points[points.method.str.startswith(method)].sort_values("flash")
    best = np.maximum.accumulate(np.r_[-np.inf, own.accuracy.to_numpy()])
    found = best[np.searchsorted(own.flash.to_numpy(), budgets, side="right")]
    return np.where(np.isfinite(found), found, np.nan)


def drawn_panels(tables: dict[str, Any], path: Path) -> None:
    """Every point of every table, and what is best within a number of bytes as lines."""
    columns = 3
    rows = -(-len(tables) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.5 * columns, 1.9 * rows + 0.5), squeeze=False, sharex=True
    )
    for axis in axes.ravel()[len(tables) :]:
        axis.axis("off")
    for axis, (name, points) in zip(axes.ravel(), tables.items(), strict=False):
        for method, colour in COLOURS.items():
            own = points[points.method.str.startswith(method)]
            axis.plot(own.flash, own.accuracy, ".", color=colour, ms=3, alpha=0.35)
            axis.plot(BUDGETS, best_within(points, method, BUDGETS), color=colour, label=method)
        if name in PUBLISHED:
            accuracy, kib = PUBLISHED[name]
            axis.plot(kib * 1024, accuracy, "k*", ms=8, label="BTHOWeN, model without code")
        top = points.accuracy.max()
        low = max(points.accuracy.min(), top - SHOWN)
        axis.set(xscale="log", title=_spoken(name), xlim=(BUDGETS[0], BUDGETS[-1]))
        axis.set_ylim(low - 0.02, max(top, PUBLISHED.get(name, (0,))[0]) + 0.02)
        axis.grid(alpha=0.3)
    shown: dict[str, Any] = {}
    for axis in axes.ravel():
        shown |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    for axis in axes[-1]:
        axis.set_xlabel("bytes of flash")
    figure.supylabel("accuracy on rows held out")
    figure.legend(shown.values(), shown.keys(), loc="lower center", ncols=6, frameon=False)
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    figure.savefig(path, dpi=90)
    plt.close(figure)


def drawn_headline(tables: dict[str, Any], path: Path) -> None:
    """Mean accuracy over the tables of what fits into a number of bytes."""
    figure, axis = plt.subplots(figsize=(7, 3.8))
    for method, colour in COLOURS.items():
        lines = [best_within(points, method, HEADLINE) for points in tables.values()]
        mean = np.mean(lines, axis=0)  # drawn from where a model fits for every table
        wide = 2.6 if method == OURS else 1.6
        axis.plot(HEADLINE, mean, color=colour, lw=wide, label=method)
    axis.set(xscale="log", xlabel="bytes of flash on a Cortex-M0+, code and encoder included")
    axis.set_ylabel(f"mean accuracy, {len(tables)} tables")
    axis.set_xticks(ticks := [128, 256, 512, 1024, 2048, 4096, 8192, 16384])
    axis.set_xticklabels([f"{tick:,}" for tick in ticks])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write(found: dict[str, Any], docs: Path) -> None:
    """The pictures, and the page between its marks."""
    tables = tables_of(found)
    drawn_panels(tables, docs / "images" / "footprint.png")
    drawn_headline(tables, docs / "images" / "bytes.png")
    write_between(docs / "footprint.md", BEGIN, END, text(found))
