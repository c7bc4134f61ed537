"""Count the named functions that a default fit from a CSV file calls.

    python scripts/crossing.py [table.csv --target COLUMN] [--functions]

A first fit in the same process imports modules and compiles kernels; the second is counted.
Lambdas, comprehensions and generated methods of dataclasses are not named functions.
"""

import argparse
import contextlib
import io
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np

import vitrail
from vitrail.cli.app import main
from vitrail.estimator import BinaryNetClassifier
from vitrail.tables import read_table

PACKAGE = Path(vitrail.__file__).parent


def crossed(work: Callable[[], object]) -> set[tuple[str, str]]:
    """(module, function) of every named function of the package that `work` calls."""
    found: set[tuple[str, str]] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and code.co_name[0] != "<":
            path = Path(code.co_filename).relative_to(PACKAGE)
            found.add((str(path), code.co_qualname))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def write_example(path: Path) -> None:
    """A table of four columns of numbers and one of words, with a target of two classes."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(200, 4)).round(2)
    words = rng.choice(["red", "green", "blue"], 200)
    target = np.where(numbers[:, 0] + numbers[:, 1] > 0, "yes", "no")
    rows = [
        ",".join([*map(str, row), word, label])
        for row, word, label in zip(numbers, words, target, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,d,colour,y", *rows]) + "\n")


def count() -> None:
    """Print functions per module of the command and of the classifier."""
    parser = argparse.ArgumentParser(description="Count the functions that a default fit calls.")
    parser.add_argument("table", nargs="?", type=Path)
    parser.add_argument("--target", default="y")
    parser.add_argument("--functions", action="store_true", help="also list the functions")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = arguments.table or Path(folder) / "t.csv"
        if arguments.table is None:
            write_example(table)

        def command() -> None:
            words = ["fit", str(table), "--target", arguments.target]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                main([*words, "--output", f"{folder}/model.safetensors"])

        def classifier() -> None:
            rows = read_table(table)
            labels = rows.labels(arguments.target)
            BinaryNetClassifier().fit(rows.without(arguments.target), labels)

        for title, work in (("vitrail fit", command), ("read_table and fit", classifier)):
            work()
            found = crossed(work)
            modules = Counter(module for module, _ in found)
            print(f"{title}: {len(found)} functions in {len(modules)} modules")
            for module, count in sorted(modules.items()):
                print(f"  {count:3d} {module}")
                if arguments.functions:
                    for name in sorted(name for where, name in found if where == module):
                        print(f"        {name}")


if __name__ == "__main__":
    count()
