"""Calls in a child process with little memory and time: what hostile files may cost.

The child imports vitrail first; what is limited is what a call takes beyond that.
"""

import importlib
import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GIGABYTE = 1 << 30


@dataclass(frozen=True)
class Outcome:
    """What a call came to: its result as text, or the type of its error and what that says."""

    result: str | None
    error: str | None
    sentence: str
    seconds: float


def calls_in_child(
    function: str,
    arguments: Sequence[Any],
    memory: int = GIGABYTE,
    seconds: int = 10,
    source: Path | None = None,
) -> list[Outcome]:
    """`function` ("module:name", of the tests) of each argument, one after another.

    memory   bytes of address space that calls may take together, beyond the imports
    seconds  of processor time that one call may take; ten times that if it only waits
    source   the folder of another vitrail, to see how that did
    """
    folders = [str(Path(__file__).parent), *([str(source)] if source else [])]
    script = f"import sys; sys.path[:0] = {folders!r}; import bounded; bounded.work()"
    task = {"function": function, "memory": memory, "seconds": seconds}
    found: list[Outcome] = []
    while len(found) < len(arguments):  # a call that ends its child is one outcome; others go on
        child = subprocess.run(
            [sys.executable, "-c", script],
            input=json.dumps({**task, "arguments": arguments[len(found) :]}),
            capture_output=True,
            text=True,
        )
        lines = [line for line in child.stdout.splitlines() if line.startswith("{")]
        found += [Outcome(**json.loads(line)) for line in lines]
        if child.returncode:
            found.append(Outcome(None, f"exit {child.returncode}", child.stderr[-2000:], 0.0))
    return found


def work() -> None:
    """The child: read the task, call, print a line for each outcome."""
    task = json.loads(sys.stdin.read())
    module, name = task["function"].split(":")
    loaded = importlib.import_module(module)
    function = getattr(loaded, name)
    getattr(loaded, "warm", lambda: None)()  # what all calls share is made outside their limits
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + task["memory"],) * 2)
    for alarm in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(alarm, _too_long)
    for argument in task["arguments"]:
        print(json.dumps(_outcome(function, argument, task["seconds"])), flush=True)  # noqa: T201


def _outcome(function: Any, argument: Any, seconds: int) -> dict[str, Any]:
    begun = time.process_time()
    result = error = None
    sentence = ""
    try:
        signal.alarm(10 * seconds)  # the machine may be busy with other things
        signal.setitimer(signal.ITIMER_PROF, seconds)
        result = str(function(argument))
    except BaseException as raised:
        error, sentence = type(raised).__name__, str(raised)
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
    taken = time.process_time() - begun
    return {"result": result, "error": error, "sentence": sentence, "seconds": round(taken, 3)}


def _too_long(*_: object) -> None:
    raise TimeoutError("the call took too long")
