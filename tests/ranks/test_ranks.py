"""Any number of ranks finds the same bits, and can take over a run from any other number."""

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ranks.cases import CASES, FIRST_SITTING, batches, found, moments

from vitrail.ranks import ALONE

JOB = Path(__file__).with_name("cases.py")


@cache
def alone(case: str) -> dict[str, Any]:
    return CASES[case](ALONE)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[dict[str, Any]]]:
    """What every rank of jobs of two and three found; three resume what two began."""
    found, given = {}, None
    for size in (2, 3):
        folder = tmp_path_factory.mktemp(f"ranks-{size}")
        if given is not None:
            shutil.copy(given, folder / "given.ckpt")
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command = [*launch, f"--nproc-per-node={size}", str(JOB), str(folder)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=200, env=dict(os.environ)
        )
        assert done.returncode == 0, done.stderr[-3000:]
        given = folder / f"of-{size}.ckpt"
        found[size] = [json.loads((folder / f"{r}.json").read_text()) for r in range(size)]
        found[size][0]["checkpoint"] = str(given)
    return found


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_ranks_find_what_one_process_finds(told, size: int, case: str):
    assert [rank[case] for rank in told[size]] == [alone(case)] * size


@pytest.mark.parametrize("size", [2, 3])
def test_streaming_by_moments_agrees_to_the_last_bits_of_float32(told, size: int):
    for rank in told[size]:
        assert rank["moments"] == told[size][0]["moments"]
        assert rank["moments"] == pytest.approx(moments(ALONE), abs=1e-5)


@pytest.mark.parametrize("size", [2, 3])
def test_a_step_of_belief_propagation_hands_over_little(told, size: int):
    for rank in told[size]:
        assert 0 < rank["handed"]["bytes"] <= rank["handed"]["bound"]


def test_three_ranks_go_on_where_two_were(told):
    assert [rank["resumed"] for rank in told[3]] == [alone("batches")] * 3


@pytest.mark.parametrize("size", [2, 3])
def test_one_process_goes_on_where_ranks_were(told, size: int, tmp_path: Path):
    place = shutil.copy(told[size][0]["checkpoint"], tmp_path / "run.ckpt")
    resumed = batches(ALONE, checkpoint=place)
    assert resumed.steps > FIRST_SITTING
    assert found(resumed) == alone("batches")
