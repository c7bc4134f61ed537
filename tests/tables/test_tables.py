import contextlib
import gc
import gzip
import io
import os
import re
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from idx_files import idx_bytes
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from vitrail import memory
from vitrail.errors import DataError, TableTooLargeError
from vitrail.tables import delimited
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.frames import places
from vitrail.tables.table import Table, iter_table, read_table


def rows_of(table: Table) -> list[tuple]:
    return list(zip(*(table[name].tolist() for name in table.columns), strict=True))


def written(folder: Path, content: bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


# CSV and TSV.


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"a,b\n1.0,001\n1, x \n", [("1.0", "001"), ("1", " x ")]),
        (b'a,b\n"x,""y""\nz",\n', [('x,"y"\nz', "")]),
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n", [("1", "2")]),
        (b"a,b\n1,2\n\n3,4\n\n", [("1", "2"), ("3", "4")]),
        (b"\na,b\n1,2", [("1", "2")]),
        (b"a;b\n1,5;2\n", [("1,5", "2")]),
        (b"a\tb\n1\t2\n", [("1", "2")]),
        (b"a|b\n1|2\n", [("1", "2")]),
        (b"a,b\nNA,null\n", [("NA", "null")]),
        (b"a,b\n", []),
        ('a,b\né,"日本"\n'.encode(), [("é", "日本")]),
    ],
    ids=repr,
)
def test_csv_cells_stay_the_text_they_were(tmp_path: Path, content: bytes, rows: list):
    table = read_table(written(tmp_path, content))
    assert table.columns == ["a", "b"]
    assert rows_of(table) == rows


def test_names_of_columns_are_read_without_the_spaces_around_them(tmp_path: Path):
    table = read_table(written(tmp_path, b"height, kind ,\n1, x ,2\n"))
    assert table.columns == ["height", "kind", ""]
    assert table["kind"].tolist() == [" x "]


