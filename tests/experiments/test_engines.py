"""Sweeps give the same rows on every engine; a task that fails does not take the others along."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from vitrail.experiments.engines import checked_backend
from vitrail.experiments.methods import SBP
from vitrail.experiments.units import FailedUnitsError, Unit, compute


def fails_once(number: int, folder: str) -> list:
    mark = Path(folder) / f"tried {number}"
    if number == 1 and not mark.exists():
        mark.touch()
        raise RuntimeError("the first try of number 1")
    return [{"number": number}]


def fails_always(number: int, folder: str) -> list:
    if number == 1:
        raise RuntimeError("number 1 never works")
    return [{"number": number}]


def some(function, folder: Path) -> list[Unit]:
    return [Unit(function, {"number": n, "folder": str(folder)}, 1.0) for n in range(3)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_unit_that_fails_is_tried_once_more(tmp_path: Path, jobs: int):
    done = compute(some(fails_once, tmp_path), tmp_path / "kept", jobs)
    assert [part.rows[0]["number"] for part in done] == [0, 1, 2]
    assert (tmp_path / "tried 1").exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_unit_that_fails_twice_is_told_and_the_others_are_kept(tmp_path: Path, jobs: int):
    heard = []
    with pytest.raises(FailedUnitsError, match=r"1 of 3 parts failed twice.*number 1 never works"):
        compute(some(fails_always, tmp_path), tmp_path / "kept", jobs, heard.append)
    assert sorted(done.unit.settings["number"] for done in heard) == [0, 2]
    assert len(list((tmp_path / "kept").iterdir())) == 2


# a process of its own: clusters leave threads and sockets behind that warn at odd times
SWEEP = """
import json, sys
from pathlib import Path
from vitrail.experiments.fig3 import outcomes
from vitrail.experiments.methods import SBP
from vitrail.experiments.units import Unit, compute
if __name__ == "__main__":
    settings = {"num_inputs": 5, "size": 6, "steps": 2, "repeats": 2, "method": SBP()}
    units = [Unit(outcomes, {**settings, "seed": seed}, 1.0) for seed in range(3)]
    done = compute(units, Path(sys.argv[2]), 2, backend=sys.argv[1])
    print(json.dumps([part.rows for part in done]))
"""


@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_clusters_give_the_rows_of_one_process(tmp_path: Path, backend: str, package: str):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install 'vitrail[{backend}]'")
    from vitrail.experiments.fig3 import outcomes

    settings = {"num_inputs": 5, "size": 6, "steps": 2, "repeats": 2, "method": SBP()}
    units = [Unit(outcomes, {**settings, "seed": seed}, 1.0) for seed in range(3)]
    alone = compute(units, tmp_path / "alone", jobs=1)
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    command = [sys.executable, str(script), backend, str(tmp_path / "spread")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [part.rows for part in alone]
    assert len(list((tmp_path / "spread").glob("*.json"))) == 3


def test_an_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="choose one of: processes, dask, ray"):
        checked_backend("spark")
