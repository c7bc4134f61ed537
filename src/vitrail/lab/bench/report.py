"""`vitrail bench`: measure, print a table, write the rows and the figure."""

from __future__ import annotations

import json as json_format
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from vitrail.lab.bench.cases import BenchRow, belief_rows, nets, survey_rows
from vitrail.lab.bench.growth import growth
from vitrail.lab.bench.measure import Ceilings, ceilings
from vitrail.updates.base import Backend

LEGEND = """\
seconds: of one update of all factors; * timed on a slice of the factors and scaled up
error²: mean squared error of log-odds messages against a reference of many draws
MiB: memory that the update allocates
per s, Philox: 16-bit draws per second, and their share of those of a bare Philox loop
speedup, efficiency: time, and time × error², against the paper's formulation of the same net"""
COMPILED: dict[str, Backend] = {"cpu": "numba", "cuda": "triton"}


def run_bench(
    device: str = "cpu",
    *,
    json: Path | None = None,
    figure: Path | None = None,
    share: float = 1.0,
) -> list[dict[str, Any]]:
    """Measure every row in this process and return them; rows of growth come last.

    share: share of the 12,665 factors to use; below 1 the ratios are rough.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("there is no CUDA device here; use --device cpu")
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(
        f"{_machine(device)}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    )
    backends: tuple[Backend, ...] = ("torch", COMPILED[device])
    ceiling = ceilings(device)
    rows = _ceiling_rows(ceiling, device)
    for net in nets(device, share):
        rows += belief_rows(net, device, backends, ceiling)
        if net.name == "linear":
            rows += survey_rows(net, device, backends)
    console.print(_table(rows))
    console.print(LEGEND)
    grown = list(growth(device, COMPILED[device]))
    for row in grown:
        console.print(f"time against {row.size}: exponent {row.exponent:.2f} in the larger half")
    found = [asdict(row) for row in rows + grown]
    if json is not None:
        json.write_text(json_format.dumps(found, indent=1) + "\n")
        console.print(f"{len(found)} rows in {json}")
    if figure is not None:
        from vitrail.lab.plots import bench_figure, save

        save(bench_figure(found), figure)
        console.print(f"figure in {figure}")
    return found


def _machine(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def _ceiling_rows(found: Ceilings, device: str) -> list[BenchRow]:
    rates = {
        "philox draws": found.lanes_per_second,
        "copied bytes": found.bytes_per_second,
        "float32 operations": found.operations_per_second,
    }
    return [
        BenchRow("", "ceiling", name, "", device, 0, 0, 1.0, per_second=rate)
        for name, rate in rates.items()
    ]


def _table(rows: Sequence[BenchRow]) -> Table:
    table = Table(title="one update of all factors", box=None, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for name in ("seconds", "error²", "MiB", "per s", "Philox", "speedup", "efficiency"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        words = (row.net, row.solver, row.update, row.samples, row.backend)
        seconds = f"{row.seconds:.4g}{'*' * row.extrapolated}" if row.factors else ""
        numbers = (
            (row.squared_error, ".3g"),
            (row.peak_bytes and row.peak_bytes / 2**20, ",.0f"),
            (row.per_second, ".1e"),
            (row.share_of_philox, ".0%"),
            (row.speedup, ",.0f"),
            (row.efficiency, ",.0f"),
        )
        cells = ("" if value is None else format(value, form) for value, form in numbers)
        table.add_row(" ".join(str(word) for word in words if word), seconds, *cells)
    return table
