"""Accuracy against bytes of flash on a Cortex-M0+: compressed models beside what exports trees.

    python benchmarks/footprint.py [FOLDER] [--splits 3] [--seconds 1000] [--only iris,wine]
                                   [--json out.json] [--docs docs] [--published 100]

FOLDER holds CSV files whose last column `class` is the label; iris, wine, digits and MNIST (14x14
bits, 10,000 images) are added. Every split holds out a third of the rows, the same for all; no
split begins after `--seconds`. Bytes are those of `predict` by arm-none-eabi-gcc -Os, instructions
those that qemu counts. Ours read the columns of the table; rivals are given numbers already: words
as one-hot columns, missing numbers as the median, everything standardised to 16 bits.

A second run with the same JSON file goes on where it stopped; `--docs` draws and writes the page
from the file alone. `--published N` answers BTHOWeN's points by N splits of iris and wine.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from rivals.in_c import Split, exported
from sklearn import datasets

from vitrail import BinaryNetClassifier, compress
from vitrail.data import mnist
from vitrail.data.encoders import TableEncoder
from vitrail.data.tables import read_table
from vitrail.export.c import c_header
from vitrail.export.devices import TARGETS, cost
from vitrail.export.golden import sample_rows
from vitrail.model import Model

OURS = "vitrail"
HIDDEN = 7  # of the networks that are made small
MEMBERS = (1, 2, 4, 8, 16)  # hidden units of a committee, for each net
THRESHOLDS = (3, 8)  # of a column of numbers
GOLDEN = 16
PUBLISHED = {  # BTHOWeN (Susskind et al., 2022), accuracy and KiB of model without encoder
    "iris": (0.980, 0.28),
    "wine": (0.983, 0.42),
    "ecoli": (0.875, 0.88),
    "mnist": (0.934, 70.0),
}
STYLE = {
    OURS: ("-", "o", "tab:blue"),
    "tree, emlearn": ("none", "v", "tab:orange"),
    "forest, emlearn": ("none", "^", "tab:red"),
    "tree, m2cgen": ("none", "<", "tab:brown"),
    "forest, m2cgen": ("none", ">", "tab:pink"),
    "logistic, int8": ("none", "s", "tab:green"),
}
M0PLUS = TARGETS[0]
Point = dict[str, Any]  # flash, and `bare`: the same without what turns a row into bits


def tables(folder: Path | None) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Name, columns and labels."""
    for path in sorted(folder.glob("*.csv")) if folder else ():
        table = read_table(path)
        columns = {str(name): np.asarray(table[name]) for name in table.columns}
        labels = columns.pop("class").astype(str)
        yield path.stem, pd.DataFrame({k: _numbers(v) for k, v in columns.items()}), labels
    for name in ("iris", "wine", "digits"):
        found: Any = getattr(datasets, f"load_{name}")()
        yield name, _frame(found.data), found.target.astype(str)
    images = mnist(coding="binary")
    kept = np.random.default_rng(0).permutation(len(images.inputs))[:10_000]
    yield "mnist", _frame(images.inputs.numpy()[kept]), images.labels.numpy()[kept].astype(str)


