"""Time of a default fit on generated tables of several shapes, compared with a forest.

    python benchmarks/speed.py [--only 0] [--repeats 3] [--json rows.json]

The first fit compiles kernels and is left out; of --repeats more the fastest counts. Accuracy is on
as many rows again, held out. The forest is scikit-learn's with 200 trees on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import parser_of, timer, write_json
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from vitrail import BinaryNetClassifier

SHAPES = (  # rows, columns, classes
    (1_000, 20, 2),
    (2_300, 19, 7),
    (5_500, 10, 5),
    (5_600, 64, 10),
    (16_000, 6, 3),
)
LEARNERS: dict[str, Callable[[], Any]] = {
    "vitrail": lambda: BinaryNetClassifier(random_state=0),
    "forest": lambda: RandomForestClassifier(200, random_state=0),
}


def measured(make: Callable[[], Any], shape: tuple[int, int, int], repeats: int) -> dict[str, Any]:
    """Seconds of the fastest fit, and accuracy on held-out rows."""
    rows, columns, classes = shape
    inputs, labels = make_classification(
        2 * rows,
        columns,
        n_informative=max(4, columns // 2),
        n_redundant=0,
        n_classes=classes,
        n_clusters_per_class=1,
        random_state=0,
    )
    model = make().fit(inputs[:rows], labels[:rows])
    seconds = []
    for _ in range(repeats):
        with timer() as spent:
            model = make().fit(inputs[:rows], labels[:rows])
        seconds.append(spent.clock)
    accuracy = float(model.score(inputs[rows:], labels[rows:]))
    return {"seconds": round(min(seconds), 3), "accuracy": round(accuracy, 4)}


def main() -> None:
    """Measure the shapes and print one line each."""
    parser = parser_of(__doc__)
    parser.add_argument("--only", type=int, nargs="*", help=f"shapes, of 0 to {len(SHAPES) - 1}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    print(f"{'rows':>7}{'columns':>9}{'classes':>9}", end="")
    print("".join(f"{name + ' s':>12}{'accuracy':>10}" for name in LEARNERS), flush=True)
    for number in range(len(SHAPES)) if options.only is None else options.only:
        shape = SHAPES[number]
        row = {name: measured(make, shape, options.repeats) for name, make in LEARNERS.items()}
        found.append({"shape": shape, **row})
        cells = "".join(f"{one['seconds']:12.2f}{one['accuracy']:10.3f}" for one in row.values())
        print(f"{shape[0]:7,}{shape[1]:9}{shape[2]:9}{cells}", flush=True)
        write_json(options.json, found)


if __name__ == "__main__":
    main()
