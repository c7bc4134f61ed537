"""How vitrail bears attacks: stops at random moments, flipped bits, inputs made by a seed.

    python benchmarks/attacks.py                    all of it, about twenty minutes on one core
    python benchmarks/attacks.py stops --count 300
    python benchmarks/attacks.py flips --count 10000
    python benchmarks/attacks.py inputs --count 10000

Attacks are those of the tests, and more of them; the first failure is printed and ends the run.
"""

import argparse
import random
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

from bounded import calls_in_child  # noqa: E402 (the tests are no package)
from fuzz import inputs, table_files  # noqa: E402
from stops import stopper, units  # noqa: E402

STOPPED = ("fit best", "fit posterior", "fit linear posterior", "capacity", "reproduce", "compare")
AT_ONCE = 250
SAID = (None, "DataError", "TableTooLargeError")


def stops(count: int, seed: int) -> None:
    """Stop commands, by Ctrl-C and SIGTERM in turn; then sweeps that were stopped are run on."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, stopper(Path(folder)) as commands:
        taken, kept = [], 0
        for number in range(count):
            name = STOPPED[number % len(STOPPED)]
            how = (signal.SIGINT, signal.SIGTERM)[number // len(STOPPED) % 2]
            place = Path(folder) / str(number)
            trial = commands.try_stop(name, how, rng, place)
            if trial.stopped:
                taken.append(trial.seconds)
                kept += "best network so far" in trial.said
        print(
            f"{count} stops: {len(taken)} came before the end, {kept} left a best so far; seconds "
            f"to the end: median {statistics.median(taken):.2f}, most {max(taken):.2f}"
        )
        reruns = max(1, count // 15)
        for number in range(reruns):
            name = ("capacity", "reproduce")[number % 2]
            place = Path(folder) / f"again {number}"
            for how in (signal.SIGINT, signal.SIGTERM):
                commands.try_stop(name, how, rng, place)
            assert commands.run(name, place).code == 0
            assert units(place) == units(commands.undisturbed(name))
        print(f"{reruns} reruns, each after two stops: the numbers of an undisturbed run")


def flips(count: int, seed: int) -> None:
    """Flip one to three bits of a model file and read it."""
    rng, sound = random.Random(seed), inputs.sound_model()
    refused = 0
    for _ in range(count):
        content = bytearray(sound)
        for place in rng.sample(range(8 * len(sound)), rng.randint(1, 3)):
            content[place // 8] ^= 1 << place % 8
        try:
            assert inputs.chances(bytes(content)) == inputs.sound_answers()
        except ValueError as error:
            if not inputs.said(error):
                raise
            refused += 1
    print(f"{count} models with flipped bits: {refused} refused, no answer changed")


def many_inputs(count: int, seed: int) -> None:
    """Half of them files of tables, half models, checkpoints, classifiers and arguments."""
    kinds = dict.fromkeys(table_files.MAKERS, "fuzz.test_table_files:use")
    shares = dict.fromkeys(kinds, 0.5 / len(kinds))
    kinds |= dict.fromkeys(inputs.MAKERS, "fuzz.inputs:use")
    shares |= dict.fromkeys(inputs.MAKERS, 0.5 / len(inputs.MAKERS))
    for kind, function in kinds.items():
        number, longest, used = round(count * shares[kind]), 0.0, 0
        for first in range(seed, seed + number, AT_ONCE):
            cases = [(kind, one) for one in range(first, min(first + AT_ONCE, seed + number))]
            for case, outcome in zip(cases, calls_in_child(function, cases), strict=True):
                allowed = SAID if kind in table_files.MAKERS else (None,)
                assert outcome.error in allowed, (case, outcome)
                longest = max(longest, outcome.seconds)
                used += outcome.error is None and not str(outcome.result).startswith("refused")
        print(
            f"{kind}: {number} inputs, {used} used, the others refused in a sentence; "
            f"the longest took {longest:.1f} s",
            flush=True,
        )


ATTACKS = {"stops": (stops, 300), "flips": (flips, 10_000), "inputs": (many_inputs, 10_000)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attacks", nargs="*", default=[], help=", ".join(ATTACKS))
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in given.attacks or ATTACKS:
        attack, usual = ATTACKS[name]
        begun = time.perf_counter()
        attack(given.count or usual, given.seed)
        print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
