"""Kernels compiled from other sources than these are not used."""

import os

from vitrail.kernels.cpu import remove_stale


def test_kernels_older_than_any_source_are_forgotten(tmp_path):
    compiled = tmp_path / "__pycache__"
    compiled.mkdir()
    for name, age in {"a.py": 30, "b.py": 10}.items():
        (tmp_path / name).touch()
        _aged(tmp_path / name, age)
    for name, age in {"a.1.nbi": 20, "a.1.nbc": 20, "b.1.nbi": 5, "a.cpython.pyc": 20}.items():
        (compiled / name).touch()
        _aged(compiled / name, age)
    remove_stale(tmp_path)
    assert sorted(path.name for path in compiled.iterdir()) == ["a.cpython.pyc", "b.1.nbi"]


def test_a_clock_that_was_set_back_makes_nobody_compile_forever(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "a.py").touch()
    _aged(tmp_path / "a.py", -3600)
    (tmp_path / "__pycache__" / "a.1.nbi").touch()
    remove_stale(tmp_path)
    assert (tmp_path / "__pycache__" / "a.1.nbi").exists()


def test_a_folder_without_kernels_is_left_alone(tmp_path):
    remove_stale(tmp_path / "absent")
    assert not list(tmp_path.iterdir())


def _aged(path, seconds):
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))
