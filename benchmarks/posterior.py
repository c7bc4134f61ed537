"""The average over the posterior beside forests, boosting, logistic regression, straight-through.

    python benchmarks/posterior.py FOLDER [--splits 10] [--first 0] [--only iris] [--skip wine]
                                   [--who vitrail,forest] [--minutes 20] [--json out.json]
                                   [--page docs/tables.md]

FOLDER holds CSV files whose last column `class` is the label; scikit-learn's four tables (iris,
wine, breast cancer, digits) are added. Every split holds out a fifth of the rows, the same rows
for all. Rivals have scikit-learn's defaults, the forest 200 trees; they read words as one-hot
columns, and logistic regression reads standardised numbers. Straight-through chooses its learning
rate and width on a fifth of its training rows. Log-loss is clipped at 1e-3 for all.

`committee` and `distilled` are what `compress` makes of vitrail's model in 2,000 bits for each pair
of classes (or twice the best network's, where that is more) and in 1,000. Everything found is kept
in the JSON file: a run goes on where the last one ended, split by split. --page writes the tables
between the marks of a page.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import parser_of, tables, write_between, write_json
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from vitrail import BinaryNetClassifier, compress
from vitrail.baselines import straight_through
from vitrail.learning.examples import split_rows
from vitrail.scores import calibration_gaps

CLIP = 1e-3
BINS = 15
HELD = 0.2
OURS, BEST, STE = "vitrail", "best", "straight-through"
SMALL = {"committee": 2000, "distilled": 1000}  # bits for each pair of classes
RIVALS = ("logistic", "forest", "extra trees", "boosting", "catboost", "ebm")
USUAL = ("logistic", "forest", "boosting")  # the others with --who; two need the extra `rivals`
RATES, WIDTHS = (0.003, 0.01, 0.03), ((), (7,), (31,))
UNSEEN = ("breast_cancer", "german_credit", "monks3", "new_thyroid", "spect", "sklearn_wine")
MARKS = ("<!-- benchmarks/posterior.py -->", "<!-- end -->")
Found = dict[str, dict[str, Any]]


def rival(name: str, seed: int) -> Any:
    """A classifier with its defaults, on a matrix of numbers."""
    if name == "logistic":
        return make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=2000))
    if name == "forest":
        return RandomForestClassifier(200, random_state=seed)
    if name == "extra trees":
        return ExtraTreesClassifier(200, random_state=seed)
    if name == "boosting":
        return HistGradientBoostingClassifier(random_state=seed)
    if name == "catboost":
        from catboost import CatBoostClassifier

        return CatBoostClassifier(random_seed=seed, verbose=0, allow_writing_files=False)
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=seed)


def matrices(seen: pd.DataFrame, unseen: pd.DataFrame) -> tuple[Any, Any]:
    """Training and held-out rows as numbers; the categories are those of the training rows."""
    words = make_column_selector(dtype_exclude="number")
    coder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    maker = make_column_transformer((coder, words), remainder="passthrough")
    return maker.fit_transform(seen), maker.transform(unseen)


class Searched:
    """Straight-through whose learning rate and width do best on a fifth of the training rows."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, rows: pd.DataFrame, labels: np.ndarray) -> None:
        seen, held = split_rows(labels, HELD, self.seed + 1000)
        best = (-1.0, RATES[0], WIDTHS[0])
        for rate in RATES:
            for width in WIDTHS:
                net = self._net(rate, width).fit(rows.iloc[seen], labels[seen])
                best = max(best, (net.score(rows.iloc[held], labels[held]), rate, width))
        self.net = self._net(*best[1:]).fit(rows, labels)
        self.classes_ = self.net.classes_

    def predict_proba(self, rows: pd.DataFrame) -> np.ndarray:
        return self.net.predict_proba(rows)

    def _net(self, rate: float, width: tuple[int, ...]) -> BinaryNetClassifier:
        return BinaryNetClassifier(
            hidden=width, solver=straight_through(lr=rate, batch=32), epochs=40, polish=0,
            random_state=self.seed,
        )  # fmt: skip


