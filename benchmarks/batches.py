"""What `partial_fit` does to a model: accuracy on held-out rows of all classes, batch after batch.

    python benchmarks/batches.py FOLDER [--only monks3] [--batches 6] [--jobs 2] [--json F]

FOLDER holds CSV files whose last column `class` is the label. A model is fitted to 60 % of the
rows, 20 % are held out, and the rest comes in batches of 1, 5 and 50 rows, mixed or of one class
each. The largest fall is the most that one batch took from the accuracy.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from posterior import tables

from vitrail import BinaryNetClassifier
from vitrail.learning.folds import split_rows

SIZES, KINDS = (1, 5, 50), ("mixed", "one class")
TABLES = "monks3,tic_tac_toe,german_credit,breast_cancer_wisconsin,phoneme,ecoli"


def batches_of(labels: np.ndarray, size: int, kind: str, seed: int) -> list[np.ndarray]:
    """Row numbers of each batch: at random, or class after class."""
    order = np.random.default_rng(seed).permutation(len(labels))
    groups = [order] if kind == "mixed" else [order[labels[order] == c] for c in np.unique(labels)]
    cut = [[group[i : i + size] for i in range(0, len(group), size)] for group in groups]
    longest = max(len(group) for group in cut)
    return [group[i] for i in range(longest) for group in cut if i < len(group)]


def falls(
    columns: pd.DataFrame, labels: np.ndarray, size: int, kind: str, count: int, seed: int
) -> list[float]:
    """Accuracy on held-out rows after the first fit and after each batch."""
    warnings.simplefilter("ignore")
    rows, held = split_rows(labels, 0.2, seed)
    later, first = split_rows(labels[rows], 0.75, seed + 1)
    net = BinaryNetClassifier(random_state=seed)
    net.partial_fit(columns.iloc[rows[first]], labels[rows[first]], classes=np.unique(labels))
    found = [net.score(columns.iloc[held], labels[held])]
    for batch in batches_of(labels[rows[later]], size, kind, seed)[:count]:
        mine = rows[later[batch]]
        net.partial_fit(columns.iloc[mine], labels[mine])
        found.append(net.score(columns.iloc[held], labels[held]))
    return found


def main() -> None:
    """Measure, then print the largest fall of each table, size and kind of batch."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=TABLES)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    wanted = options.only.split(",")
    known = {name: rest for name, *rest in tables(options.folder) if name in wanted}
    cases = list(product(known, SIZES, KINDS))
    found = Parallel(options.jobs)(
        delayed(falls)(*known[name], size, kind, options.batches, options.seed)
        for name, size, kind in cases
    )
    print("table, rows per batch, kind: first, last, largest fall")
    for (name, size, kind), accuracy in zip(cases, found, strict=True):
        fall = max(0.0, -min(np.diff(accuracy)))
        print(f"{name}, {size}, {kind}: {accuracy[0]:.3f}, {accuracy[-1]:.3f}, {fall:.3f}")
    if options.json:
        pairs = zip(cases, found, strict=True)
        options.json.write_text(json.dumps({"/".join(map(str, case)): one for case, one in pairs}))


if __name__ == "__main__":
    main()
