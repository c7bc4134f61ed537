"""`torchrun -m vitrail fit`: one model, told once, the same as without ranks."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import torch
from forks import Forks

from vitrail import load_model
from vitrail.cli import main
from vitrail.datasets import glass

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
SEARCH = ["--solver=sbp", "--hidden=3", "--checkpoint=run"]
STREAM = ["--memory=2GiB", "--hidden=3"]


Run = Callable[..., list[CompletedProcess[str]]]


def table(folder: Path) -> Path:
    place = folder / "table.csv"
    rows = (glass(60, 9, seed=4).inputs > 0).int()
    lines = [",".join(map(str, [*row, "many" if sum(row[:5]) > 2 else "few"])) for row in
             rows.tolist()]  # fmt: skip
    place.write_text("\n".join([",".join([*(f"x{i}" for i in range(9)), "label"]), *lines]))
    return place


@pytest.fixture
def forked(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The command as two ranks without torchrun."""

    def run(*arguments: str) -> list[CompletedProcess[str]]:
        folder = tmp_path_factory.mktemp("ranks")
        script = folder / "command.py"
        script.write_text("from vitrail.cli import main\nmain()\n")
        return [rank.ended() for rank in forks.ranks(2, script, folder, *arguments)]

    return run


@pytest.fixture
def torchrun(tmp_path: Path) -> Run:
    def run(*arguments: str) -> list[CompletedProcess[str]]:
        command = [*TORCHRUN, "-m", "vitrail", *arguments]
        return [subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)]

    return run


@pytest.mark.parametrize(
    ("by", "settings"),
    [
        pytest.param("forked", SEARCH, id="forked"),
        pytest.param("torchrun", SEARCH, marks=pytest.mark.long, id="torchrun"),
        pytest.param("torchrun", STREAM, marks=pytest.mark.long, id="torchrun, a stream"),
    ],
)
def test_ranks_save_the_model_of_one_process(
    request: pytest.FixtureRequest, tmp_path: Path, by: str, settings: list[str]
):
    how = ["fit", str(table(tmp_path)), "--target=label"]
    one, two = tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    with pytest.raises(SystemExit) as ended:
        main([*how, *settings[:2], "-o", str(one)])
    assert not ended.value.code
    done = request.getfixturevalue(by)(*how, *settings, "-o", str(two))
    assert not any(rank.returncode for rank in done), done[0].stderr[-3000:]
    assert sum(rank.stdout.count("model: ") for rank in done) == 1
    assert sorted(place.name for place in tmp_path.iterdir()) == [one.name, "table.csv", two.name]
    left, right = load_model(one), load_model(two)
    for name in ("best", "marginals", "networks", "votes", "calibration"):
        assert torch.equal(getattr(left, name), getattr(right, name)), name
    assert left.thresholds == right.thresholds
    changing = {"seconds", "rows_per_second"}
    assert {k: v for k, v in left.record.items() if k not in changing} == {
        k: v for k, v in right.record.items() if k not in changing
    }


def test_other_commands_are_refused_in_one_line(monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(SystemExit) as ended:
        main(["info", "model.safetensors"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: only `vitrail fit` runs on ranks")
