"""Threads of pyarrow's have let go of a file when its reader returns, however it ends."""

import gzip
import io
import random
import time
from pathlib import Path

import pytest
from fuzz.commands import Case, ragged, run

from vitrail.errors import DataError
from vitrail.tables import delimited
from vitrail.tables.table import iter_table, read_table

BLOCK = 1 << 12
ROWS = b"1,2,x\n" * (5 * BLOCK)


class Slow(io.BufferedReader):
    """A file whose blocks after the second take a while."""

    reads = 0
    inside = 0

    def read(self, size: int | None = -1) -> bytes:
        Slow.reads += 1
        Slow.inside += 1
        time.sleep(0.1 * (Slow.reads > 2))
        try:
            return super().read(size)
        finally:
            Slow.inside -= 1


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Slow, "reads", 0)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", BLOCK)
    monkeypatch.setattr(delimited.io, "BufferedReader", Slow)


@pytest.mark.parametrize(
    "fault", [b"3,4\n", b"\xff,4,y\n", b"\xff,4\n"], ids=["ragged", "no text", "both"]
)
def test_no_thread_reads_on_after_a_fault(tmp_path: Path, slow: None, fault: bytes):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b,kind\n" + fault + ROWS)
    with pytest.raises(DataError, match="line 2"):
        read_table(path)
    reads = Slow.reads
    assert (Slow.inside, reads < 9) == (0, True)
    time.sleep(0.2)
    assert Slow.reads == reads


def test_no_thread_reads_on_after_a_stop_in_the_middle(tmp_path: Path, slow: None):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b,kind\n" + ROWS)
    assert len(next(iter(iter_table(path))))  # the reader goes with its last reference
    reads = Slow.reads
    assert Slow.inside == 0
    time.sleep(0.2)
    assert Slow.reads == reads


def test_an_error_of_the_file_itself_is_told_at_once(tmp_path: Path):
    path = tmp_path / "t.csv.gz"
    packed = gzip.compress(b"a,b,kind\n" + ROWS * 100, 1)
    path.write_bytes(packed[: len(packed) // 2])
    begun = time.monotonic()
    with pytest.raises(DataError, match="damaged gzip file"):
        read_table(path)
    assert time.monotonic() - begun < 2.0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_the_command_ends_with_2_after_a_bad_csv(tmp_path: Path, seed: int):
    (tmp_path / "t.csv").write_bytes(ragged(random.Random(seed)))
    done = run(Case(("fit", "t.csv", "--target", "kind")), tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert done.stderr.startswith("error: t.csv, line ")
