"""`vitrail bench` writes rows with every documented column, and growth with its exponent."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from vitrail.lab.bench import measure, report
from vitrail.lab.bench.cases import BenchRow
from vitrail.lab.bench.growth import exponent
from vitrail.lab.bench.measure import Ceilings

COLUMNS = {
    "net", "solver", "update", "backend", "device", "samples", "seconds", "squared_error",
    "peak_bytes", "speedup", "efficiency",
}  # fmt: skip


def row(update: str, seconds: float) -> BenchRow:
    return BenchRow(
        "linear", "bp", update, "torch", "cpu", 5, 10, seconds, 0.1, None, None, None, 2, 3
    )


@pytest.fixture
def without_measuring(monkeypatch):
    monkeypatch.setattr(report, "ceilings", lambda device: Ceilings(1e9, 1e10, 1e11))
    monkeypatch.setattr(report, "nets", lambda device, share: [])
    grown = replace(row("flip", 10), size="factors", exponent=1.0)
    monkeypatch.setattr(report, "growth", lambda device, backend: [grown])


def test_rows_are_written_with_every_column(without_measuring, tmp_path, capsys):
    report.run_bench(json=tmp_path / "rows.json")
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert rows
    assert all(row.keys() >= COLUMNS for row in rows)
    assert rows[-1]["exponent"] == 1.0
    assert "exponent 1.00" in capsys.readouterr().out


def test_the_table_marks_what_was_extrapolated():
    out = io.StringIO()
    slow = BenchRow(
        "conv", "bp", "paper", "torch", "cpu", 5, 10, 60.0, 1, 1, None, None, 1, 1, True
    )
    Console(file=out, width=120).print(report._table([row("flip", 0.25), slow]))
    assert "60*" in out.getvalue()
    assert "0.25 " in out.getvalue()


def test_without_a_gpu_cuda_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ValueError, match="use --device cpu"):
        report.run_bench("cuda")


def test_linear_time_has_exponent_one():
    assert exponent([10, 100, 1000], [3e-6, 3e-5, 3e-4]) == pytest.approx(1.0)


def test_time_and_memory_of_a_call_are_measured():
    held = []
    found = measure.measured(lambda: held.append(bytearray(2**24)) or held.clear(), "cpu", 0.01)
    assert found.seconds > 0
    assert found.peak_bytes is None or found.peak_bytes >= 2**23
