"""What was trained, measured: exported, compiled for a Cortex-M0+ and run by an emulator."""

from __future__ import annotations

import pickle
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from footprints.learners import OURS, Trained
from footprints.rows import Features, Rows, read, split_of
from vitrail.export.c import c_header
from vitrail.export.devices import TARGETS, cost
from vitrail.export.formats import golden_rows
from vitrail.export.golden import GOLDEN
from vitrail.lab.rivals import headers
from vitrail.lab.rivals.boosted import Boosted

M0PLUS = TARGETS[0]
MANY = 99  # more cuts than are ever named
Point = dict[str, Any]  # method, size, accuracy, flash, `bare` without the encoder, instructions


def gather(
    files: Sequence[Path], found: dict[str, Any], folder: Path | None, keep: Callable[[], None]
) -> None:
    """Adds to `found` the points of each table, and published ones; what is there stays."""
    entries: dict[tuple[str, str], dict[int, list[Any]]] = {}
    for path in files:
        with zipfile.ZipFile(path) as file:
            for name in file.namelist():
                kind, table, split, _ = name.split("/")
                known = entries.setdefault((kind, table), {}).setdefault(int(split), [])
                known += pickle.loads(file.read(name))
    for (kind, table), by_split in entries.items():
        if 0 not in by_split:
            raise SystemExit(f"the first split of {table} is in none of the files; name that too")
        splits, begun = [by_split[split] for split in sorted(by_split)], time.perf_counter()
        if kind == "published":
            found.setdefault(kind, {})[table] = splits
            keep()
            continue
        labels = read(table, folder).labels
        held = len(split_of(labels, 0)[1])
        found.setdefault("answers", {})[table] = min(len(labels), held * len(splits))
        known = found.setdefault(kind, {}).setdefault(table, [])
        for point in _points(table, splits, folder, known[:]):
            known.append(point)
            keep()
        print(f"{table}: {time.perf_counter() - begun:.0f} s", flush=True)


def _points(
    table: str, splits: list[list[Trained]], folder: Path | None, known: list[Point]
) -> Iterator[Point]:
    """Sizes of the first split's models with accuracies of all. Those that are known keep their
    bytes, and have their accuracy anew."""
    right: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for split in splits:
        for one in split:
            votes = one.accuracy if one.by_votes is None else one.by_votes
            right.setdefault((one.method, one.size), []).append((one.accuracy, votes))
    rows = read(table, folder)
    seen, held = (rows.taken(part) for part in split_of(rows.labels, 0))
    means = {key: np.mean(values, axis=0) for key, values in right.items()}

    def accuracy(one: Trained, method: str) -> float:
        soft, hard = means[one.method, one.size]
        if one.method == "boosting":
            soft += _rounded(one, seen, held) - one.accuracy
        return float(hard if method == "forest, emlearn" else soft)

    for one in splits[0]:
        for point in known:
            if point["size"] == one.size and point["method"].startswith(one.method):
                point["accuracy"] = accuracy(one, point["method"])
    for one in _worth_measuring(splits[0], {key: float(max(two)) for key, two in means.items()}):
        if any(p["size"] == one.size and p["method"].startswith(one.method) for p in known):
            continue
        for method, header in _headers(one, seen):
            found = {"size": one.size, "accuracy": accuracy(one, method)}
            yield {**found, **_measured(method, header)}


def _rounded(one: Trained, seen: Rows, held: Rows) -> float:
    """The accuracy of boosted trees whose leaves are whole numbers, in the first split."""
    features = Features.fit(seen.table)
    said = Boosted(one.learner, features).predict(features.matrix(held.table))
    return float(np.mean(one.learner.classes_[said] == held.labels))


def _worth_measuring(
    trained: list[Trained], accuracy: dict[tuple[str, str], float]
) -> list[Trained]:
    """Those that are more accurate than all of their kind that are smaller in every number."""
    kept = []
    for place, one in enumerate(trained):
        right, (kind, own) = accuracy[one.method, one.size], _kind_and_size(one)
        beaten = any(
            _kind_and_size(other)[0] == kind
            and all(a <= b for a, b in zip(_kind_and_size(other)[1], own, strict=True))
            and (-accuracy[other.method, other.size], number) < (-right, place)
            for number, other in enumerate(trained)
            if other is not one
        )
        kept += [one] * (not beaten)
    return kept


def _kind_and_size(one: Trained) -> tuple[list[str], list[int]]:
    """What something is and how large, by its name; the strength of a penalty takes no space."""
    words = one.size.replace("usual", str(MANY)).split(", C=")[0].split()
    numbers = [int(word) for word in words if word.isdigit()]
    return [one.method, *(word for word in words if not word.isdigit())], numbers


def _headers(one: Trained, seen: Rows) -> Iterator[tuple[str, str]]:
    rows = seen.taken(np.arange(GOLDEN), one.columns).table
    if one.method == OURS:
        yield OURS, c_header(one.learner, "tiny", golden_rows(one.learner, rows))
        return
    yield from headers(one.learner, Features.fit(seen.table), rows)


def _measured(method: str, header: str) -> Point:
    bare = "predict_bits" if method == OURS else "predict"
    found = cost(header, "tiny", M0PLUS, tuple({"predict", bare}))
    if found.agree is False:
        raise RuntimeError(f"{method} differs from Python on the device")
    return {
        "method": method,
        "flash": found.sizes["predict"].flash,
        "bare": found.sizes[bare].flash,
        "instructions": found.work,
    }