def test_columns_may_be_numbered(tmp_path: Path):
    for first in (0, 1):
        names = [str(first + i) for i in range(5)]
        path = written(tmp_path, ",".join([*names, "label"]).encode() + b"\n1,2,3,4,5,x\n")
        assert read_table(path).columns == [*names, "label"]


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "data.tsv"])
def test_a_file_is_opened_and_read_once(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    delimiter = "\t" if name.endswith("tsv") else ","
    text = f"a{delimiter}b\n" + "".join(f"{i}{delimiter}{i}\n" for i in range(3_000))
    path = written(tmp_path, text.encode(), name)
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    opened, parsed = [], []
    files_open, open_csv = open, arrow_csv.open_csv

    def counted_open(file: Any, *rest: Any, **options: Any) -> Any:
        opened.append(file)
        return files_open(file, *rest, **options)

    def counted_parse(*rest: Any, **options: Any) -> Any:
        parsed.append(1)
        return open_csv(*rest, **options)

    monkeypatch.setattr("builtins.open", counted_open)
    monkeypatch.setattr("io.open", counted_open)
    monkeypatch.setattr(arrow_csv, "open_csv", counted_parse)
    assert len(read_table(path)) == 3_000
    monkeypatch.undo()
    assert [file for file in opened if file == path] == [path]
    assert len(parsed) == 1


def test_tsv_takes_commas_as_text(tmp_path: Path):
    table = read_table(written(tmp_path, b"a\tb\n1,5\t2\n", "data.tsv"))
    assert rows_of(table) == [("1,5", "2")]


def test_gzipped_csv_is_read(tmp_path: Path):
    path = written(tmp_path, gzip.compress(b"a,b\n1,2\n"), "data.csv.gz")
    assert rows_of(read_table(path)) == [("1", "2")]


def test_a_column_without_delimiter_is_one_column(tmp_path: Path):
    assert rows_of(read_table(written(tmp_path, b"a\n1\n2\n"))) == [("1",), ("2",)]


def test_a_pipe_is_csv(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(pipe.write_bytes, b"a,b\n1,2\n")
        assert rows_of(read_table(pipe)) == [("1", "2")]


def test_standard_input_is_csv(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    assert rows_of(read_table("-")) == [("1", "2")]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty; expected a header"),
        (b"\n\n", "is empty; expected a header"),
        (b"a,b\n1,2\n3\n", "line 3: expected 2 fields as in the header, found 1"),
        (b"a,b\n1,2\n3,4,5\n", "line 3: expected 2 fields as in the header, found 3"),
        (b'a,b\n"x\ny",2\n3\n', "line 4: expected 2 fields"),
        (b'a,b\n\n1,"x\ny",2\n', "line 3: expected 2 .* found 3; the row goes on to line 4"),
        (b'a,b\n1,2\n"3,4\n5,6"\n7,8\n', "line 3: expected 2 .* the row goes on to line 4"),
        (b'a,b\n1,"2\n3,4\n', "line 2: .*quote"),
        (b'a,"b\n1,2\n', "a quote in the header is never closed"),
        (b"a,b,a\n1,2,3\n", "column name 'a' occurs more than once"),
        (b"5.1,3.5,setosa\n4.9,3.0,setosa\n", "found numbers such as '5.1'; add a line of names"),
        (b"a,b\n1,2\n\xe9,4\n", "line 3: not UTF-8"),
        (b"\xe9,b\n1,2\n", "not UTF-8 text in its first line"),
        (bytes(range(256)), "binary data"),
        ("a,b\n1,2\n".encode("utf-16"), "binary data"),
        (b"a,b\r1,2\r", "bare carriage returns"),
        (b"x" * 200_000, "has no header of a table"),
        (b"\x1f\x8bgarbage", "damaged gzip"),
        (gzip.compress(b"a,b\n" + bytes(range(65, 90)) * 99, mtime=0)[:-20], "damaged gzip|fields"),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_a_csv_that_cannot_be_read_says_why_in_a_line(
    tmp_path: Path, content: bytes, complaint: str
):
    with pytest.raises(DataError, match=complaint) as caught:
        read_table(written(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there_say_so(tmp_path: Path):
    with pytest.raises(DataError, match="not found; check the path"):
        read_table(tmp_path / "data.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(DataError, match=r"cannot tell the format .*\.csv, \.tsv"):
        read_table(written(tmp_path, b"a\n1\n", "data.xyz"))
    with pytest.raises(DataError, match="cannot be read from standard input"):
        read_table("-", "parquet")


def test_a_format_given_overrides_the_name(tmp_path: Path):
    path = written(tmp_path, b"a\tb\n1,5\t2\n", "data.txt")
    assert rows_of(read_table(path, "tsv")) == [("1,5", "2")]


# Batches.


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "data.npz"])
def test_batches_are_the_table(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1000)
    path = tmp_path / name
    numbers = np.arange(700)
    if name.endswith("csv"):
        path.write_text("a,b\n" + "".join(f"{i},word{i % 7}\n" for i in numbers))
    elif name.endswith("parquet"):
        parquet.write_table(pa.table({"a": numbers}), path)
    else:
        np.savez(path, X=numbers[:, None])
    batches = list(iter_table(path, batch_rows=64))
    assert max(map(len, batches)) <= 64
    assert [batch.start for batch in batches] == list(
        np.cumsum([0, *(len(batch) for batch in batches[:-1])])
    )
    assert [row for batch in batches for row in rows_of(batch)] == rows_of(read_table(path))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_a_file_can_be_left_in_the_middle(
    tmp_path: Path, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 2_000)
    content = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(50_000))
    path = written(tmp_path, pack(content))
    for _ in range(20):
        for batch in iter_table(path):
            assert len(batch) > 0
            break


def test_a_file_without_rows_gives_one_empty_batch(tmp_path: Path):
    (batch,) = iter_table(written(tmp_path, b"a,b\n"))
    assert batch.columns == ["a", "b"]
    assert len(batch) == 0


BROKEN_LINES = b'x,"two\nlines"\n\n1,a\n\n2,"b\nc"\n\r\n3,d\n"4",\n'


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_rows_are_named_by_the_lines_of_their_file(tmp_path: Path, name: str):
    path = written(tmp_path, BROKEN_LINES, name)
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(BROKEN_LINES))
    lines = ["line 4", "line 6", "line 9", "line 10"]
    table = read_table(path)
    assert [table.place(row) for row in range(4)] == lines
    assert [table.place(row) for row in (3, 0, 2)] == [lines[3], lines[0], lines[2]]
    assert [table.take([2, 1]).take([1]).place(0)] == [lines[1]]
    batches = [batch.place(row) for batch in iter_table(path, 3) for row in range(len(batch))]
    assert batches == lines
    with pytest.raises(DataError, match="missing in 1 of 4 rows, first in line 10"):
        table.labels(table.columns[1])


def test_words_for_nothing_are_no_labels_in_text_and_labels_in_typed_files(tmp_path: Path):
    columns = {"x": [1, 2, 3, 4], "land": ["NA", "DE", "NA", "DE"]}
    path = written(tmp_path, b"x,land\n1,NA\n2,DE\n3,NA\n4,DE\n")
    for table in (read_table(path), *iter_table(path)):
        with pytest.raises(DataError, match="missing in 2 of 4 rows, first in line 2"):
            table.labels("land")
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").labels("land").tolist() == columns["land"]


def test_only_blanks_are_stripped_from_names_of_columns(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_text(" a\t,\u00a0b,c\u3000\n1,2,3\n", encoding="utf-8")
    table = read_table(path)
    assert table.columns == ["a", "\u00a0b", "c\u3000"]
    assert places(table, ("a ",), ["a "]) == {"a ": "a"}
    with pytest.raises(DataError, match="column 'b' not found"):
        places(table, ("b",), ["b"])


def test_rows_of_a_stream_are_counted_with_its_header(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,x\n2,\n")))
    table = read_table("-")
    with pytest.raises(DataError, match=r"first in row 3 \(the header is row 1\)"):
        table.labels("b")


def test_a_closed_standard_input_says_so(monkeypatch: pytest.MonkeyPatch):
    for stream in (None, io.TextIOWrapper(io.BytesIO())):
        if stream is not None:
            stream.close()
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(DataError, match="standard input is closed"):
            read_table("-")


def test_rows_of_other_files_are_counted_from_one(tmp_path: Path):
    path = tmp_path / "data.parquet"
    parquet.write_table(pa.table({"y": ["a", "b", None]}), path)
    with pytest.raises(DataError, match="first in row 3;"):
        read_table(path).labels("y")


def test_batches_of_a_table_encode_as_the_table(tmp_path: Path):
    words = [("ab"[i % 2], "?" if i % 5 == 0 else "xyz"[i % 3], str(i)) for i in range(60)]
    text = "u,v,w\n" + "".join(",".join(row) + "\n" for row in words)
    path = written(tmp_path, text.encode())
    whole = read_table(path)
    encoder = TableEncoder.fit(whole)
    bits = encoder.transform(whole)
    assert (np.concatenate([encoder.transform(b) for b in iter_table(path, 7)]) == bits).all()
    as_arrays = {name: whole[name] for name in whole.columns}
    assert TableEncoder.fit(as_arrays) == encoder
    assert (encoder.transform(as_arrays) == bits).all()


def test_part_of_a_table_is_fitted_on_its_own_rows_only():
    column = pa.array(["a", "b", "c"]).dictionary_encode()
    part = Table(pa.table({"w": column})).take([0, 1])
    assert TableEncoder.fit(part).bit_names == ("w=a", "w=b")


# Size.


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_size_is_judged_before_loading(
    tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 400_000)
    numbers = np.random.default_rng(0).integers(0, 1000, (200_000, 2))
    content = b"a,b\n" + b"".join(b"%03d,%03d\n" % (a, b) for a, b in numbers.tolist())
    path = tmp_path / ("data.csv.gz" if packed else "data.csv")
    path.write_bytes(gzip.compress(content, 1) if packed else content)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "available_memory", lambda: 200_000 * 2 * 4)  # the words' places
        refused = r"about (\d+),\d+ rows × 2 columns need .* is available"
        with pytest.raises(TableTooLargeError, match=refused) as caught:
            read_table(path)
    thousands = re.search(r"about (\d+),", str(caught.value))
    assert thousands
    assert 150 < int(thousands[1]) < 250
    assert len(read_table(path)) == 200_000


def test_batches_do_not_hold_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 100_000)
    path = written(tmp_path, b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(200_000)))
    held = []
    tracemalloc.start()
    for batch in iter_table(path, batch_rows=5_000):
        rows_of(batch)
        held.append(pa.total_allocated_bytes() + tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(held) < 5 * path.stat().st_size


# Parquet, NPZ, idx.


def test_parquet_keeps_types_and_gaps(tmp_path: Path):
    path = tmp_path / "data.parquet"
    columns = {
        "n": pa.array([1, None, 3]),
        "f": pa.array([0.5, 1.5, None]),
        "b": pa.array([True, None, False]),
        "s": pa.array(["x", None, "y"]),
        "l": pa.array(["x", None, "y"], pa.large_string()),
        "v": pa.array(["x", None, "y"], pa.string_view()),
        "d": pa.array(["x", None, "y"], pa.large_string()).dictionary_encode(),
        "c": pa.array(map(Decimal, (1, 2, 3)), pa.decimal128(5, 2)),
    }
    parquet.write_table(pa.table(columns), path)
    table = read_table(path)
    for name in "slvd":
        assert table[name].tolist() == ["x", None, "y"]
    assert table["c"].tolist() == [1.0, 2.0, 3.0]
    names = TableEncoder.fit(table).bit_names
    assert [name for name in names if name.endswith("missing")] == [
        f"{name} missing" for name in "nfbslvd"
    ]


def test_a_file_that_is_no_parquet_says_so(tmp_path: Path):
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_table(written(tmp_path, b"PAR1 not really PAR1", "data.parquet"))


@pytest.mark.parametrize(("inputs", "labels"), [("X", "y"), ("inputs", "labels")])
def test_npz_holds_inputs_and_labels(tmp_path: Path, inputs: str, labels: str):
    path = tmp_path / "data.npz"
    arrays: dict[str, Any] = {inputs: [[1, 2], [3, 4]], labels: ["a", "b"]}
    np.savez(path, **arrays)
    table = read_table(path)
    assert table.columns == ["x0", "x1", labels]
    assert table.label == labels
    assert rows_of(table) == [(1, 2, "a"), (3, 4, "b")]


def test_npz_of_images_keeps_their_shape(tmp_path: Path):
    path = tmp_path / "data.npz"
    np.savez(path, X=np.arange(12).reshape(2, 2, 3))
    table = read_table(path)
    assert table.image_shape == (2, 3)
    assert table.columns == ["r0c0", "r0c1", "r0c2", "r1c0", "r1c1", "r1c2"]
    assert table.label is None


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"Z": np.eye(2)}, "expected an array named X or inputs, found 'Z'"),
        ({"X": np.array([[1, "a"]], object)}, "'X' holds object values; save plain"),
        ({"X": np.eye(2), "y": np.zeros(3)}, "one label for each of 2 inputs"),
        ({"X": np.zeros(3)}, r"shape \(rows, columns\)"),
        ({"X": np.zeros((2, 2), complex)}, "'X' holds complex128 values"),
    ],
    ids=str,
)
def test_an_npz_that_cannot_be_read_says_why(tmp_path: Path, arrays: dict, complaint: str):
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=complaint):
        read_table(path)


