"""Commands that are stopped at any moment, in forks of one process that has loaded everything.

A fork begins at once where a new process would load for seconds, so hundreds of trials are minutes.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Reference = Callable[[], Path]  # the folder of an uninterrupted run
PATIENCE = 120.0  # seconds until a command that does not end is killed


@dataclass(frozen=True)
class Case:
    """A command, when it is stopped, and what its folder may hold then."""

    arguments: tuple[str, ...]
    span: float  # about how many seconds it takes, and within which the stop comes
    check: Callable[[Path, Reference, str], None]  # its folder, an undisturbed run's, its sentence


@dataclass(frozen=True)
class Trial:
    """How a command ended: its code, the seconds from the stop to the end, and its messages."""

    code: int
    seconds: float
    stopped: bool  # whether it was still at work when the stop came
    stderr: str  # on standard error


def check_model(folder: Path, reference: Reference, stderr: str) -> None:
    """The best so far is there and can be used, or it says that nothing is."""
    from vitrail.model import load_model
    from vitrail.tables.table import read_table

    place = folder / "m.safetensors"
    if not place.exists():
        assert "nothing" in stderr or not stderr, stderr
        return
    assert "nothing" not in stderr, stderr
    answers = load_model(place).predict(read_table(folder / "t.csv"))
    assert len(answers) == ROWS


def units(folder: Path) -> dict[str, Any]:
    """What is kept of a sweep, without the seconds that it took."""
    found = {}
    for place in sorted(folder.rglob("*.json")):
        if place.parent.name in ("units", ".units"):
            rows = json.loads(place.read_text("utf-8"))["rows"]
            found[place.name] = [
                {name: value for name, value in row.items() if name != "seconds"} for row in rows
            ]
    return found


def check_units(folder: Path, reference: Reference, stderr: str) -> None:
    """Every unit that is kept is the one of a run that nobody stopped."""
    truth = units(reference())
    assert truth
    for name, rows in units(folder).items():
        assert rows == truth[name], name


def check_comparison(folder: Path, reference: Reference, stderr: str) -> None:
    """Solvers that are shown are done."""
    shown, truth = ((place / "out.txt").read_text("utf-8") for place in (folder, reference()))
    if shown.strip():
        done = {row["solver"]: row for row in json.loads(shown)["results"]}
        for row in json.loads(truth)["results"]:
            if row["solver"] in done:
                numbers = {**done[row["solver"]], "seconds": row["seconds"]}
                assert numbers == row


def check_answers(folder: Path, reference: Reference, stderr: str) -> None:
    """The answers are all there, or none."""
    place = folder / "p.csv"
    assert not place.exists() or place.read_text() == (reference() / "p.csv").read_text()


def check_files(folder: Path, reference: Reference, stderr: str) -> None:
    """A small model can be used, and a page goes to its end, or they are not there."""
    from vitrail.model import load_model

    for place in folder.glob("small.safetensors"):
        load_model(place)
    for place in folder.glob("*.html"):
        assert place.read_text("utf-8").rstrip().endswith("</html>")


def check_nothing(folder: Path, reference: Reference, stderr: str) -> None:
    pass


ROWS = 150
FIT = ("fit", "t.csv", "--target", "kind", "-o", "m.safetensors")
COMPARED = ("compare", "glass:21x25", "--solvers", "sbp,ste", "--epochs", "20", "--json")
CASES = {
    "fit best": Case((*FIT, "--predictor", "best"), 6.0, check_model),
    "fit posterior": Case((*FIT, "--predictor", "posterior"), 2.5, check_model),
    "fit linear posterior": Case(
        (*FIT, "--predictor", "posterior", "--hidden", "0"), 2.5, check_model
    ),
    "capacity": Case(
        ("capacity", "--n", "61", "--alpha", "0.3,0.4", "--count", "3", "--out", "c"),
        4.0,
        check_units,
    ),
    "reproduce": Case(
        ("reproduce", "fig3", "--quick", "--jobs", "1", "--out", "r"), 4.0, check_units
    ),
    "compare": Case(COMPARED, 2.0, check_comparison),
    "predict": Case(("predict", "known.safetensors", "t.csv", "-o", "p.csv"), 0.3, check_answers),
    "evaluate": Case(("evaluate", "known.safetensors", "t.csv"), 0.3, check_nothing),
    "export": Case(("export", "known.safetensors", "-o", "e"), 0.3, check_nothing),
    "fit in a stream": Case((*FIT, "--memory", "1GiB"), 1.0, check_model),
    "compress": Case(
        ("compress", "known.safetensors", "t.csv", "-o", "small.safetensors"), 2.0, check_files
    ),
    "report": Case(("report", "known.safetensors", "t.csv", "-o", "r.html"), 1.0, check_files),
    "info": Case(("info", "known.safetensors"), 0.1, check_nothing),
    "demo": Case(("demo", "-o", "d.png"), 4.0, check_nothing),
    "bench": Case(("bench", "--share", "0.001"), 2.0, check_nothing),
}


class Stopper:
    """The process that forks; `run` has it try a command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        script = f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]; import stops; "
        self._child = subprocess.Popen(
            [sys.executable, "-c", script + "stops.serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self._answer() == "ready"
        self.references: dict[str, Path] = {}
        self.span = {name: case.span for name, case in CASES.items()}

    def _answer(self) -> Any:
        assert self._child.stdout is not None
        return json.loads(self._child.stdout.readline())

    def run(self, name: str, place: Path, number: int = 0, delay: float = PATIENCE) -> Trial:
        """Run the case's command in a folder, with a stop after so many seconds; 0 is none."""
        place.mkdir(exist_ok=True)
        for file in ("t.csv", "known.safetensors"):
            (place / file).write_bytes((self.folder / file).read_bytes())
        for file in ("out.txt", "err.txt"):  # a stop may come before the command has opened them
            (place / file).write_text("")
        task = {"arguments": CASES[name].arguments, "place": str(place)}
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps({**task, "number": number, "delay": delay}) + "\n")
        self._child.stdin.flush()
        return Trial(**self._answer())

    def end(self) -> None:
        self._child.communicate()

    def undisturbed(self, name: str) -> Path:
        """The folder of a run of the case that nobody stopped; from then on we know its span."""
        if name not in self.references:
            place, begun = self.folder / f"reference {name}", time.monotonic()
            trial = self.run(name, place)
            assert trial.code == 0, trial
            self.references[name], self.span[name] = place, time.monotonic() - begun
        return self.references[name]

    def try_stop(self, name: str, number: int, rng: random.Random, place: Path) -> Trial:
        """Stop the case's command at a random moment, and hold it to the policy."""
        case = CASES[name]
        trial = self.run(name, place, number, rng.uniform(0.0, self.span[name]))
        lines = trial.stderr.strip().splitlines()
        assert "Traceback" not in trial.stderr, trial
        early = trial.code == -number and not trial.stderr  # the program had not taken over yet
        if number == signal.SIGKILL or early:
            assert trial.code == -number or not trial.stopped, trial
        elif trial.code != 0 or trial.stopped:
            assert trial.code == 128 + number, trial
            assert not lines or lines[-1].startswith("stopped"), trial
        case.check(
            place, lambda: self.undisturbed(name), lines[-1] if lines and trial.code > 0 else ""
        )
        if number != signal.SIGKILL:
            left = [p for p in place.rglob("*") if p.name.endswith((".tmp", ".part"))]
            assert not left, left
        return trial


@contextmanager
def stopper(folder: Path) -> Iterator[Stopper]:
    """A Stopper that ends with the block."""
    made = Stopper(folder)
    try:
        yield made
    finally:
        made.end()


def serve() -> None:
    """The process: load everything, train the model that some commands need, fork on demand."""
    import torch

    torch.set_num_threads(1)
    from dataclasses import replace

    from vitrail.cli import main
    from vitrail.lab.experiments import fig3
    from vitrail.lab.experiments.reproduce import FIGURES

    small = fig3.Config(steps=4, survey_samples=(1, 3), repeats=2)
    FIGURES["fig3"] = replace(FIGURES["fig3"], quick=small)
    rng = random.Random(0)
    lines = ["a,b,kind"]
    for _ in range(ROWS):
        word, number = rng.choice("xyz"), rng.gauss(0, 1)
        lines.append(f"{word},{number:.2f},{'yes' if (word == 'x') ^ (number > 0) else 'no'}")
    Path("t.csv").write_text("\n".join(lines) + "\n")
    with open(os.devnull, "w") as nothing:
        answers, sys.stdout = sys.stdout, nothing
        for predictor in ("best", "posterior"):
            with suppress(SystemExit):
                main([*FIT, "--predictor", predictor, "--hidden", "3"])
        sys.stdout = answers
    Path("m.safetensors").rename("known.safetensors")
    print('"ready"', flush=True)  # noqa: T201
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps(_tried(main, **task)), flush=True)  # noqa: T201


