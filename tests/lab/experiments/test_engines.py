"""Sweeps give the same rows on every engine; a task that fails does not take the others along."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lab.experiments.sweep import chosen, units

from vitrail.engines import checked_backend, map_tasks, workers
from vitrail.lab.experiments.reproduce import FIGURES, plans
from vitrail.lab.experiments.units import FailedUnitsError, Unit, compute

JOB = Path(__file__).with_name("sweep.py")


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
    return [Unit(function, {"number": n, "folder": str(folder)}) for n in range(3)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_unit_that_fails_is_tried_once_more(tmp_path: Path, jobs: int):
    done = compute(some(fails_once, tmp_path), tmp_path / "kept", jobs)
    assert [part.rows[0]["number"] for part in done] == [0, 1, 2]
    assert (tmp_path / "tried 1").exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_unit_that_fails_twice_is_told_and_the_others_are_kept(tmp_path: Path, jobs: int):
    reported = []
    with pytest.raises(FailedUnitsError, match=r"1 of 3 parts failed twice.*number 1 never works"):
        compute(some(fails_always, tmp_path), tmp_path / "kept", jobs, reported.append)
    assert sorted(done.unit.settings["number"] for done in reported) == [0, 2]
    assert len(list((tmp_path / "kept").iterdir())) == 2


CLUSTERS = pytest.mark.parametrize(
    ("backend", "package"), [("dask", "distributed"), ("ray", "ray")]
)  # which take up to a minute to start and stop


def require(backend: str, package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install 'vitrail[{backend}]'")


@pytest.fixture(scope="module")
def models() -> list[str]:
    return chosen()


@pytest.mark.long
@CLUSTERS
def test_clusters_give_what_one_process_gives(
    tmp_path: Path, models: list[str], backend: str, package: str
):
    require(backend, package)
    alone = compute(units(), tmp_path / "alone", jobs=1)
    command = [sys.executable, str(JOB), backend, str(tmp_path / "spread")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told == {"rows": [part.rows for part in alone], "chosen": models}
    assert len(list((tmp_path / "spread").glob("*.json"))) == 3


def test_two_processes_give_the_same_rows(tmp_path: Path):
    alone = compute(units(), tmp_path / "alone", jobs=1)
    spread = compute(units(), tmp_path / "spread", jobs=2)
    assert [part.rows for part in spread] == [part.rows for part in alone]


def test_two_processes_choose_the_same_nets(models: list[str]):
    with workers("processes", 2):
        assert chosen() == models


def squared(number: int, folder: str) -> int:
    """At the second try, of number 1."""
    fails_once(number, folder)
    return number**2


def test_each_keeps_the_order_and_tries_once_more(tmp_path: Path):
    given = [(number, str(tmp_path)) for number in range(4)]
    with workers("processes", 2):
        assert list(map_tasks(squared, given)) == [0, 1, 4, 9]
        with pytest.raises(ZeroDivisionError):
            list(map_tasks(divmod, [(1, 1), (1, 0)]))
    (tmp_path / "tried 1").unlink()
    with pytest.raises(RuntimeError, match="the first try"):  # here it would fail the same way
        list(map_tasks(squared, given))


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of all figures, quickly, by a backend; each is made once."""

    @cache
    def by(backend: str) -> Path:
        folder = tmp_path_factory.mktemp(backend)
        command = [sys.executable, "-m", "vitrail", "reproduce", "all", "--quick", "--jobs", "2"]
        command += ["--backend", backend, "--out", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return folder

    return by


@pytest.mark.long
@CLUSTERS
def test_clusters_reproduce_the_same_numbers(
    reproduced: Callable[[str], Path], backend: str, package: str
):
    require(backend, package)
    plain, spread = reproduced("processes"), reproduced(backend)
    assert len(kept(plain)) == sum(len(plan.units) for plan in plans("all", quick=True))
    assert kept(spread) == kept(plain)
    for figure in FIGURES:
        assert (spread / f"{figure}.csv").read_text() == (plain / f"{figure}.csv").read_text()


def kept(folder: Path) -> dict[str, Any]:
    """Settings and rows of every unit that a sweep has left behind."""
    units = {place.name: json.loads(place.read_text()) for place in folder.glob(".units/*.json")}
    return {name: (unit["settings"], unit["rows"]) for name, unit in units.items()}


def test_an_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="choose one of: processes, dask, ray"):
        checked_backend("spark")
