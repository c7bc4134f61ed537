"""Any number of ranks finds the same bits, and can take over a run from any other number.

One test, because jobs take seconds to start: fewer begin, three ranks go on where they were.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from forks import Forks
from ranks.cases import CASES, FIRST_SITTING, ROWS, batches, found, moments

from vitrail.ranks import ALONE

JOB = Path(__file__).with_name("cases.py")


def told_by(forks: Forks, size: int, folder: Path) -> list[dict[str, Any]]:
    """What every rank of a job found."""
    for rank in forks.ranks(size, JOB, folder, str(folder), LOCAL_WORLD_SIZE=str(size)):
        done = rank.ended()
        assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(size)]


def check(told: list[dict[str, Any]], alone: dict[str, Any]) -> None:
    """All ranks agree with one process, and have neither read nor told more than they may."""
    for rank in told:
        assert {name: rank[name] for name in CASES} == alone
        for read in rank["read"].values():
            assert read == pytest.approx(2 * ROWS / len(told), abs=20)  # one a window and epoch
        for update, (most, allowed) in rank["handed"].items():
            assert 0 < most <= allowed, update
        assert rank["moments"] == told[0]["moments"]
        # sums of float32, which are not exact
        assert rank["moments"] == pytest.approx(moments(ALONE), abs=1e-5)


@pytest.mark.parametrize("before", [1, pytest.param(2, marks=pytest.mark.long)])
def test_three_ranks_find_what_fewer_find(forks: Forks, tmp_path: Path, before: int):
    alone = {name: case(ALONE) for name, case in CASES.items()}
    fewer, three = tmp_path / "fewer", tmp_path / "three"
    fewer.mkdir()
    three.mkdir()

    if before == 1:
        batches(ALONE, checkpoint=fewer / "of-1.ckpt", max_steps=FIRST_SITTING)
    else:
        check(told_by(forks, before, fewer), alone)
    shutil.copy(fewer / f"of-{before}.ckpt", three / "given.ckpt")
    told = told_by(forks, 3, three)
    check(told, alone)
    assert [rank["resumed"] for rank in told] == [alone["batches"]] * 3

    resumed = batches(ALONE, checkpoint=three / "of-3.ckpt")
    assert resumed.steps > FIRST_SITTING
    assert found(resumed) == alone["batches"]
