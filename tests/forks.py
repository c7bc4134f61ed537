"""Scripts in forks of one process that has loaded the libraries of vitrail, but not vitrail.

A fork begins at once where a new process would load these libraries for seconds.
"""

import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = ("torch", "numba", "sklearn.model_selection", "pyarrow.parquet", "pandas")
STREAMS = ("out", "err")


class Forks:
    """The process that forks, each to run a script with warnings as errors."""

    def __init__(self) -> None:
        here = str(Path(__file__).parent)
        start = f"import sys; sys.path.insert(1, {here!r}); import forks; del sys.path[1]"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", f"{start}; forks.serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"},
        )

    def run(self, script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run the script in a folder."""
        return self.start(script, folder).ended()

    def start(
        self, script: Path, folder: Path, *arguments: str, name: str = "", **environment: str
    ) -> "Fork":
        """Begin to run it; `name` keeps what it prints apart from others in the same folder."""
        asked = [str(script), str(folder), arguments, f"{name}out.txt", f"{name}err.txt"]
        return Fork(self, folder, name, self.ask(*asked, environment))

    def ranks(
        self, size: int, script: Path, folder: Path, *arguments: str, **environment: str
    ) -> list["Fork"]:
        """The script as ranks of one job, as torchrun would start them."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(size)}
        return [
            self.start(
                script, folder, *arguments, name=f"{rank}.", **job, RANK=str(rank), **environment
            )
            for rank in range(size)
        ]

    def ask(self, *message: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


@dataclass(frozen=True)
class Fork:
    """A script at work."""

    forks: Forks
    folder: Path
    name: str
    pid: int

    def ended(self, timeout: float = 240.0) -> subprocess.CompletedProcess[str]:
        """Wait until it has ended; after `timeout` seconds it is killed."""
        code = self.forks.ask(self.pid, timeout)
        said = [(self.folder / f"{self.name}{name}.txt").read_text("utf-8") for name in STREAMS]
        return subprocess.CompletedProcess([], code, *said)


def serve() -> None:
    """The process: load the libraries, then fork and wait on demand."""
    for name in LIBRARIES:
        importlib.import_module(name)
    assert "vitrail" not in sys.modules
    for line in sys.stdin:
        asked = json.loads(line)
        print(_code(*asked) if len(asked) == 2 else _forked(*asked), flush=True)  # noqa: T201


def _forked(
    script: str, folder: str, arguments: list[str], out: str, err: str, environment: dict[str, str]
) -> int:
    child = os.fork()
    if child == 0:
        os.environ.update(environment)
        _run(script, folder, arguments, (out, err))
    return child


def _code(child: int, timeout: float) -> int:
    """The exit code of a fork, negative for a signal."""
    end = time.monotonic() + timeout
    while not (done := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
    return os.waitstatus_to_exitcode(done[1])


def _run(script: str, folder: str, arguments: list[str], streams: tuple[str, str]) -> None:
    """What the fork does: the script, with standard streams of its own, and never return."""
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in enumerate(streams, 1):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), number)
    sys.path[0] = str(Path(script).parent)
    sys.argv = [script, *arguments]
    code = 1
    try:
        runpy.run_path(script, run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
