"""Scripts in forks of one process that has loaded the libraries of vitrail, but not vitrail.

A fork begins at once where a new process would load these libraries for seconds.
"""

import importlib
import json
import os
import runpy
import subprocess
import sys
import traceback
from pathlib import Path

LIBRARIES = ("torch", "numba", "sklearn.model_selection", "pyarrow.parquet", "pandas")


class Forks:
    """The process that forks; `run` has it run a script, with warnings as errors."""

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
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(script), str(folder)]) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        said = [(folder / name).read_text("utf-8") for name in ("out.txt", "err.txt")]
        return subprocess.CompletedProcess([str(script)], code, *said)

    def end(self) -> None:
        self._process.communicate()


def serve() -> None:
    """The process: load the libraries, then fork on demand."""
    for name in LIBRARIES:
        importlib.import_module(name)
    assert "vitrail" not in sys.modules
    for line in sys.stdin:
        script, folder = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(script, folder)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, flush=True)  # noqa: T201


def _run(script: str, folder: str) -> None:
    """What the fork does: the script, with standard streams of its own, and never return."""
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out.txt"), (2, "err.txt")):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), number)
    sys.path[0] = str(Path(script).parent)
    sys.argv = [script]
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