def judged(probabilities: np.ndarray, classes: Any, truth: np.ndarray) -> dict[str, Any]:
    """Accuracy, clipped log-loss, and what the calibration error needs, on rows held out."""
    clipped = np.clip(probabilities, CLIP, 1 - CLIP)
    clipped /= clipped.sum(1, keepdims=True)
    place = {label: i for i, label in enumerate(classes)}
    right = np.array([place.get(label, -1) for label in truth])
    own = np.where(right >= 0, clipped[np.arange(len(truth)), right], CLIP)
    hits, confidence = probabilities.argmax(1) == right, probabilities.max(1)
    return {
        "accuracy": float(hits.mean()),
        "log_loss": float(-np.log(own).mean()),
        "gaps": calibration_gaps(confidence, hits, BINS).round(6).tolist(),
        "rows": len(truth),
    }


def measured(
    who: str, seed: int, seen: pd.DataFrame, labels: np.ndarray, unseen: pd.DataFrame,
    truth: np.ndarray,
) -> dict[str, Any]:  # fmt: skip
    """One classifier on one split."""
    train, test = matrices(seen, unseen) if who in RIVALS else (seen, unseen)
    model: Any
    if who in RIVALS:
        model = rival(who, seed)
    elif who == STE:
        model = Searched(seed)
    else:
        model = BinaryNetClassifier(predictor="best" if who == BEST else "auto", random_state=seed)
    begun = time.perf_counter()
    model.fit(train, labels)
    seconds = time.perf_counter() - begun
    result = judged(np.asarray(model.predict_proba(test)), model.classes_, truth)
    if who in (OURS, BEST):
        result["bits"] = model.model_.networks.numel()
        result["mixing"] = model.model_.record.get("mixing")
    return {**result, "seconds": seconds, "model": model}


def run(options: argparse.Namespace, found: Found) -> None:
    """Measure what is not in `found` yet, until the time is up; split by split."""
    begun = time.monotonic()
    wanted = sorted(options.who.split(","), key=lambda who: who != BEST)  # its size is a measure
    loaded = list(tables(options.folder, options.only, options.skip))
    for seed in range(options.first, options.first + options.splits):
        for name, columns, labels in loaded:
            rows, held = split_rows(labels, HELD, seed)
            part = (columns.iloc[rows], labels[rows], columns.iloc[held], labels[held])
            at = f"{name}/{seed}"
            pairs = math.comb(len(np.unique(labels)), 2)
            small = [one for one in wanted if one in SMALL and f"{at}/{one}" not in found]
            for who in wanted:
                if who in SMALL or (f"{at}/{who}" in found and not (who == OURS and small)):
                    continue
                result = measured(who, seed, *part)
                model = result.pop("model")
                found[f"{at}/{who}"] = result
                for one in small if who == OURS else ():
                    start = time.perf_counter()
                    most = SMALL[one] * pairs
                    if one == "committee":
                        most = max(most, 2 * found.get(f"{at}/{BEST}", {}).get("bits", 0))
                    less = compress(model.model_, part[0], bits=most)
                    own = judged(less.probabilities(part[2]), model.classes_, part[3])
                    seconds = time.perf_counter() - start
                    found[f"{at}/{one}"] = {
                        **own, "bits": less.networks.numel(), "seconds": seconds
                    }  # fmt: skip
                write_json(options.json, found)
                if time.monotonic() - begun > 60 * options.minutes:
                    return
        print(f"split {seed} done, {time.monotonic() - begun:.0f} s", flush=True)


