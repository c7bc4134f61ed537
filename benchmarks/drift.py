"""Streams whose rule changes: every row is predicted before it is learned, in one pass.

python benchmarks/drift.py --out drift.json                       # generated streams
python benchmarks/drift.py FOLDER --rivals --out drift.json       # CSV files with a column class
python benchmarks/drift.py FOLDER --only sea --rows 8000
python benchmarks/drift.py --rivals --out drift.json --plot docs/images/drift.png

The rivals are River's (the extra `rivals`): an adaptive random forest of ten trees, a Hoeffding
adaptive tree, logistic regression and naive Bayes. Seconds are of processors, encoding and
predicting among them; a log-loss does not look below a probability of 1e-4. Rows that are in FILE
already are not measured again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from harness import labelled_table, parser_of, write_json

from vitrail.learning import OnlineLearner
from vitrail.model.voting import ONE

LEAST = 1e-4  # probability below which a loss does not look
AFTER = 1000  # rows after a sudden drift
WINDOW = 500  # rows of an accuracy that is kept
MERGED = 3  # of these in a point of a curve
DRAWN = ("vitrail", "adaptive forest", "logistic regression")
FIRST = 200  # rows that set thresholds of columns
BLOCK = 100  # rows that are read at once; each is predicted and then learned by itself
GENERATED = 20_000  # rows
NOISE = 0.1  # share of labels that are turned, in generated streams


@dataclass(frozen=True)
class Stream:
    """Rows in the order of their arrival."""

    name: str
    inputs: np.ndarray  # (R, C) float64
    labels: np.ndarray  # (R,) int64
    drifts: tuple[int, ...] = ()  # rows at which the rule changes at once


class Learner(Protocol):
    """What predicts rows, each before it is learned."""

    def follow(self, inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """P(class) of each row (R, C) before it was learned with its label (R,): (R, classes)."""
        ...


class Networks:
    """`OnlineLearner`; the first rows set thresholds of columns, and are then learned."""

    def __init__(self, classes: int, memory: Any, seed: int = 0) -> None:
        self._classes, self._memory, self._seed = classes, memory, seed
        self._first: list[tuple[np.ndarray, np.ndarray]] = []
        self._learner: OnlineLearner | None = None

    def follow(self, inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
        if self._learner is not None:
            return self._learner.learn(inputs, labels).probabilities.numpy() / ONE
        seen = [known for _, known in self._first]
        counts = np.bincount(np.concatenate([*seen, labels[:0]]), minlength=self._classes) + 1.0
        self._first.append((inputs, labels))
        if sum(len(known) for _, known in self._first) >= FIRST:
            rows, known = (np.concatenate(part) for part in zip(*self._first, strict=True))
            self._learner = OnlineLearner.untrained(
                rows, np.arange(self._classes), memory=self._memory, seed=self._seed
            )
            self._learner.learn(rows, known)
        return np.tile(counts / counts.sum(), (len(inputs), 1))


class River:
    """A classifier of River, row by row."""

    def __init__(self, classifier: Any, classes: int) -> None:
        self._classifier, self._classes = classifier, classes

    def follow(self, inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
        found = np.zeros((len(inputs), self._classes))
        for row, (x, label) in enumerate(zip(inputs.tolist(), labels.tolist(), strict=True)):
            named = dict(enumerate(x))
            for known, p in self._classifier.predict_proba_one(named).items():
                found[row, int(known)] = p
            self._classifier.learn_one(named, label)
        total = found.sum(1, keepdims=True)
        return np.where(total > 0, found / np.maximum(total, LEAST), 1 / self._classes)


def rivals() -> dict[str, Callable[[int], Learner]]:
    """River's classifiers by name."""
    from river import forest, linear_model, naive_bayes, preprocessing, tree

    made: dict[str, Callable[[], Any]] = {
        "adaptive forest": lambda: forest.ARFClassifier(n_models=10, seed=0),
        "Hoeffding adaptive tree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
        "logistic regression": lambda: (
            preprocessing.StandardScaler() | linear_model.LogisticRegression()
        ),
        "naive Bayes": naive_bayes.GaussianNB,
    }
    return {name: lambda classes, make=make: River(make(), classes) for name, make in made.items()}


def of_folder(folder: Path) -> Iterator[Stream]:
    """Every CSV file of numbers with a column `class`."""
    for path in sorted(folder.glob("*.csv")):
        table, labels = labelled_table(path)
        inputs = np.stack([np.asarray(table[name], float) for name in table.columns], 1)
        yield Stream(path.stem, inputs, np.unique(labels, return_inverse=True)[1])


