"""Ranks that are killed, hang or are told to go: the job ends in a sentence, and can go on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forks import Fork, Forks
from ranks.cases import CASES, STEPS, batches, found
from torch.distributed import HashStore  # pyright: ignore[reportPrivateImportUsage]

from vitrail import ranks
from vitrail.ranks import ALONE, RESPONSE_TIME
from vitrail.solvers.checkpoint import read

JOB = Path(__file__).with_name("faulty.py")
# as torchrun says of ranks that all are on this machine
WIRED: dict[str, Any] = {"LOCAL_WORLD_SIZE": "2"}


@pytest.fixture
def start(forks: Forks, tmp_path: Path) -> Callable[..., list[Fork]]:
    """Two ranks without torchrun, so that each can be signalled and asked for its exit code."""

    def ranks(fault: str, at: int, **more: str) -> list[Fork]:
        return forks.ranks(2, JOB, tmp_path, str(tmp_path), fault, str(at), **more)

    return ranks


def ended(job: list[Fork]) -> list[tuple[int, str]]:
    return [(done.returncode, done.stderr) for done in (rank.ended(60) for rank in job)]


def resumed(folder: Path) -> dict[str, Any]:
    return found(batches(ALONE, checkpoint=folder / "run.ckpt"))


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return CASES["batches"](ALONE)


@pytest.mark.long
@pytest.mark.parametrize("size", [2, 3])
def test_a_killed_rank_is_named_and_the_job_restarts_to_the_same_end(tmp_path: Path, whole, size):
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts=1"]
    job = [*launch, f"--nproc-per-node={size}", str(JOB), str(tmp_path), "kill", "11"]
    done = subprocess.run(job, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    # the others say it, unless the launcher ends them first, which then says it itself
    last = size - 1
    said = (
        f"rank {last} of {size} ended or cannot be reached",
        f"(exitcode: -9) local_rank: {last}",
    )
    assert any(sentence in done.stderr for sentence in said)
    assert json.loads((tmp_path / "found.json").read_text()) == whole


@pytest.mark.parametrize("means", [{}, WIRED], ids=["gloo", "sockets"])
def test_a_killed_rank_ends_the_job(tmp_path: Path, start, whole, means):
    (kept, said), (killed, _) = ended(start("kill", 10, **means))
    assert killed == -signal.SIGKILL
    assert kept == 1
    assert "rank 1 of 2 ended or cannot be reached" in said
    assert read(tmp_path / "run.ckpt")[1]["step"] == 8
    assert resumed(tmp_path) == whole


def test_a_rank_that_hangs_is_noticed_in_time(tmp_path: Path, start):
    waiting, hanging = start("hang", 10, VITRAIL_RANK_TIMEOUT="2", **WIRED)
    until(tmp_path / "step.1", 10)
    begun = time.monotonic()
    [(_, said)] = ended([waiting])
    assert time.monotonic() - begun < 2 + RESPONSE_TIME + 5  # a busy machine
    assert "rank 1 of 2 did not answer" in said
    os.kill(hanging.pid, signal.SIGTERM)
    assert ended([hanging])[0][0] == 143


def test_sigterm_leaves_the_last_checkpoint_and_ends_with_143(tmp_path: Path, start, whole):
    job = start("slow", 0)
    until(tmp_path / "step.0", 10)
    for rank in job:
        os.kill(rank.pid, signal.SIGTERM)
    assert [code for code, _ in ended(job)] == [143, 143]
    step = read(tmp_path / "run.ckpt")[1]["step"]
    assert 8 <= step < STEPS
    assert step % 4 == 0
    assert resumed(tmp_path) == whole


@pytest.mark.parametrize("answers", [True, False])
def test_a_rank_that_a_launcher_ends_names_the_one_that_was_lost(monkeypatch, capfd, answers):
    """Launchers end all ranks when one is lost, which may come before the next collective."""
    monkeypatch.setattr(ranks, "RESPONSE_TIME", 0.1)
    store = HashStore()
    if answers:
        store.set("vitrail/present/1", "")
    with pytest.raises(SystemExit) as ended:
        ranks._Membership(ranks.World(0, 2), store).stop(signal.SIGTERM, None)
    assert ended.value.code == 143
    said = "error: stopped by SIGTERM, while rank 1 of 2 does not answer\n"
    assert capfd.readouterr().err == ("" if answers else said)


def until(place: Path, step: int) -> None:
    """Wait until a rank has got there."""
    end = time.monotonic() + 60
    while not (place.exists() and int(place.read_text() or 0) >= step):
        assert time.monotonic() < end, "the job did not get there"
        time.sleep(0.01)
