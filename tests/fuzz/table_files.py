"""Files of tables made by a seed: sound ones, strange ones, and damaged copies of both."""

import gzip
import io
import random
import struct
import zipfile
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
from idx_files import idx_bytes
from pyarrow import parquet

WORDS = ["a", "b", "yes", "no", "", "?", "NA", "é", "日本", "n.d.", " x ", 'q"q', "l\nl", "5 kg"]
NUMBERS = ["0", "1", "-3", "2.5", "1e300", "inf", "1.234", "1,234", "1.234,50", "$5", "7%", "1_0"]
DATES = ["2020-01-31", "31.12.2020", "10:30"]
NASTY = [b"\0", b'"', b"\n", b"\r", b",", b";", b"\xff", b"\xef\xbb\xbf", b"PK\x03\x04", b"PAR1"]


def cell(rng: random.Random, style: int) -> str:
    """A cell of a column that is mostly of one sort."""
    if rng.random() < 0.01:
        return rng.choice(WORDS + NUMBERS + DATES)
    if style == 0:
        return rng.choice(WORDS[:4])
    if style == 1:
        return str(rng.randint(0, 5))
    if style == 2:
        return f"{rng.uniform(-9e3, 9e3):.{rng.randint(0, 4)}f}"
    if style == 3:
        return f"{rng.uniform(0, 9e4):,.2f}".translate({44: 46, 46: 44})
    if style == 4:
        return f"{rng.choice(['$', '', '', '€'])}{rng.uniform(0, 99):.2f}"
    return rng.choice(WORDS + NUMBERS + DATES) if style == 5 else f"id{rng.random()}"


def columns(rng: random.Random) -> dict[str, list[str]]:
    names = rng.sample(["a", "b", " c ", "", "é", "x,y", "n"], rng.randint(0, 5))
    rows = rng.choice([0, 1, 5, 30, 30, 200, 200])
    styles = {name: rng.randint(0, 6) for name in names}
    table = {name: [cell(rng, styles[name]) for _ in range(rows)] for name in names}
    return {**table, "kind": [rng.choice(WORDS[:3]) for _ in range(rows)]}


def delimited(rng: random.Random, marks: str = ",,,;") -> bytes:
    table = columns(rng)
    mark, end = rng.choice(marks), rng.choice(["\n", "\n", "\r\n"])
    lines = [list(table), *map(list, zip(*table.values(), strict=True))]
    if rng.random() < 0.1 and len(lines) > 1:
        rng.choice(lines).append("more")

    def quoted(text: str) -> str:
        must = any(sign in text for sign in (mark, '"', "\n", "\r"))
        if (must and rng.random() < 0.98) or rng.random() < 0.02:
            return '"' + text.replace('"', '""') + '"'
        return text

    text = end * rng.choice([0, 0, 0, 3]) + end.join(mark.join(map(quoted, line)) for line in lines)
    content = text.encode(rng.choice(["utf-8"] * 8 + ["utf-16", "utf-8-sig"]))
    return gzip.compress(content, 1) if rng.random() < 0.2 else content


def parquet_file(rng: random.Random) -> bytes:
    table = columns(rng)
    rows = len(next(iter(table.values())))
    kinds: list[Callable[[], pa.Array]] = [
        lambda: pa.array([rng.choice([None, rng.randint(-9, 9)]) for _ in range(rows)], pa.int64()),
        lambda: pa.array([rng.uniform(-1, 1) for _ in range(rows)], pa.float32()),
        lambda: pa.array([rng.choice([None, True, False]) for _ in range(rows)], pa.bool_()),
        lambda: pa.array([rng.choice(WORDS) for _ in range(rows)], pa.large_string()),
        lambda: pa.array([rng.choice(WORDS) for _ in range(rows)]).dictionary_encode(),
        lambda: pa.array([Decimal(rng.randint(0, 99)) for _ in range(rows)], pa.decimal128(9, 2)),
        lambda: pa.array([rng.randint(0, 9) for _ in range(rows)], pa.date32()),
        lambda: pa.array([[1], [2]] * rows, pa.list_(pa.int8())).slice(0, rows),
        lambda: pa.array([2**63 + rng.randint(0, 9) for _ in range(rows)], pa.uint64()),
        lambda: pa.nulls(rows),
    ]
    arrays = {name: pa.array(column, pa.string()) for name, column in table.items()}
    for name in rng.sample(list(arrays)[:-1], rng.randint(0, len(arrays) - 1)):
        arrays[name] = rng.choice(kinds)()
    target = io.BytesIO()
    parquet.write_table(pa.table(arrays), target, compression=rng.choice(["none", "zstd"]))
    return target.getvalue()


def npz_file(rng: random.Random) -> bytes:
    rows, width = rng.choice([0, 1, 5, 40]), rng.choice([0, 1, 3, 7])
    shape = (rows, width) if rng.random() < 0.7 else (rows, width, 3)
    values = np.random.default_rng(rng.randint(0, 999)).integers(0, 256, shape)
    kind = rng.choice(["u1", "f4", "f8", "i8", "?", "U3", "c8", "M8[D]", "O", "f2"])
    inputs = values.astype("i8").astype(kind) if kind != "f8" else values / 255
    arrays = {rng.choice(["X", "X", "inputs", "Z"]): inputs, "y": np.arange(rows) % 3}
    if rng.random() < 0.2:
        arrays["y"] = np.arange(rows + 1) / 7
    target = io.BytesIO()
    (np.savez_compressed if rng.random() < 0.5 else np.savez)(target, **arrays)
    if rng.random() < 0.1:
        with zipfile.ZipFile(target, "a") as archive:
            archive.writestr("labels.npy", "no array")
    return target.getvalue()


def idx_file(rng: random.Random) -> bytes:
    shape = tuple(rng.choice([0, 1, 3, 9]) for _ in range(rng.choice([1, 3, 3, 3])))
    content = idx_bytes(np.random.default_rng(rng.randint(0, 99)).integers(0, 256, shape))
    if rng.random() < 0.2:
        content = struct.pack(">BBBB3I", 0, 0, 8, 3, *(rng.getrandbits(32) for _ in range(3)))
    return gzip.compress(content) if rng.random() < 0.3 else content


def damaged(rng: random.Random, content: bytes) -> bytes:
    """The bytes with a few faults of any kind, or none."""
    data = bytearray(content)
    for _ in range(rng.choice([0, 0, 0, 0, 1, 2, 9])):
        place = rng.randrange(len(data) + 1)
        span = rng.choice([1, 1, 4, 50])
        match rng.randint(0, 5):
            case 0 if place < len(data):
                data[place] ^= 1 << rng.randint(0, 7)
            case 1:
                del data[place : place + span]
            case 2:
                data[place:place] = rng.choice(NASTY)
            case 3:
                data[place:place] = data[place : place + span] * rng.choice([1, 3])
            case 4:
                data[place : place + span] = rng.randbytes(span)
            case _:
                data = data[: place or 1] if rng.random() < 0.3 else data
    return bytes(data)


MAKERS: dict[str, Callable[[random.Random], bytes]] = {
    "csv": delimited,
    "tsv": lambda rng: delimited(rng, "\t"),
    "parquet": parquet_file,
    "npz": npz_file,
    "idx3-ubyte": idx_file,
}


def made(kind: str, seed: int) -> bytes:
    """The file of that kind and seed."""
    rng = random.Random(f"{kind} {seed}")
    return damaged(rng, MAKERS[kind](rng))