def generated(rows: int, seed: int = 0) -> Iterator[Stream]:
    """Ten columns of even numbers; a label asks whether a weighted sum of some is above half.

    sudden: another rule every fifth of the rows. gradual: the weights turn all the time.
    recurring: two rules take turns, ten times.
    """
    draw = np.random.default_rng(seed)
    inputs = draw.random((rows, 10))
    flipped = draw.random(rows) < NOISE

    def labels(weights: np.ndarray) -> np.ndarray:
        above = ((inputs - 0.5) * weights).sum(1) > 0
        return (above ^ flipped).astype(np.int64)

    rules = draw.normal(size=(5, 10)) * (draw.random((5, 10)) < 0.5)
    each, tenth = -(-rows // 5), -(-rows // 10)
    at = np.arange(rows)
    yield Stream("sudden", inputs, labels(rules[at // each]), tuple(range(each, rows, each)))
    turned = np.stack([np.cos(at / rows * np.pi * (1 + k % 3) + k) for k in range(10)], 1)
    yield Stream("gradual", inputs, labels(turned))
    two = rules[at // tenth % 2]
    yield Stream("recurring", inputs, labels(two), tuple(range(tenth, rows, tenth)))


def measured(stream: Stream, learner: Learner) -> dict[str, Any]:
    """Accuracy and log-loss of predictions made before their rows were learned."""
    right, losses = [], []
    begun = time.process_time()
    for first in range(0, len(stream.labels), BLOCK):
        rows = slice(first, first + BLOCK)
        inputs, labels = stream.inputs[rows], stream.labels[rows]
        found = learner.follow(inputs, labels)
        right.append(found.argmax(1) == labels)
        losses.append(-np.log(found[np.arange(len(labels)), labels].clip(min=LEAST)))
    seconds = time.process_time() - begun
    hits, loss = np.concatenate(right), np.concatenate(losses)
    after = [hits[drift : drift + AFTER] for drift in stream.drifts]
    return {
        "accuracy": float(hits.mean()),
        "log-loss": float(loss.mean()),
        "after drifts": float(np.mean(after)) if after else None,
        "seconds": seconds,
        "curve": [
            round(float(hits[k : k + WINDOW].mean()), 4) for k in range(0, len(hits), WINDOW)
        ],
    }


def plot(found: list[dict[str, Any]], path: Path) -> None:
    """Accuracy of every window of rows, a panel per stream."""
    from vitrail.lab.plots import Line, Panel, line_figure, save

    panels = []
    for name in dict.fromkeys(row["stream"] for row in found):
        lines = []
        for row in found:
            if row["stream"] == name and row["learner"] in DRAWN:
                whole = len(row["curve"]) // MERGED
                y = np.reshape(row["curve"][: whole * MERGED], (whole, MERGED)).mean(1)
                x = WINDOW * MERGED * np.arange(1, whole + 1)
                lines.append(Line(row["learner"], x, y))
        lowest = min(min(line.y) for line in lines)
        limits = (max(0.4, lowest - 0.02), 1.0)
        panels.append(Panel(name, "rows", "accuracy", tuple(lines), limits=limits))
    save(line_figure(panels, 2), path)


def main() -> None:
    """Measure what the command line asks for."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="CSV files with a column `class`")
    parser.add_argument("--only", nargs="*", help="names of streams")
    parser.add_argument("--learners", nargs="*", help="names of learners")
    parser.add_argument("--rows", type=int, help="of each stream, at most")
    parser.add_argument("--rivals", action="store_true", help="River's classifiers too")
    parser.add_argument("--out", type=Path, help="JSON of what was measured")
    parser.add_argument("--plot", type=Path, help="a picture of accuracy over rows")
    args = parser.parse_args()
    known = json.loads(args.out.read_text()) if args.out and args.out.exists() else []
    learners: dict[str, Callable[[int], Learner]] = {
        "vitrail": lambda classes: Networks(classes, "auto"),
        **(rivals() if args.rivals else {}),
    }
    streams = [*(of_folder(args.folder) if args.folder else ()), *generated(GENERATED)]
    for stream in streams:
        if args.only and stream.name not in args.only:
            continue
        cut = slice(args.rows)
        inputs, labels = stream.inputs[cut], stream.labels[cut]
        stream = Stream(
            stream.name, inputs, labels, tuple(d for d in stream.drifts if d < len(labels))
        )
        for name, make in learners.items():
            if args.learners and name not in args.learners:
                continue
            key = {"stream": stream.name, "rows": len(labels), "learner": name}
            found = next((row for row in known if key.items() <= row.items()), None)
            if found is None:
                found = {**key, **measured(stream, make(int(labels.max()) + 1))}
                known.append(found)
                write_json(args.out, known)
            drifts = found["after drifts"]
            print(
                f"{stream.name:12}{name:26}{found['accuracy']:8.4f}{found['log-loss']:8.4f}"
                f"{'' if drifts is None else f'{drifts:.4f}':>9}{found['seconds']:9.1f} s",
                flush=True,
            )
    if args.plot:
        plot(known, args.plot)


if __name__ == "__main__":
    main()