def _tried(
    main: Callable[..., None], arguments: list[str], place: str, number: int, delay: float
) -> dict[str, Any]:
    child = os.fork()
    if child == 0:
        _be_command(main, arguments, place)
    stop_at, code, stopped = time.monotonic() + delay, None, False
    while code is None and time.monotonic() < stop_at:
        code = _ended(child)
        time.sleep(0.002)
    begun = time.monotonic()
    if code is None:
        stopped = True
        os.kill(child, number or signal.SIGKILL)
    while code is None and time.monotonic() - begun < PATIENCE:
        code = _ended(child)
        time.sleep(0.002)
    seconds = time.monotonic() - begun
    if code is None:
        os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    stderr = (Path(place) / "err.txt").read_text("utf-8")
    return {"code": code, "seconds": seconds, "stopped": stopped and code != 0, "stderr": stderr}


def _ended(child: int) -> int | None:
    found, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _be_command(main: Callable[..., None], arguments: list[str], place: str) -> None:
    """What the fork does: the command, with standard streams of its own, and never return."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(place)
    for number, name in ((1, "out.txt"), (2, "err.txt")):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    code = 99
    try:
        main(arguments)
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    except KeyboardInterrupt:  # before the command had begun, or after its end
        code = 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a stop after the end changes nothing
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
