import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.errors import DataError
from vitrail.output import atomic_output, check_writable
from vitrail.tables.table import Table, iter_table, read_table
from vitrail.tables.writing import check_table_output, write_table


def table_of(**columns: list) -> Table:
    return Table(pa.table(columns))


def failing(first: Table) -> Iterator[Table]:
    yield first
    raise DataError("the second batch is bad")


# Tables.

TEXT = st.text(st.characters(exclude_characters="\0\r", codec="utf-8"), max_size=6)


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.parquet"])
@given(rows=st.lists(st.tuples(TEXT, TEXT), max_size=8))
def test_text_comes_back_as_it_was(tmp_path_factory, name: str, rows: list):
    path = tmp_path_factory.mktemp("text") / name
    columns = {"a": [a for a, _ in rows], "b b": [b for _, b in rows]}
    table = Table(pa.table({key: pa.array(column, pa.string()) for key, column in columns.items()}))
    write_table(path, table)
    again = read_table(path)
    assert {key: again[key].tolist() for key in again.columns} == columns


def test_batches_are_written_as_one_table(tmp_path: Path):
    source = tmp_path / "in.csv"
    source.write_text("a,b\n" + "".join(f"{i},{i % 3}\n" for i in range(50)))
    for name in ("out.csv", "out.parquet"):
        write_table(tmp_path / name, iter_table(source, 8))
        assert read_table(tmp_path / name)["a"].tolist() == [str(i) for i in range(50)]
    assert (tmp_path / "out.csv").read_text() == source.read_text()


def test_cells_are_quoted_only_where_they_must_be(tmp_path: Path):
    path = tmp_path / "out.csv"
    write_table(path, table_of(a=["x", "1,5", 'say "no"', "two\nlines", ""]))
    assert path.read_bytes() == b'a\nx\n"1,5"\n"say ""no"""\n"two\nlines"\n""\n'


def test_numbers_are_written_short_and_gaps_empty(tmp_path: Path):
    path = tmp_path / "out.csv"
    columns = {
        "f": pa.array([0.1, 1.0, None, float("nan")]),
        "s": pa.array(np.array([0.1, 2, 3, 4], np.float32)),
        "i": pa.array([1, None, 3, 4]),
        "b": pa.array([True, False, None, True]),
    }
    write_table(path, Table(pa.table(columns)))
    assert path.read_text() == "f,s,i,b\n0.1,0.1,1,true\n1.0,2.0,,false\n,3.0,3,\n,4.0,4,true\n"


def test_values_without_a_text_are_refused_by_csv_and_kept_by_parquet(tmp_path: Path):
    table = table_of(a=[[1, 2], [3]])
    with pytest.raises(DataError, match="column 'a' holds list"):
        write_table(tmp_path / "out.csv", table)
    assert list(tmp_path.iterdir()) == []
    write_table(tmp_path / "out.parquet", table)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_failure_leaves_what_was_there(tmp_path: Path, name: str):
    path = tmp_path / name
    with pytest.raises(DataError, match="second batch"):
        write_table(path, failing(table_of(a=[1])))
    assert list(tmp_path.iterdir()) == []
    path.write_text("before")
    with pytest.raises(DataError, match="second batch"):
        write_table(path, failing(table_of(a=[1])))
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "before")]


def test_standard_output_gets_all_or_nothing(capfdbinary: pytest.CaptureFixture[bytes]):
    write_table("-", table_of(a=["x", "é"]))
    assert capfdbinary.readouterr().out == "a\nx\né\n".encode()
    with pytest.raises(DataError, match="second batch"):
        write_table("-", failing(table_of(a=[1])))
    assert capfdbinary.readouterr().out == b""


def test_a_reader_that_has_enough_is_no_error():
    script = (
        "import pyarrow as pa\n"
        "from vitrail.tables.table import Table\n"
        "from vitrail.tables.writing import write_table\n"
        "write_table('-', Table(pa.table({'a': list(range(100_000))})))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"a\n"
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as errors:
        assert errors.read() == b""
    assert process.wait(timeout=60) == 0


def test_outputs_of_no_format_or_no_place_are_refused_before_work(tmp_path: Path):
    check_table_output("-")
    check_table_output(os.devnull)
    check_table_output(tmp_path / "out.csv")
    with pytest.raises(DataError, match=r"let it end in \.csv, \.tsv or \.parquet"):
        check_table_output(tmp_path / "out.xyz")
    with pytest.raises(DataError, match=r"there is no folder .*absent; create it"):
        check_table_output(tmp_path / "absent" / "out.csv")
    assert list(tmp_path.iterdir()) == []


# Files that appear whole.


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path):
    with pytest.raises(DataError, match="it is a folder; give a file name"):
        check_writable(tmp_path)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(DataError, match="there is no folder"):
        check_writable(file / "out.csv")


def test_a_place_without_permission_is_told(tmp_path: Path):
    file = tmp_path / "out.csv"
    file.touch(0o444)
    if os.access(file, os.W_OK):
        pytest.skip("this user may write anywhere")
    with pytest.raises(DataError, match=r"cannot write .*out\.csv: permission denied"):
        check_writable(file)
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(DataError, match=r"(?i)cannot write .*new\.csv: permission denied"):
            check_writable(tmp_path / "new.csv")
    finally:
        tmp_path.chmod(0o755)


def test_an_output_appears_when_it_is_whole(tmp_path: Path):
    path = tmp_path / "out"
    with atomic_output(path) as stream:
        stream.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_leaves_nothing(tmp_path: Path):
    def interrupted() -> None:
        with atomic_output(tmp_path / "out") as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_links_are_followed_and_permissions_kept(tmp_path: Path):
    path, link = tmp_path / "real", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with atomic_output(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_device_is_written_directly():
    with atomic_output(os.devnull) as stream:
        stream.write(b"gone")
    assert not Path(os.devnull).is_file()


def test_a_full_disk_is_told_with_the_path(tmp_path: Path):
    path = tmp_path / "out.csv"
    path.write_bytes(b"before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(DataError, match=r"cannot write .*out\.csv: File too large; choose"):
            write_table(path, table_of(a=["x" * 1000] * 1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("out.csv", b"before")]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_device_is_told_with_its_path():
    with (
        pytest.raises(DataError, match="cannot write /dev/full: No space left on device"),
        atomic_output("/dev/full") as stream,
    ):
        stream.write(b"some")
