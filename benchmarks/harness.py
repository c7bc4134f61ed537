"""Shared by the benchmarks: data, stored results, parts of pages, timers."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

from vitrail.datasets.idx import read_idx
from vitrail.tables.table import Table, read_table

LABEL = "class"  # the column of labels in every table of a benchmark
KNOWN = {
    "iris": datasets.load_iris,
    "sklearn_wine": datasets.load_wine,
    "breast_cancer_diagnostic": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the docstring of a script."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def tables(
    folder: Path | None, only: str = "", skip: str = ""
) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Name, columns and labels of every table: numbers as float64, words as they are.

    CSV files of the folder, whose column `class` is the label, and scikit-learn's four tables.
    only, skip: names with commas.
    """

    def chosen(name: str) -> bool:
        return name not in skip.split(",") and (not only or name in only.split(","))

    for path in sorted(folder.glob("*.csv")) if folder else ():
        if chosen(path.stem):
            table, labels = labelled_table(path)
            columns = {str(name): _numbers(np.asarray(table[name])) for name in table.columns}
            yield path.stem, pd.DataFrame(columns), labels.astype(str)
    for name, load in KNOWN.items():
        if chosen(name):
            found: Any = load()
            columns = {f"x{i}": found.data[:, i] for i in range(found.data.shape[1])}
            yield name, pd.DataFrame(columns), found.target.astype(str)


def labelled_table(path: Path) -> tuple[Table, np.ndarray]:
    """The feature columns of a file and its labels, the column `class`."""
    table = read_table(path)
    return table.without(LABEL), table[LABEL]


def mnist_files(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (rows, 28, 28) uint8 and labels (rows,) of the idx files of `train` or `t10k`."""
    images, labels = (
        read_idx(next(folder.glob(f"{part}-{kind}-idx{axes}-ubyte*")), axes)
        for kind, axes in (("images", 3), ("labels", 1))
    )
    return images, labels


def _numbers(values: np.ndarray) -> np.ndarray:
    """Float64 where every cell is a number or missing, words otherwise."""
    try:
        return np.array([np.nan if cell in ("", "?", None) else float(cell) for cell in values])
    except ValueError:
        return values.astype(str)


def write_json(path: Path | None, found: Any) -> None:
    """Store the results so far, where a file is given."""
    if path is not None:
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def save_record(
    name: str, command: str, columns: dict[str, str], rows: list[dict[str, Any]]
) -> None:
    """Store a record as docs/records/NAME.json, which scripts/build_records.py shows.

    columns: the headings of the table, each with a format of the fields of a row.
    """
    record = {"command": command, "columns": columns, "rows": rows}
    write_json(Path(__file__).parent.parent / "docs" / "records" / f"{name}.json", record)


def write_between(path: Path, begin: str, end: str, text: str) -> None:
    """Replace the text between the two marks of a page."""
    before, has_begin, rest = path.read_text(encoding="utf-8").partition(begin)
    _, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"{path} needs the marks {begin!r} and {end!r} around its measured part")
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


@dataclass
class Timer:
    """Wall-clock and processor seconds of a block."""

    clock: float = 0.0
    processors: float = 0.0


@contextmanager
def timer() -> Iterator[Timer]:
    """Time a block."""
    found = Timer()
    clock, processors = time.perf_counter(), time.process_time()
    yield found
    found.clock = time.perf_counter() - clock
    found.processors = time.process_time() - processors