def test_a_member_that_is_no_array_says_so(tmp_path: Path):
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", "hello")
    with pytest.raises(DataError, match="'X' is no array of numbers or text; save it with"):
        read_table(path)


def test_arrays_by_columns_and_of_text_are_read(tmp_path: Path):
    path = tmp_path / "data.npz"
    np.savez(path, X=np.asfortranarray([[1, 2, 3], [4, 5, 6]]), y=np.array(["é", "b"]))
    assert rows_of(read_table(path)) == [(1, 2, 3, "é"), (4, 5, 6, "b")]


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_comes_in_blocks_that_make_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Any, by_columns: bool
):
    monkeypatch.setattr("vitrail.tables.sources.NPZ_BLOCK_BYTES", 7 * 2 * 3 * 4)
    images = np.arange(20 * 6, dtype=np.float32).reshape(20, 2, 3)
    names = np.array([f"label {number % 4}" for number in range(20)])
    stored = np.asfortranarray(images) if by_columns else images
    save(tmp_path / "data.npz", X=stored, y=names)
    batches = list(iter_table(tmp_path / "data.npz"))
    assert [(batch.start, len(batch)) for batch in batches] == [(0, 7), (7, 7), (14, 6)]
    rows = [row for batch in batches for row in rows_of(batch)]
    assert rows == [(*images[row].ravel().tolist(), names[row]) for row in range(20)]
    assert rows_of(read_table(tmp_path / "data.npz")) == rows
    rows_to_read = np.array([8, 19])
    some = iter_table(
        tmp_path / "data.npz",
        select=lambda first, count: (
            rows_to_read[(first <= rows_to_read) & (rows_to_read < first + count)] - first
        ),
    )
    assert [row for batch in some for row in rows_of(batch)] == [rows[8], rows[19]]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_memory_stays_bounded_in_blocks_of_npz(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Any
):
    monkeypatch.setattr("vitrail.tables.sources.NPZ_BLOCK_BYTES", 100_000)
    inputs = np.random.default_rng(0).integers(0, 99, (80_000, 50), dtype=np.int8)
    save(tmp_path / "data.npz", X=inputs, y=inputs[:, 0])
    gc.collect()  # other tests' tables
    rows, most, before = 0, 0, pa.total_allocated_bytes()
    tracemalloc.start()
    for batch in iter_table(tmp_path / "data.npz"):
        rows += len(batch)
        arrow = pa.total_allocated_bytes() - before
        most = max(most, arrow + tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert rows == len(inputs)
    assert most < 1_000_000 < inputs.nbytes / 3


def test_an_npz_damaged_behind_its_header_says_so(tmp_path: Path):
    path = tmp_path / "data.npz"
    np.savez(path, X=np.arange(4000).reshape(1000, 4))
    content = bytearray(path.read_bytes())
    content[20_000] ^= 255
    path.write_bytes(content)
    with pytest.raises(DataError, match="is no NPZ archive, or a damaged one"):
        list(iter_table(path))


def test_a_name_that_is_not_utf8_is_read_and_named(tmp_path: Path):
    path = tmp_path / os.fsdecode(b"gr\xfc\xdfe.csv")
    written(tmp_path, b"a,b\n1,2\n3\n", path.name)
    with pytest.raises(DataError, match=r"gr\?\?e\.csv, line 3: expected 2 fields") as caught:
        read_table(path)
    assert str(caught.value).encode()
    path.write_bytes(b"a,b\n1,2\n")
    assert rows_of(read_table(path)) == [("1", "2")]


def test_a_file_that_is_no_npz_says_so(tmp_path: Path):
    with pytest.raises(DataError, match="is no NPZ archive"):
        read_table(written(tmp_path, b"hello", "data.npz"))


def test_idx_images_find_the_labels_beside_them(tmp_path: Path):
    images = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    path = tmp_path / "some-images-idx3-ubyte"
    path.write_bytes(idx_bytes(images))
    assert read_table(path).label is None
    written(tmp_path, idx_bytes(np.array([7, 3])), "some-labels-idx1-ubyte")
    table = read_table(path)
    assert table.image_shape == (2, 3)
    assert table[table.label or ""].tolist() == [7, 3]
    assert table["r1c2"].tolist() == [5, 11]


# The table itself.


def test_an_absent_column_is_named_with_those_there_are():
    table = Table(pa.table({"a": [1], "label": [2]}))
    for ask in (
        lambda: table["lable"],
        lambda: table.without("lable"),
        lambda: table.cells("lable"),
    ):
        with pytest.raises(DataError, match="column 'lable' not found; columns are: 'a', 'label'"):
            ask()


def test_columns_can_be_added_and_left_out():
    table = Table(pa.table({"a": [1, 2], "b": [3, 4]}))
    assert rows_of(table.with_columns({"c": np.array(["x", "y"])})) == [(1, 3, "x"), (2, 4, "y")]
    assert table.without("a").columns == ["b"]
    with pytest.raises(DataError, match="already has a column 'a'"):
        table.with_columns({"a": [0, 0]})


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_one_clear_line(tmp_path_factory, content: bytes):
    path = written(tmp_path_factory.mktemp("fuzz"), content)
    with contextlib.suppress(DataError):  # any other error fails
        table = read_table(path)
        assert table.columns
        assert all(isinstance(cell, str) for row in rows_of(table) for cell in row)


def test_only_a_mark_at_the_start_of_a_file_is_no_part_of_a_cell(tmp_path):
    path = tmp_path / "marks.csv"
    for text in ("a,b\n\ufeffx,1\n", "\ufeffa,b\n\ufeffx,1\n"):
        path.write_text(text, encoding="utf-8")
        table = read_table(path)
        assert list(table.columns) == ["a", "b"]
        assert list(table["a"]) == ["\ufeffx"]
