"""Files that once hung a reader or took all of the memory: small, and refused in a sentence."""

import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from bounded import calls_in_child
from idx_files import idx_bytes

from vitrail.tables.table import read_table


def rows_and_columns(path: str) -> tuple[int, int]:
    table = read_table(path)
    return len(table), len(table.columns)


def npz_of(header: bytes, content: bytes, claimed: int | None = None) -> bytes:
    """An archive of one array X: its header, any content, and the size it claims to have."""
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", array)
    true, false = (struct.pack("<I", size) for size in (len(array), claimed or len(array)))
    return target.getvalue().replace(true, false)


def npz_header(kind: str, shape: str) -> bytes:
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()


def zipped(line: bytes, times: int) -> bytes:
    """A million lines at a time, each time the same bytes."""
    return gzip.compress(line * 1_000_000, mtime=0) * times


ATTACKS = {
    "header-quote.csv": (b'a,"b\n' + b"1,2\n" * 450_000, "a quote in the header is never closed"),
    "blank-lines.csv": (b"\n" * 1_800_000 + b"a,b\n1,2\n", "(1, 2)"),
    "spaced-lines.csv": (b" \n" * 900_000 + b"a,b\n1,2\n", "(1, 2)"),
    "blank-body.csv": (b"a,b\n" + b"\r\n" * 900_000, "(0, 2)"),
    "body-quote.csv": (b'a,b\n1,"2\n' + b"1,2\n" * 450_000, "line 2: the row goes on beyond line"),
    "wide.csv": (b"," * 1_800_000 + b"\n", "expected at most 32,768 columns, found 1,800,001"),
    "columns.csv": (
        b",".join(b"%d" % i for i in range(32_768)) + 9 * (b"\n" + b",".join([b"1"] * 32_768)),
        "(9, 32768)",
    ),
    "twice.csv": (b",".join(b"c%d" % (i % 29_999) for i in range(30_000)), "more than once"),
    "bomb.csv.gz": (gzip.compress(b"a\n") + zipped(b"1\n", 700), "times their size"),
    "newlines.csv.gz": (zipped(b"\n", 1_400), "MB of blank lines"),
    "spaces.csv.gz": (zipped(b" \n", 700), "is empty; expected a header row"),
    "none-idx3-ubyte": (
        struct.pack(">BBBB3I", 0, 0, 8, 3, 0, 20_000, 20_000),
        "expected from 1 to 32,768 inputs per row, found 20000×20000",
    ),
    "large-idx3-ubyte.gz": (
        gzip.compress(idx_bytes(np.zeros((2, 3000, 3000)))),
        "found 3000×3000; choose columns, or make images smaller",
    ),
    "bomb-idx3-ubyte.gz": (
        gzip.compress(struct.pack(">BBBB3I", 0, 0, 8, 3, 1_400_000, 32, 32)),
        "times their size",
    ),
    "bomb.npz": (
        npz_of(npz_header("<f8", "(70000000, 2)"), bytes(1_400_000), 1_120_000_080),
        "times their size",
    ),
    "boast.npz": (
        npz_of(npz_header("<f8", "(1000000000, 8)"), bytes(64)),
        "announces 64,000,000,000 bytes but holds 64",
    ),
    "wide.npz": (
        npz_of(npz_header("|u1", "(2, 70000)"), bytes(140_000)),
        "found 70000; choose columns",
    ),
    "columns.npz": (
        npz_of(npz_header("|u1", "(9, 32768)"), bytes(9 * 32_768)),
        "(9, 32768)",
    ),
    "deep.npz": (npz_of(b"(" * 9_000 + b"\n", b""), "is no array of numbers or text"),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder: Path = tmp_path_factory.mktemp("attacks")
    for name, (content, _) in ATTACKS.items():
        (folder / name).write_bytes(content)
    found = calls_in_child(
        "tables.test_attacks:rows_and_columns", [str(folder / name) for name in ATTACKS]
    )
    return dict(zip(ATTACKS, found, strict=True))


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_file_is_refused_in_time_and_memory(outcomes: dict, name: str):
    outcome = outcomes[name]
    assert outcome.error in (None, "DataError", "TableTooLargeError"), outcome
    assert ATTACKS[name][1] in (outcome.result or outcome.sentence)
    assert "\n" not in outcome.sentence
    assert outcome.seconds < 10
