from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from vitrail import memory


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 kB free of its own, its containers' files in a folder."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=8 * 1024))
    monkeypatch.setattr(memory, "CGROUPS", ((tmp_path, "memory.max", "memory.current"),))
    return tmp_path


def test_a_machine_says_what_is_free(system: Path):
    assert memory.available_memory() == 8 * 1024


def test_a_container_may_have_less_and_its_file_cache_is_free(system: Path):
    (system / "memory.max").write_text("6000\n")
    (system / "memory.current").write_text("5000\n")
    (system / "memory.stat").write_text("anon 1000\ninactive_file 3000\n")
    assert memory.available_memory() == 6000 - (5000 - 3000)
    (system / "memory.max").write_text("max\n")
    assert memory.available_memory() == 8 * 1024


def test_a_limit_of_the_process_counts(system: Path, monkeypatch: pytest.MonkeyPatch):
    resource = pytest.importorskip("resource")
    taken = SimpleNamespace(memory_info=lambda: SimpleNamespace(vms=4096))
    monkeypatch.setattr(psutil, "Process", lambda: taken)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (4596, 4596))
    assert memory.available_memory() == 500


def test_this_machine_says_what_is_free():
    assert 0 <= memory.available_memory() <= psutil.virtual_memory().total


def test_amounts_are_read_in_gigabytes():
    assert memory.in_gigabytes(12_340_000_000) == "12.3 GB"
