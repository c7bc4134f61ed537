"""`torchrun -m vitrail fit`: one model, told once, the same as without ranks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vitrail import load_model
from vitrail.cli import main
from vitrail.datasets import glass

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def table(folder: Path) -> Path:
    place = folder / "table.csv"
    rows = (glass(60, 9, seed=4).inputs > 0).int()
    lines = [",".join(map(str, [*row, "many" if sum(row[:5]) > 2 else "few"])) for row in
             rows.tolist()]  # fmt: skip
    place.write_text("\n".join([",".join([*(f"x{i}" for i in range(9)), "label"]), *lines]))
    return place


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        (["--solver=sbp", "--hidden=3"], ["--checkpoint=run"]),
        pytest.param(["--memory=2GiB", "--hidden=3"], [], marks=pytest.mark.long, id="a stream"),
    ],
)
def test_ranks_save_the_model_of_one_process(tmp_path: Path, settings: list[str], more: list[str]):
    how = ["fit", str(table(tmp_path)), "--target=label", *settings]
    one, two = tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    with pytest.raises(SystemExit) as ended:
        main([*how, "-o", str(one)])
    assert not ended.value.code
    done = subprocess.run(
        [*TORCHRUN, "-m", "vitrail", *how, *more, "-o", str(two)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("model: ") == 1
    assert sorted(place.name for place in tmp_path.iterdir()) == [one.name, "table.csv", two.name]
    left, right = load_model(one), load_model(two)
    for name in ("best", "marginals", "networks", "votes", "calibration"):
        assert torch.equal(getattr(left, name), getattr(right, name)), name
    assert left.thresholds == right.thresholds
    changing = {"seconds", "rows_per_second"}
    assert {k: v for k, v in left.record.items() if k not in changing} == {
        k: v for k, v in right.record.items() if k not in changing
    }


def test_other_commands_are_refused_in_one_line(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "vitrail", "info", "model.safetensors"],
        env={**os.environ, "WORLD_SIZE": "2", "RANK": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: only `vitrail fit` works over ranks")
