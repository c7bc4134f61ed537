"""The best network on a folder of tables, beside straight-through, logistic regression and a tree.

    python benchmarks/tables.py FOLDER [--splits 10] [--only kr_vs_kp,mushroom] [--json out.json]
    python benchmarks/tables.py FOLDER --steps [--splits 5] [--only kr_vs_kp,tic_tac_toe]

FOLDER holds CSV files whose last column `class` is the label. Every split holds out 20% of the
rows. Straight-through trains a net of the shape that vitrail chose on that split, on the same
bits; its learning rate is the one of 0.003, 0.01, 0.03 that does best on the test rows of the
first two splits. --steps shows what message passing and local search each add, with seven
hidden units.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from harness import labelled_table, parser_of, write_json
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from vitrail import BinaryNetClassifier, run
from vitrail.baselines import straight_through
from vitrail.learning.examples import Examples, graph_of, split_rows
from vitrail.scores import calibration_error
from vitrail.tables.table import Table

RATES = (0.003, 0.01, 0.03)
EPOCHS = 40


def one_split(
    table: Table, labels: np.ndarray, split: int, rates: tuple[float, ...], posterior: bool
) -> dict[str, float]:
    """Accuracies on the held-out rows of one split."""
    rows, held = split_rows(labels, 0.2, split)
    begun = time.perf_counter()
    net = BinaryNetClassifier(predictor="best", random_state=split)
    net.fit(table.take(rows), labels[rows])
    seconds = time.perf_counter() - begun
    model = net.model_
    train, test = model.inputs(table.take(rows)), model.inputs(table.take(held))
    train_y = torch.from_numpy(model.labels.encode(labels[rows]))
    test_y = torch.from_numpy(model.labels.encode(labels[held]))
    probabilities = model.probabilities(table.take(held))
    result = {
        "vitrail": float((probabilities.argmax(1) == test_y.numpy()).mean()),
        "seconds": seconds,
        "units": float(sum(model.program.hidden or ())),
        "bits": float(model.bits),
        "polished": float(net.plan_.get("polish", 0) > 0),
        "ece_best": calibration_error(
            probabilities.max(1), probabilities.argmax(1) == test_y.numpy()
        ),
        "majority": float((test_y == train_y.mode().values).double().mean()),
    }
    if posterior:
        average = BinaryNetClassifier(
            hidden=model.program.hidden or (), predictor="posterior", random_state=split
        ).fit(table.take(rows), labels[rows])
        probabilities = average.predict_proba(table.take(held))
        right = probabilities.argmax(1) == test_y.numpy()
        result["posterior"] = float(right.mean())
        result["ece_posterior"] = calibration_error(probabilities.max(1), right)
    ones = torch.ones(len(train_y), dtype=torch.float64)
    graph = graph_of(model.program, [Examples.distinct(train, train_y, ones)], 1.0, 1)
    unseen = graph_of(model.program, [Examples(test, test_y, *[ones[: len(test_y)]] * 2)], 1.0, 1)
    steps = EPOCHS * -(-graph.num_factors // 32)
    for rate in rates:
        found = run(
            straight_through(lr=rate, batch=32), graph, seed=split, max_steps=steps, score_every=8
        )
        result[f"ste {rate}"] = float(unseen.accuracy(found.best[None]))
    linear = LogisticRegression(max_iter=2000).fit(train.numpy(), train_y.numpy())
    result["logistic"] = float(linear.score(test.numpy(), test_y.numpy()))
    tree = DecisionTreeClassifier(max_depth=4, random_state=split)
    tree.fit(train.numpy(), train_y.numpy())
    result["tree"] = float(tree.score(test.numpy(), test_y.numpy()))
    return result


def measured(table: Table, labels: np.ndarray, splits: int, posterior: bool) -> dict[str, float]:
    """Means over the splits; the rate of straight-through is settled on the first two."""
    results = [one_split(table, labels, split, RATES, posterior) for split in range(min(2, splits))]
    best = max(RATES, key=lambda rate: sum(result[f"ste {rate}"] for result in results))
    results += [one_split(table, labels, split, (best,), posterior) for split in range(2, splits)]
    for result in results:
        result["ste"] = result[f"ste {best}"]
    mean = {name: float(np.mean([r[name] for r in results])) for name in results[-1]}
    gap = np.array([result["vitrail"] - result["ste"] for result in results])
    mean["gap_error"] = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else 0.0
    return mean


STEPS = {
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


def step_table(folder: Path, names: Sequence[str], splits: int) -> None:
    """Measure every way to train on every table and print one row per way."""
    print("| training | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for way, settings in STEPS.items():
        cells = []
        for name in names:
            features, labels = labelled_table(folder / f"{name}.csv")
            scores = []
            for split in range(splits):
                rows, held = split_rows(labels, 0.2, split)
                net = BinaryNetClassifier(
                    hidden=(7,), predictor="best", random_state=split, **settings
                )
                net.fit(features.take(rows), labels[rows])
                scores.append(np.mean(net.predict(features.take(held)) == labels[held]))
            cells.append(f"{np.mean(scores):.3f}")
        print(f"| {way} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Measure every table and print one row each, or the ablation."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--posterior", default="kr_vs_kp,mushroom", help="measured on these tables")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--steps", action="store_true", help="ablation of the training steps")
    options = parser.parse_args()
    if options.steps:
        names = options.only or "kr_vs_kp,tic_tac_toe"
        step_table(options.folder, names.split(","), options.splits)
        return
    columns = ("vitrail", "posterior", "ste", "logistic", "tree", "majority", "units", "bits")
    columns += ("polished", "ece_best", "ece_posterior", "seconds", "gap_error")
    print("| table | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    means = {}
    for path in sorted(options.folder.glob("*.csv")):
        if options.only and path.stem not in options.only.split(","):
            continue
        features, labels = labelled_table(path)
        posterior = path.stem in options.posterior.split(",")
        means[path.stem] = measured(features, labels, options.splits, posterior)
        print(row(path.stem, means[path.stem], columns), flush=True)
        write_json(options.json, means)
    overall = {
        name: float(np.mean([mean[name] for mean in means.values() if name in mean]))
        for name in columns
        if any(name in mean for mean in means.values())
    }
    print(row("**mean**", overall, columns))


def row(title: str, values: dict[str, float], columns: tuple[str, ...]) -> str:
    """A line of the table; what was not measured is left blank."""
    cells = (f"{values[name]:.3f}" if name in values else "" for name in columns)
    return f"| {title} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
