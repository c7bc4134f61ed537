"""Robustness tests: stops at random moments, flipped bits, inputs generated from a seed, and
models with hostile names and cells, whose exports must answer as Python does.

    python benchmarks/attacks.py                            all kinds, two hours on one core
    python benchmarks/attacks.py stops reruns --jobs 16     some kinds, in 16 processes
    python benchmarks/attacks.py stops --first 41 --count 1 one attack

Attacks are those of the tests, in larger numbers. A failure is printed with its number and the run
continues; the last line of each kind is JSON with counts and the longest time. The exit code is 1
if there was a failure.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

from bounded import Outcome, calls_in_child  # noqa: E402 (the tests are no package)
from fuzz import commands, exports, inputs, table_files  # noqa: E402
from silent_constant import SILENT_CONSTANT  # noqa: E402
from stops import stopper, units  # noqa: E402

STOPPED = ("fit best", "fit posterior", "fit linear posterior", "capacity", "reproduce", "compare")
RERUN = ("capacity", "reproduce")
MAX_STOP_SECONDS = 5.0  # from a stop to the end
INPUTS_PER_PROCESS = 250  # so that leaks of one call affect the next
EXPORTED_ROWS = 2_500  # of a model
KINDS = (*table_files.MAKERS, *inputs.MAKERS)
EXPECTED_ERRORS = (None, "DataError", "TableTooLargeError")


class Tally:
    """Counts of one kind of attack."""

    def __init__(self, attack: str, seed: int) -> None:
        self.attack, self.seed, self.longest = attack, seed, 0.0
        self.counts = Counter(tried=0, failed=0)

    @contextmanager
    def trial(self, number: int, what: object) -> Iterator[random.Random]:
        """One attack with its random generator; a failure is counted and printed."""
        self.counts["tried"] += 1
        try:
            yield random.Random(f"{self.attack} {self.seed} {number}")
        except Exception as error:
            self.counts["failed"] += 1
            again = f"{self.attack} --seed {self.seed} --first {number} --count 1"
            print(f"FAILED {again}: {what}: {type(error).__name__}: {error}", flush=True)

    def record_time(self, seconds: float) -> None:
        self.longest = max(self.longest, round(seconds, 2))

    def line(self) -> dict[str, Any]:
        return {"attack": self.attack, **self.counts, "longest": self.longest}


def stops(tally: Tally, numbers: range) -> None:
    """Stop commands, by Ctrl-C and SIGTERM in turn."""
    with tempfile.TemporaryDirectory() as folder, stopper(Path(folder)) as commands:
        for number in numbers:
            name = STOPPED[number % len(STOPPED)]
            how = (signal.SIGINT, signal.SIGTERM)[number // len(STOPPED) % 2]
            with tally.trial(number, f"{name}, {how.name}") as rng:
                commands.undisturbed(name)  # so that stops come before its end
                done = commands.try_stop(name, how, rng, Path(folder) / str(number))
                if done.stopped:
                    tally.counts["stopped"] += 1
                    tally.counts["kept a best"] += "best network so far" in done.stderr
                    tally.record_time(done.seconds)
                    assert done.seconds <= MAX_STOP_SECONDS, done


def reruns(tally: Tally, numbers: range) -> None:
    """Stop a sweep twice, then let it end: its numbers are those of an uninterrupted run."""
    with tempfile.TemporaryDirectory() as folder, stopper(Path(folder)) as commands:
        for number in numbers:
            name, place = RERUN[number % len(RERUN)], Path(folder) / str(number)
            with tally.trial(number, name) as rng:
                commands.undisturbed(name)
                for how in (signal.SIGINT, signal.SIGTERM):
                    commands.try_stop(name, how, rng, place)
                assert commands.run(name, place).code == 0
                assert units(place) == units(commands.undisturbed(name))


def flips(tally: Tally, numbers: range) -> None:
    """Flip one to three bits of a model file and read it."""
    sound = inputs.sound_model()
    for number in numbers:
        with tally.trial(number, "flipped bits") as rng:
            content = bytearray(sound)
            for place in rng.sample(range(8 * len(sound)), rng.randint(1, 3)):
                content[place // 8] ^= 1 << place % 8
            try:
                assert inputs.probabilities(bytes(content)) == inputs.sound_answers()
            except ValueError as error:
                if not inputs.is_expected(error):
                    raise
                tally.counts["refused"] += 1


def fault(outcome: Outcome) -> str:
    """The kind of failure of an outcome."""
    if str(outcome.error).startswith("exit"):
        return "abort"
    return "silent constant" if outcome.sentence == SILENT_CONSTANT else "traceback"


def many_inputs(tally: Tally, numbers: range) -> None:
    """Files of tables, models, checkpoints, classifiers, rules and arguments."""
    for makers, function in (
        (table_files.MAKERS, "fuzz.test_table_files:use"),
        (inputs.MAKERS, "fuzz.inputs:use"),
    ):
        mine = [number for number in numbers if KINDS[number % len(KINDS)] in makers]
        for first in range(0, len(mine), INPUTS_PER_PROCESS):
            some = mine[first : first + INPUTS_PER_PROCESS]
            cases = [(KINDS[one % len(KINDS)], tally.seed * 10**9 + one) for one in some]
            found = calls_in_child(function, cases)
            for number, case, outcome in zip(some, cases, found, strict=True):
                with tally.trial(number, case):
                    allowed = EXPECTED_ERRORS if makers is table_files.MAKERS else (None,)
                    if outcome.error not in allowed:
                        tally.counts[fault(outcome)] += 1
                        raise AssertionError(outcome)
                    used = outcome.error is None and not str(outcome.result).startswith("refused")
                    tally.counts["used" if used else "refused"] += 1
                    tally.record_time(outcome.seconds)


def bad_tables(tally: Tally, numbers: range) -> None:
    """Invalid files for training through the command: one line of error and exit code 2."""
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder, tally.trial(number, "bad file") as rng:
            begun, case = time.monotonic(), commands.bad_file(rng, Path(folder))
            done = commands.run(case, Path(folder))
            tally.record_time(time.monotonic() - begun)
            assert not commands.faults(case, done, Path(folder)), done


def many_commands(tally: Tally, numbers: range) -> None:
    """Bad files, hostile cells and strange arguments through the command, a process each."""
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder, tally.trial(number, "command") as rng:
            begun = time.monotonic()
            found, description = commands.faults_of(number, rng, Path(folder))
            tally.record_time(time.monotonic() - begun)
            tally.counts.update(found)
            assert not found, (found, description)


def many_exports(tally: Tally, numbers: range) -> None:
    """Models with hostile names and cells: CSV, C, JavaScript, ONNX and NumPy answer as Python."""
    for number in numbers:
        with tally.trial(number, "hostile model"), tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            found = exports.differences([number], EXPORTED_ROWS, Path(folder))
            tally.record_time(time.monotonic() - begun)
            tally.counts["rows"] += EXPORTED_ROWS
            assert not found, "; ".join(found)


ATTACKS = {
    "stops": (stops, 300),
    "reruns": (reruns, 20),
    "flips": (flips, 10_000),
    "inputs": (many_inputs, 10_000),
    "tables": (bad_tables, 200),
    "commands": (many_commands, 500),
    "exports": (many_exports, 200),
}


def in_processes(attack: str, seed: int, numbers: range, jobs: int) -> dict[str, Any]:
    """Run this script in several processes and add up their last lines."""
    firsts = [numbers.start + len(numbers) * job // jobs for job in range(jobs + 1)]
    script = [sys.executable, __file__, attack, f"--seed={seed}"]
    children = [
        subprocess.Popen(
            [*script, f"--first={first}", f"--count={following - first}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for first, following in pairwise(firsts)
        if following > first
    ]
    total: Counter[str] = Counter(tried=0, failed=0)
    longest = 0.0
    for child in children:
        *failures, last = (child.communicate()[0] or "no line").splitlines()
        print("\n".join(failures), end="\n" * bool(failures), flush=True)
        try:
            line = json.loads(last)
        except ValueError:
            line = {"failed": 1}
            print(f"FAILED {attack}: a process ended with {child.returncode}: {last}", flush=True)
        longest = max(longest, line.pop("longest", 0.0))
        total.update({name: value for name, value in line.items() if isinstance(value, int)})
    return {"attack": attack, **total, "longest": longest}


def main() -> int:
    """Run the attacks of the command line; 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attacks", nargs="*", default=[], help=", ".join(ATTACKS))
    parser.add_argument("--count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    for name in options.attacks or ATTACKS:
        attack, default = ATTACKS[name]
        numbers, begun = (
            range(options.first, options.first + (options.count or default)),
            time.monotonic(),
        )
        if options.jobs > 1:
            line = in_processes(name, options.seed, numbers, options.jobs)
        else:
            tally = Tally(name, options.seed)
            attack(tally, numbers)
            line = tally.line()
        failed += line["failed"]
        line["seconds"] = round(time.monotonic() - begun)
        print(json.dumps(line), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
