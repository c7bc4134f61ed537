"""What message passing and local search each add, with seven hidden units.

    python benchmarks/steps.py FOLDER [--only kr_vs_kp,tic_tac_toe] [--splits 10]

FOLDER holds CSV files whose last column `class` is the label; every split holds out 20%.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from vitrail import BinaryNetClassifier
from vitrail.lab.datasets import labelled_table
from vitrail.learning.folds import split_rows

WAYS = {
    "straight-through, 40 epochs": {"solver": "ste"},
    "belief propagation, 5 epochs": {"solver": "sbp"},
    "belief propagation, 15 epochs": {"solver": "sbp", "epochs": 15},
    "straight-through, then local search": {"solver": "ste", "polish": 20},
    "belief propagation, 1 epoch, then local search": {
        "solver": "messages",
        "epochs": 1,
        "polish": 20,
    },
    "belief propagation, 5 epochs, then local search": {"solver": "messages", "polish": 20},
}


def main() -> None:
    """Measure every way on every table and print one row a way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="kr_vs_kp,tic_tac_toe")
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    names = options.only.split(",")
    print("| training | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for way, settings in WAYS.items():
        cells = []
        for name in names:
            features, labels = labelled_table(options.folder / f"{name}.csv")
            scores = []
            for split in range(options.splits):
                rows, held = split_rows(labels, 0.2, split)
                net = BinaryNetClassifier(
                    hidden=(7,), predictor="best", random_state=split, **settings
                )
                net.fit(features.take(rows), labels[rows])
                scores.append(np.mean(net.predict(features.take(held)) == labels[held]))
            cells.append(f"{np.mean(scores):.3f}")
        print(f"| {way} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
