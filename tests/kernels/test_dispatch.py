"""Which backend serves: auto may fall back, a named one fails loudly."""

import os
import signal
import sys
import threading

import pytest
import torch
from cases_of_kernels import perceptrons
from oracles import random_table

from vitrail import interrupts
from vitrail.kernels import dispatch
from vitrail.kernels.cpu import compiled
from vitrail.random import Key
from vitrail.updates import flip


@pytest.fixture
def cavity():
    return torch.zeros(2, 1, 3, dtype=torch.float64)


def test_auto_falls_back_where_there_is_no_kernel(cavity):
    table = random_table(0, 2, 3, 1.0)
    one = flip(5).estimate(Key(0), table, cavity)
    two = flip(5, backend="torch").estimate(Key(0), table, cavity)
    assert torch.equal(one.log_one, two.log_one)


def test_a_named_backend_without_a_kernel_says_what_to_do(cavity):
    with pytest.raises(dispatch.BackendError, match=r"no kernel for flip on these Table.*'torch'"):
        flip(5, backend="numba").estimate(Key(0), random_table(0, 2, 3, 1.0), cavity)


def test_a_named_backend_on_the_wrong_device_says_where_it_runs(cavity):
    with pytest.raises(
        dispatch.BackendError, match="'triton' runs on cuda, the factors are on cpu"
    ):
        flip(5, backend="triton").estimate(Key(0), perceptrons(2, 3), cavity)


def test_an_unknown_backend_is_refused_with_the_list():
    with pytest.raises(ValueError, match="unknown backend 'fpga'; choose one of: auto"):
        flip(5, backend="fpga")  # pyright: ignore[reportArgumentType] (meant)


def test_a_missing_package_stops_only_the_named_backend(monkeypatch):
    monkeypatch.setitem(dispatch.KERNELS, "flip", {"numba": "vitrail.kernels.no_such_kernel"})
    monkeypatch.setattr(dispatch, "LANES_BEFORE_LOADING", 0)
    assert dispatch.find("flip", "auto", perceptrons(2, 3), 10, 5) is None
    with pytest.raises(dispatch.BackendError, match=r"not installed .*install numba"):
        dispatch.find("flip", "numba", perceptrons(2, 3), 10, 5)


def test_small_work_does_not_wait_for_a_compiler(monkeypatch):
    monkeypatch.delitem(sys.modules, "vitrail.kernels.cpu.flip", raising=False)
    monkeypatch.setattr(dispatch, "_drawn", 0)
    asked = []
    monkeypatch.setattr("importlib.import_module", asked.append)
    assert dispatch.find("flip", "auto", perceptrons(2, 3), 1000, 5) is None
    assert asked == []


@pytest.fixture(autouse=True)
def nobody_was_told(monkeypatch):
    """Compiling is said once in a process."""
    monkeypatch.setattr(compiled._STORE, "_announced", False)


def test_kernels_are_compiled_when_they_are_called_and_long_work_is_announced(monkeypatch, capsys):
    monkeypatch.setattr(compiled, "ANNOUNCE_AFTER", 0.0)
    calls = []

    def slow(signature, **options):
        calls.append(signature)
        threading.Event().wait(0.3)
        return lambda function: function

    monkeypatch.setattr(compiled, "njit", slow)

    @compiled.compiled("int64(int64)")
    def twice(number):
        return 2 * number

    assert calls == []
    assert [twice(3), twice(4)] == [6, 8]
    assert calls == ["int64(int64)"]
    assert "compiling kernels" in capsys.readouterr().err


def test_a_stop_does_not_wait_for_a_compiler(monkeypatch, capsys):
    monkeypatch.setattr(compiled, "ANNOUNCE_AFTER", 0.1)
    monkeypatch.setattr(compiled, "njit", lambda *_, **__: threading.Event().wait(30))
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with interrupts.defer_stop(), pytest.raises(KeyboardInterrupt):
        compiled.compiled("int64()")(lambda: 1)()
    assert "compiling kernels" in capsys.readouterr().err


def test_without_a_writable_folder_kernels_are_compiled_but_not_kept(monkeypatch, capsys):
    monkeypatch.setattr(compiled, "_STORE", compiled._Store())
    kept = []

    def njit(signature, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function 'settle': no locator available for file")
        kept.append(signature)
        return lambda function: function

    monkeypatch.setattr(compiled, "njit", njit)
    for number in range(2):
        assert compiled.compiled("int64()")(lambda number=number: number)() == number
    assert len(kept) == 2
    assert capsys.readouterr().err.count("no writable folder") == 1