def _frame(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({f"x{i}": column for i, column in enumerate(values.T)})


def _numbers(values: np.ndarray) -> np.ndarray:
    try:
        return values.astype(np.float64)
    except ValueError:
        return values.astype(object)


def split_of(labels: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on, two of three, and rows held out; every class is among the first."""
    order = np.random.default_rng(split).permutation(len(labels))
    cut = 2 * len(labels) // 3
    first = {label: place for place, label in reversed(list(enumerate(labels[order])))}
    early = sorted(first.values())
    order = np.concatenate([order[early], np.delete(order, early)])
    return order[:cut], order[cut:]


def committees(
    table: pd.DataFrame, labels: np.ndarray, split: int, thresholds: int, sizes: tuple[int, ...]
) -> Iterator[tuple[int, Model, float]]:
    """Members a net, the compressed model, and its accuracy on rows held out."""
    rows, held = split_of(labels, split)
    train, test = table.iloc[rows], table.iloc[held]
    encoder = TableEncoder.fit(train, thresholds=thresholds)
    bits = encoder.transform(train)
    net = BinaryNetClassifier((HIDDEN,), predictor="posterior", random_state=split)
    model = net.fit(bits, labels[rows]).model_
    for members in sizes:
        each = (model.program.num_inputs + 1) * model.networks.shape[1]
        small = replace(compress(model, bits, bits=members * each), encoder=encoder)
        right = small.labels.decode(small.answers(test).numbers) == labels[held]
        yield members, small, float(np.mean(right))


def ours(table: pd.DataFrame, labels: np.ndarray, split: int) -> Iterator[Point]:
    """Committees of growing size, encoder included."""
    plain = all(
        set(np.unique(column)) <= {0, 1} for _, column in table.items() if _is_number(column)
    )
    for thresholds in (1,) if plain else THRESHOLDS:
        for members, model, right in committees(table, labels, split, thresholds, MEMBERS):
            header = c_header(model, "tiny", sample_rows(model.encoder, GOLDEN))
            yield point(OURS, f"{members} members, {thresholds} cuts", right, header) | {
                "model": model_bytes(model)
            }


def _is_number(column: pd.Series) -> bool:
    return column.dtype != object


def model_bytes(model: Model) -> int:
    """Bytes of bits and votes: a model without its encoder and its code."""
    return -(-model.networks.numel() // 8) + model.votes.numel()


def point(method: str, size: str, accuracy: float, header: str) -> Point:
    """What a header measures."""
    bare = "predict_bits" if method == OURS else "predict"
    found = cost(header, "tiny", M0PLUS, tuple({"predict", bare}))
    if found.agree is False:
        raise RuntimeError(f"{method} of {size} differs from Python on the device")
    return {
        "method": method,
        "size": size,
        "accuracy": accuracy,
        "flash": found.sizes["predict"].flash,
        "bare": found.sizes[bare].flash,
        "instructions": found.work,
    }


def rivals(table: pd.DataFrame, labels: np.ndarray, split: int) -> Iterator[Point]:
    """Trees, forests and logistic regression; none where what exports them is not installed."""
    try:
        for method, size, right, header in exported(Split(table, labels, *split_of(labels, split))):
            yield point(method, size, right, header)
    except ModuleNotFoundError as absent:
        print(f"no rivals: {absent.name} is not installed; install the extra `footprint`")


def measure(options: argparse.Namespace, found: dict[str, Any]) -> None:
    """All tables, split by split, until the time is over."""
    begun = time.perf_counter()
    only = set(filter(None, options.only.split(",")))
    for split in range(options.splits):
        for name, table, labels in tables(options.folder):
            done = found["splits"].setdefault(name, {})
            if str(split) in done or (only and name not in only) or (name == "mnist" and split):
                continue
            if time.perf_counter() - begun > options.seconds:
                return
            started = time.perf_counter()
            done[str(split)] = [*ours(table, labels, split), *rivals(table, labels, split)]
            options.json.write_text(json.dumps(found, indent=1))
            print(f"{name} {split}: {time.perf_counter() - started:.0f} s", flush=True)


def published(options: argparse.Namespace, found: dict[str, Any]) -> None:
    """Iris and wine over many splits: accuracy and bytes of model of each size."""
    for name in ("iris", "wine"):
        data: Any = getattr(datasets, f"load_{name}")()
        table, labels = _frame(data.data), data.target.astype(str)
        kept = found["published"].setdefault(name, [])
        for split in range(len(kept), options.published):
            drawn = committees(table, labels, split, THRESHOLDS[1], MEMBERS)
            kept.append([[members, right, model_bytes(small)] for members, small, right in drawn])
            options.json.write_text(json.dumps(found, indent=1))


def averaged(splits: dict[str, list[Point]]) -> pd.DataFrame:
    """The points of a table, means over its splits."""
    everything = pd.DataFrame([one for split in splits.values() for one in split])
    return everything.groupby(["method", "size"], sort=False).mean().reset_index()


def compared(points: pd.DataFrame) -> dict[str, Any]:
    """Flash and instructions at the highest accuracy that both sides reach."""
    mine, theirs = points[points.method == OURS], points[points.method != OURS]
    level = min(mine.accuracy.max(), theirs.accuracy.max())
    small = mine[mine.accuracy >= level].sort_values("flash").iloc[0]
    rival = theirs[theirs.accuracy >= level].sort_values("flash").iloc[0]
    forests = theirs[theirs.method.str.startswith("forest") & (theirs.accuracy >= small.accuracy)]
    return {
        "ours": small,
        "rival": rival,
        "ratio": small.flash / rival.flash,
        "bare": mine[mine.accuracy >= level].bare.min() / rival.flash,
        "forest": forests.instructions.min() if len(forests) else None,
        "best": mine.accuracy.max(),
        "best_rival": theirs.accuracy.max(),
    }


def drawn(found: dict[str, pd.DataFrame], path: Path) -> None:
    """A panel for each table."""
    columns = 4
    rows = -(-len(found) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3 * columns, 2.3 * rows), squeeze=False)
    for axis in axes.ravel()[len(found) :]:
        axis.axis("off")
    for axis, (name, points) in zip(axes.ravel(), found.items(), strict=False):
        for method, (line, marker, colour) in STYLE.items():
            own = points[points.method == method].sort_values("flash")
            if method == OURS:  # the best so far, so that the line never falls
                axis.plot(own.flash, own.accuracy, marker, color=colour, ms=3, alpha=0.4)
                own = own[own.accuracy >= own.accuracy.cummax()]
            style = {"linestyle": line, "marker": marker, "color": colour, "ms": 4}
            axis.plot(own.flash, own.accuracy, label=method, **style)
        if name in PUBLISHED:
            accuracy, size = PUBLISHED[name]
            axis.plot(size * 1024, accuracy, "*", color="k", ms=8, label="BTHOWeN, model alone")
        axis.set(xscale="log", title=name.replace("_", " "))
        axis.grid(alpha=0.3)
    shown = dict(zip(*reversed(axes[-1][0].get_legend_handles_labels()), strict=True))
    for axis in axes.ravel():
        shown |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(shown.values(), shown.keys(), loc="lower center", ncols=4, frameon=False)
    for axis in axes[-1]:
        axis.set_xlabel("bytes of flash, Cortex-M0+")
    figure.supylabel("accuracy on rows held out")
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, dpi=110)


def page(found: dict[str, pd.DataFrame], many: dict[str, list[Any]]) -> str:
    """The measured part of the page."""
    lines = [
        "| table | accuracy of both | vitrail, bytes | smallest rival, bytes | ratio "
        "| without encoder | instructions | of a forest as good "
        "| best of vitrail | best of rivals |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    ratios = []
    for name, points in found.items():
        if set(points.method) == {OURS}:
            continue  # no rivals were installed
        one = compared(points)
        small, rival = one["ours"], one["rival"]
        ratios.append((one["ratio"], one["bare"]))
        level = min(one["best"], one["best_rival"])
        forest = "none is" if one["forest"] is None else f"{one['forest']:,.0f}"
        lines.append(
            f"| {name} | {level:.3f} | {small.flash:,.0f} | {rival.flash:,.0f} ({rival.method}) "
            f"| {one['ratio']:.2f} | {one['bare']:.2f} | {small.instructions:,.0f} | {forest} "
            f"| {one['best']:.3f} | {one['best_rival']:.3f} |"
        )
    median, bare = np.median(ratios, axis=0) if ratios else (np.nan, np.nan)
    lines += ["", f"The median of the ratios is {median:.2f}, without our encoder {bare:.2f}."]
    if many:
        lines += [
            "",
            "| | splits | members | accuracy | standard error | bytes of model | BTHOWeN |",
        ]
        lines += ["|---|---|---|---|---|---|---|"]
    for name, splits in many.items():
        values = np.array(splits)  # (splits, sizes, 3)
        accuracy, size = PUBLISHED[name]
        for members, right, model in values.mean(0):
            error = values[:, list(MEMBERS).index(int(members)), 1].std(ddof=1) / len(splits) ** 0.5
            lines.append(
                f"| {name} | {len(splits)} | {members:.0f} | {right:.4f} | {error:.4f} "
                f"| {model:.0f} | {accuracy:.3f} in {size * 1024:.0f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the page where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1000)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path, default=Path("footprint.json"))
    parser.add_argument("--docs", type=Path, help="write footprint.md and its picture there")
    parser.add_argument("--published", type=int, default=0)
    options = parser.parse_args()
    found: dict[str, Any] = {"splits": {}, "published": {}}
    if options.json.exists():
        found = json.loads(options.json.read_text())
    if options.docs is None:
        if not M0PLUS.installed:
            print(f"nothing to measure: {M0PLUS.compiler} is not installed")
            return
        published(options, found)
        measure(options, found)
    means = {name: averaged(splits) for name, splits in found["splits"].items() if splits}
    print(text := page(means, found["published"]))
    if options.docs is not None:
        drawn(means, options.docs / "images" / "footprint.png")
        path = options.docs / "footprint.md"
        before, _, rest = path.read_text().partition(f"{BEGIN}\n")
        path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}")


BEGIN, END = "<!-- measured by benchmarks/footprint.py -->", "<!-- end -->"

if __name__ == "__main__":
    main()