class Report:
    """Means over the splits that everyone has, and paired gaps."""

    def __init__(self, found: Found, who: list[str]) -> None:
        self.found = found
        self.who = [one for one in who if any(key.endswith(f"/{one}") for key in found)]

    def seeds(self, name: str, who: list[str]) -> list[int]:
        have = [
            {int(key.split("/")[1]) for key in self.found if key.startswith(f"{name}/")
             and key.split("/")[2] == one}
            for one in who
        ]  # fmt: skip
        return sorted(set.intersection(*have)) if have else []

    def mean(self, name: str, seeds: list[int], who: str, what: str) -> float:
        return float(np.mean([self.found[f"{name}/{seed}/{who}"][what] for seed in seeds]))

    def calibration(self, names: list[str], who: str, everyone: list[str]) -> float:
        parts = [
            self.found[f"{name}/{seed}/{who}"]
            for name in names for seed in self.seeds(name, everyone)
        ]  # fmt: skip
        gaps = np.sum([part["gaps"] for part in parts], 0)
        return float(np.abs(gaps).sum() / sum(part["rows"] for part in parts))

    def lines(self, names: list[str]) -> list[str]:
        """A markdown table: accuracy / log-loss of everyone on the splits they share."""
        names = [name for name in names if self.seeds(name, self.who)]
        head = f"| table | {' | '.join(self.who)} | splits | seconds |"
        lines = [head, "|---" * (len(self.who) + 3) + "|"]
        for name in names:
            seeds = self.seeds(name, self.who)
            cells = [
                f"{self.mean(name, seeds, one, 'accuracy'):.3f} / "
                f"{self.mean(name, seeds, one, 'log_loss'):.3f}"
                for one in self.who
            ]
            seconds = self.mean(name, seeds, self.who[0], "seconds")
            lines.append(f"| {name} | {' | '.join(cells)} | {len(seeds)} | {seconds:.1f} |")
        if len(names) > 1:
            both = [
                [np.mean([self.mean(name, self.seeds(name, self.who), one, what) for name in names])
                 for what in ("accuracy", "log_loss")] for one in self.who
            ]  # fmt: skip
            cells = [f"{accuracy:.3f} / {loss:.3f}" for accuracy, loss in both]
            lines.append(f"| **mean** | {' | '.join(cells)} | | |")
            errors = [f"{self.calibration(names, one, self.who):.3f}" for one in self.who]
            lines.append(f"| calibration error, rows pooled | {' | '.join(errors)} | | |")
        return lines

    def gaps(self, names: list[str]) -> list[str]:
        """Gap in accuracy to each rival, and the tables where it is far below zero.

        The standard error of a table's gap allows for overlapping training rows (Nadeau and
        Bengio): its variance over splits times 1/splits + held out/trained on.
        """
        lines, ours = [], self.who[0]
        for rival_ in self.who[1:]:
            gaps, bad = [], []
            for name in names:
                seeds = self.seeds(name, [ours, rival_])
                if not seeds:
                    continue
                gap = np.array([
                    self.found[f"{name}/{s}/{ours}"]["accuracy"]
                    - self.found[f"{name}/{s}/{rival_}"]["accuracy"] for s in seeds
                ])  # fmt: skip
                gaps.append(gap.mean())
                spread = gap.std(ddof=1) if len(gap) > 1 else math.inf
                error = spread * math.sqrt(1 / len(gap) + HELD / (1 - HELD))
                if gap.mean() < -0.01 and gap.mean() < -3 * error:
                    bad.append(name)
            if gaps:
                error = np.std(gaps, ddof=1) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
                text = f"- against {rival_}: {np.mean(gaps):+.4f} ± {error:.4f} over {len(gaps)}"
                lines.append(f"{text} tables; clearly below on: {', '.join(bad) or 'none'}")
        return lines

    def retention(self, names: list[str]) -> list[str]:
        """The part of the posterior's gain over the best network that small models keep."""
        lines = []
        for small in SMALL:
            kept = whole = 0.0
            for name in names:
                for seed in self.seeds(name, [OURS, BEST, small]):
                    at = f"{name}/{seed}"
                    base = self.found[f"{at}/{BEST}"]["accuracy"]
                    kept += self.found[f"{at}/{small}"]["accuracy"] - base
                    whole += self.found[f"{at}/{OURS}"]["accuracy"] - base
            if whole:
                text = f"- {small}, {SMALL[small]:,} bits per pair of classes: keeps"
                lines.append(f"{text} {kept / whole:.0%} of the gain over the best network")
        return lines


def main() -> None:
    """Measure, then print what was found."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--skip", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--who", default=",".join((OURS, *USUAL)))
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--json", type=Path, default=Path("posterior.json"))
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    found: Found = json.loads(options.json.read_text()) if options.json.exists() else {}
    run(options, found)
    names = sorted({key.split("/")[0] for key in found})
    parts = {
        "Tables that settings were tried on": [name for name in names if name not in UNSEEN],
        "Tables that nobody looked at before": [name for name in names if name in UNSEEN],
    }
    text: list[str] = []
    everyone = [OURS, *(one for one in RIVALS if one in options.who.split(","))]
    for title, chosen in parts.items():
        if not chosen:
            continue
        text += [f"### {title}", "", *Report(found, everyone).lines(chosen), ""]
        text += [*Report(found, [*everyone, STE]).gaps(chosen), ""]
        others = Report(found, [OURS, BEST, STE, *SMALL])
        if len(others.who) > 1:
            text += [*others.lines(chosen), "", *others.retention(chosen), ""]
    print("\n".join(text))
    if options.page is not None:
        write_between(options.page, *MARKS, "\n".join(text).rstrip())


if __name__ == "__main__":
    main()
