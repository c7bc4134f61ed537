from pathlib import Path

import pytest

from vitrail import memory


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 kB free of its own, its files in a folder."""
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable: 8 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
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
    (system / "statm").write_text("1 1 1 1 0 1 0\n")
    monkeypatch.setattr(memory, "STATM", system / "statm")
    page = resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (page + 500, page + 500))
    assert memory.available_memory() == 500


def test_a_system_that_does_not_say_gives_none(system: Path):
    (system / "meminfo").unlink()
    assert memory.available_memory() is None


def test_amounts_are_read_in_gigabytes():
    assert memory.in_gigabytes(12_340_000_000) == "12.3 GB"
