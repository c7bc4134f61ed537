"""Runs of the command, made by a seed: bad files, hostile cells, strange arguments.

Each is a process of its own, as a user starts it: what threads do when an interpreter ends shows
nowhere else.
"""

import gzip
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz.inputs import sound_model
from fuzz.rule_tables import RuleTable, rule_table
from fuzz.table_files import MAKERS as FILES
from fuzz.table_files import delimited, made
from silent_constant import SILENT_CONSTANT, is_silent_constant

CODES = (0, 1, 2, 130)  # done, output closed, cannot be used, stopped
PATIENCE = 300.0  # seconds until a command counts as hanging


@dataclass(frozen=True)
class Case:
    """Arguments of the command, in a folder with the files they name."""

    arguments: tuple[str, ...]
    codes: tuple[int, ...] = (0, 2)  # that it may end with
    table: RuleTable | None = None  # what the model m.safetensors was trained on


# --- files that cannot be used ------------------------------------------------------------------


def _lines(rng: random.Random) -> list[list[str]]:
    rows = rng.choice([5, 30, 3000, 100_000])  # of the last pyarrow reads ahead at a fault
    body = [[str(rng.randint(0, 9)), rng.choice("xyz"), rng.choice(["no", "yes"])]
            for _ in range(rows)]  # fmt: skip
    return [["a", "b", "kind"], *body]


def _text(lines: list[list[str]]) -> bytes:
    return ("\n".join(",".join(line) for line in lines) + "\n").encode()


def ragged(rng: random.Random) -> bytes:
    lines = _lines(rng)
    lines[rng.randrange(1, len(lines))] += ["more"]
    return _text(lines)


def open_quote(rng: random.Random) -> bytes:
    lines = _lines(rng)
    lines[rng.randrange(1, len(lines))][1] = '"x'
    return _text(lines)


def unlabelled(rng: random.Random) -> bytes:
    lines = _lines(rng)
    lines[rng.randrange(1, len(lines))][2] = rng.choice(["", "?", "NA"])
    return _text(lines)


def one_class(rng: random.Random) -> bytes:
    lines = _lines(rng)
    return _text([lines[0], *([*line[:2], "yes"] for line in lines[1:])])


def twice_named(rng: random.Random) -> bytes:
    return _text([["a", "a", "kind"], *_lines(rng)[1:]])


def no_target(rng: random.Random) -> bytes:
    return _text([["a", "b", "Kind"], *_lines(rng)[1:]])


def no_rows(rng: random.Random) -> bytes:
    return rng.choice([b"", b"\n\n", b"a,b,kind\n", b"a,b,kind\n1,x,yes\n"])


def no_text(rng: random.Random) -> bytes:
    text = _text(_lines(rng))
    return rng.choice([b"\0\0" + text, text + b"\xff\xfe\xff,x,yes\n"])


def cut_archive(rng: random.Random) -> bytes:
    whole = gzip.compress(_text(_lines(rng)))
    return whole[: rng.randrange(3, len(whole) - 1)]


BAD: dict[str, Callable[[random.Random], bytes]] = {
    function.__name__: function
    for function in (
        ragged,
        open_quote,
        unlabelled,
        one_class,
        twice_named,
        no_target,
        no_rows,
        no_text,
        cut_archive,
    )
}


# --- cases --------------------------------------------------------------------------------------


def bad_file(rng: random.Random, folder: Path) -> Case:
    """A file that no model can be trained on: exit code 2 each time."""
    name = rng.choice(sorted(BAD))
    (folder / "t.csv").write_bytes(BAD[name](rng))
    return Case(("fit", "t.csv", "--target", "kind"), codes=(2,))


def any_file(rng: random.Random, folder: Path) -> Case:
    """Files of all kinds, sound and damaged."""
    kind = rng.choice(sorted(FILES))
    name = f"t.{kind}" if kind != "idx3-ubyte" else kind
    (folder / name).write_bytes(made(kind, rng.randrange(10**9)))
    quick = ("--hidden", "0", "--predictor", "best", "--epochs", "1")
    return Case(("fit", name, "--target", "kind", *rng.choice([(), quick])))


def hostile_cells(rng: random.Random, folder: Path) -> Case:
    """A table with a rule, in cells that look like something else."""
    table = rule_table(rng, hostile=True)
    table.rows.assign(kind=table.labels).to_csv(folder / "t.csv", index=False)
    return Case(("fit", "t.csv", "--target", "kind", "-o", "m.safetensors"), (0, 2), table)


def strange_arguments(rng: random.Random, folder: Path) -> Case:
    """A sound table, and an option with any value."""
    (folder / "t.csv").write_bytes(_text(_lines(rng)[:40]))
    values = ["-1", "0", "2", "1.5", "nan", "inf", "x", "", "8,0", "auto", "1e9", "é"]
    options = ["--hidden", "--beta", "--solver", "--predictor", "--net", "--epochs", "--test-size"]
    option = rng.choice([*options, "--memory", "--seed", "--jobs", "--target", "-o"])
    value = rng.choice(values)
    if option in ("--epochs", "--jobs") and value == "1e9":
        value = "x"
    return Case(("fit", "t.csv", "--target", "kind", option, value), (0, 2))


def other_rows(rng: random.Random, folder: Path) -> Case:
    """A sound model on rows that it does not expect."""
    (folder / "m.safetensors").write_bytes(sound_model())
    content = delimited(rng) if rng.random() < 0.5 else made("csv", rng.randrange(10**9))
    (folder / "t.csv").write_bytes(content)
    command = rng.choice([("predict", "--proba"), ("predict",), ("evaluate", "--target", "kind")])
    return Case((command[0], "m.safetensors", "t.csv", *command[1:]))


# by the number of a run, so that 200 of 500 are bad files
CASES: tuple[Callable[[random.Random, Path], Case], ...] = (
    bad_file,
    hostile_cells,
    bad_file,
    any_file,
    bad_file,
    hostile_cells,
    bad_file,
    any_file,
    strange_arguments,
    other_rows,
)


def faults_of(number: int, rng: random.Random, folder: Path) -> tuple[list[str], str]:
    """What must not come of the run of that number, and all that tells about it."""
    case = CASES[number % len(CASES)](rng, folder)
    done = run(case, folder)
    return faults(case, done, folder), f"{case.arguments} {done.returncode} {done.stderr[-2000:]}"


def run(case: Case, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "vitrail", *case.arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PATIENCE,
    )


def faults(case: Case, done: Any, folder: Path) -> list[str]:
    """What must not come of a command: names of faults, [] for none."""
    found = []
    if "Traceback (most recent call last)" in done.stderr:
        found.append("traceback")
    if done.returncode not in CODES:
        found.append("abort")
    elif done.returncode not in case.codes:
        found.append("exit code")
    if done.returncode == 2 and not done.stderr.strip():
        found.append("no sentence")
    if done.returncode == 0 and case.table is not None and _is_constant(case.table, folder):
        found.append(SILENT_CONSTANT)
    return found


def _is_constant(table: RuleTable, folder: Path) -> bool:
    from vitrail.model import load_model
    from vitrail.tables.table import read_table

    table.fresh.to_csv(folder / "fresh.csv", index=False)
    model = load_model(folder / "m.safetensors")
    return is_silent_constant(model, read_table(folder / "fresh.csv"), table.fresh_labels)
