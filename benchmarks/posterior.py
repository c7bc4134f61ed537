"""The average over the posterior beside a forest, boosting and logistic regression.

    python benchmarks/posterior.py [FOLDER] [--splits 10] [--first 0] [--skip wine,spect]
                                   [--only iris] [--hidden 15] [--json out.json]

FOLDER holds CSV files whose last column `class` is the label; scikit-learn's four tables (iris,
wine, breast cancer, digits) are added. Every split holds out a fifth of the rows, the same rows
for all. Rivals have scikit-learn's defaults, the forest 200 trees; they read words as one-hot
columns, and logistic regression reads standardised numbers. Log-loss is clipped at 1e-3 for all.
Rivals are kept in the JSON file, so that a second run with the same file measures vitrail alone.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from vitrail import BinaryNetClassifier
from vitrail.cli.fit import split_rows
from vitrail.data.tables import read_table

CLIP = 1e-3
OURS = "vitrail"
RIVALS = ("logistic", "forest", "boosting")
KNOWN = {
    "iris": datasets.load_iris,
    "sklearn_wine": datasets.load_wine,
    "breast_cancer_diagnostic": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}


def tables(folder: Path | None) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Name, columns and labels of every table: numbers as float64, words as they are."""
    for path in sorted(folder.glob("*.csv")) if folder else ():
        table = read_table(path)
        columns = {str(name): np.asarray(table[name]) for name in table.columns}
        labels = columns.pop("class").astype(str)
        numbers = {name: _numbers(values) for name, values in columns.items()}
        yield path.stem, pd.DataFrame(numbers), labels
    for name, load in KNOWN.items():
        found: Any = load()
        columns = {f"x{i}": found.data[:, i] for i in range(found.data.shape[1])}
        yield name, pd.DataFrame(columns), found.target.astype(str)


def _numbers(values: np.ndarray) -> np.ndarray:
    """Float64 where every cell is a number or missing, words otherwise."""
    try:
        return np.array([np.nan if cell in ("", "?", None) else float(cell) for cell in values])
    except ValueError:
        return values.astype(str)


def rival(name: str, seed: int) -> Any:
    """A classifier of scikit-learn on a matrix of numbers."""
    if name == "logistic":
        return make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=2000))
    if name == "forest":
        return RandomForestClassifier(200, random_state=seed)
    return HistGradientBoostingClassifier(random_state=seed)


def matrices(seen: pd.DataFrame, unseen: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out rows as numbers; the categories are those of the training rows."""
    words = make_column_selector(dtype_exclude="number")
    coder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    maker = make_column_transformer((coder, words), remainder="passthrough")
    return maker.fit_transform(seen), maker.transform(unseen)


def judged(
    model: Any, train: Any, labels: np.ndarray, test: Any, truth: np.ndarray
) -> dict[str, float]:
    """Accuracy and clipped log-loss on rows held out, and the seconds of the fit."""
    begun = time.perf_counter()
    model.fit(train, labels)
    seconds = time.perf_counter() - begun
    chances = np.asarray(model.predict_proba(test))
    clipped = np.clip(chances, CLIP, 1 - CLIP)
    clipped /= clipped.sum(1, keepdims=True)
    place = {label: i for i, label in enumerate(model.classes_)}
    right = np.array([place.get(label, -1) for label in truth])
    own = np.where(right >= 0, clipped[np.arange(len(truth)), right], CLIP)
    return {
        "accuracy": float((chances.argmax(1) == right).mean()),
        "log_loss": float(-np.log(own).mean()),
        "seconds": seconds,
    }


def main() -> None:
    """Measure every table and print a row each, then means and paired gaps."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--skip", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--hidden", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kept = options.json is not None and options.json.exists()
    found: dict[str, dict[str, float]] = json.loads(options.json.read_text()) if kept else {}
    print("| table | " + " | ".join((OURS, *RIVALS)) + " | seconds |")
    print("|---" * (len(RIVALS) + 3) + "|")
    names = []
    seeds = range(options.first, options.first + options.splits)
    for name, columns, labels in tables(options.folder):
        if name in options.skip.split(",") or (
            options.only and name not in options.only.split(",")
        ):
            continue
        names.append(name)
        for seed in seeds:
            rows, held = split_rows(labels, 0.2, seed)
            seen, unseen = columns.iloc[rows], columns.iloc[held]
            missing = [r for r in RIVALS if f"{name}/{seed}/{r}" not in found]
            if missing:
                train, test = matrices(seen, unseen)
                for who in missing:
                    model = rival(who, seed)
                    result = judged(model, train, labels[rows], test, labels[held])
                    found[f"{name}/{seed}/{who}"] = result
            net = BinaryNetClassifier(
                hidden=(options.hidden,), predictor="posterior", random_state=seed
            )
            result = judged(net, seen, labels[rows], unseen, labels[held])
            found[f"{name}/{seed}/{OURS}"] = result
            if options.json is not None:
                options.json.write_text(json.dumps(found, indent=1))
        print(row(name, [name], seeds, found), flush=True)
    if names:
        print(row("**mean**", names, seeds, found))
        print(gaps(names, seeds, found))


def row(title: str, names: list[str], seeds: range, found: dict[str, dict[str, float]]) -> str:
    """Accuracy / log-loss of everyone, means over tables and splits, and our seconds."""

    def mean(who: str, what: str) -> float:
        return float(np.mean([found[f"{n}/{s}/{who}"][what] for n in names for s in seeds]))

    cells = [f"{mean(w, 'accuracy'):.3f} / {mean(w, 'log_loss'):.3f}" for w in (OURS, *RIVALS)]
    return f"| {title} | " + " | ".join([*cells, f"{mean(OURS, 'seconds'):.1f}"]) + " |"


def gaps(names: list[str], seeds: range, found: dict[str, dict[str, float]]) -> str:
    """Mean gap in accuracy to each rival, its standard error over tables, and the largest share.

    One table on which everyone else fails can carry a mean; so it is named and left out once.
    """
    lines = []
    for who in RIVALS:
        gap = np.array(
            [
                np.mean(
                    [
                        found[f"{n}/{s}/{OURS}"]["accuracy"] - found[f"{n}/{s}/{who}"]["accuracy"]
                        for s in seeds
                    ]
                )
                for n in names
            ]
        )
        line = f"against {who}: {gap.mean():+.4f}"
        if len(gap) > 1:
            top = int(gap.argmax())
            rest = np.delete(gap, top).mean()
            error = gap.std(ddof=1) / np.sqrt(len(gap))
            line += f", standard error over tables {error:.4f}; without {names[top]} {rest:+.4f}"
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    main()
