"""How tests run exported code: C by compilers, JavaScript by node, ONNX by its runtime."""

import csv
import io
import math
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from parts import need

from vitrail.export.arrays import npz_file
from vitrail.export.c import c_header
from vitrail.export.golden import sample_rows
from vitrail.export.onnx import input_names, onnx_graph
from vitrail.tables.bits import BitColumns
from vitrail.tables.cells import as_category
from vitrail.tables.frames import as_frame

PAGE = Path(__file__).parents[1] / "docs" / "numpy-file.md"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
COMPILERS = {
    "gcc": ["gcc", "-std=c99"],
    "clang": ["clang", "-std=c99"],
    "g++": ["g++", "-std=c++17"],
    "clang++": ["clang++", "-std=c++17"],
}
NO_RUNTIME = "onnxruntime is not installed; install vitrail with the extra `export`"
DRIVER = """
import { readFileSync } from "node:fs";
const rows = JSON.parse(readFileSync("rows.json", "utf8"));
const found = [];
for (const [i, table] of rows.entries()) {
  const model = await import(`./m${i}.mjs`);
  found.push({ wrong: model.check(), answers: table.map((row) => model.predict(row)) });
}
console.log(JSON.stringify(found));
"""


def header_of(model, name="tiny", golden=8):
    rows = sample_rows(model.encoder, golden)
    return c_header(model, name, rows)


def as_csv(model, rows) -> str:
    """A table as text, with the columns in another order and one more."""
    names = list(rows)[::-1]
    more = next(name for name in ("more", "even more") if name not in names)
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")  # quotes cells with either sign
    writer.writerow([*names, more])
    for i in range(len(rows[names[0]])):
        cells = ["" if rows[name][i] is None else rows[name][i] for name in names]
        writer.writerow([*(repr(x) if isinstance(x, float) else x for x in cells), "?"])
    return stream.getvalue()


GARBAGE = """\
    for (k = 0; k < 50; k++) {  /* rows of random bytes: a class or a negative code */
        m0_row row;
        uint16_t proba[M0_CLASSES];
        int code;
        for (i = 0; i < sizeof row; i++) {
            noise = noise * 1664525u + 1013904223u;
            ((unsigned char *)&row)[i] = (unsigned char)(noise >> 24 & (k % 3 ? 255u : 3u));
        }
        code = m0_predict(&row);
        wrong += code < M0_BAD_INPUT || code >= M0_CLASSES || code != m0_proba(&row, proba);
    }
"""


def run_all(models, folder, compiler, *options, word_bits=None):
    """Compile headers into one program and answer each one's rows: a list of lines per model.

    word_bits: of the words that bits are packed into, where not as the header says
    """
    parts = []
    files: dict[int, str] = {}  # models may share their rows
    for i, (model, rows) in enumerate(models):
        (folder / f"m{i}.h").write_text(header_of(model, f"m{i}"), "utf-8")
        if id(rows) not in files:
            files[id(rows)] = f"m{i}.csv"
            (folder / f"m{i}.csv").write_bytes(as_csv(model, rows).encode())
        packing = f"#define M{i}_WORD_BITS {word_bits}\n" if word_bits else ""
        parts.append(f'#define M{i}_CHECK\n#define M{i}_CSV\n{packing}#include "m{i}.h"\n')
    parts.append("int main(void)\n{\n    FILE *in;\n    long rows;\n    int wrong = 0;\n")
    parts.append("    uint32_t noise = 1;\n    unsigned i, k;\n")
    for i, (_, rows) in enumerate(models):
        parts.append(
            f'    if (m{i}_check()) {{\n        wrong++;\n        fputs("m{i} ", stderr);\n    }}\n'
            f'    in = fopen("{files[id(rows)]}", "r");\n'
            f'    wrong += m{i}_csv(in, stdout, &rows) < 0;\n    fclose(in);\n    puts("-");\n'
            + GARBAGE.replace("m0", f"m{i}").replace("M0", f"M{i}")
        )
    parts.append("    return wrong;\n}\n")
    (folder / "all.c").write_text("".join(parts))
    language = ["-x", "c++"] if "++" in compiler[0] else []
    command = [*compiler, *STRICT, *options, *language, "all.c", "-o", "all"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:3000]
    done = subprocess.run([str(folder / "all")], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-200:]
    return [part.splitlines() for part in done.stdout.split("-\n")[:-1]]


def expected_lines(model, rows):
    numbers, probabilities, _ = model.answers(rows)
    return [
        ",".join(map(str, [a, *q]))
        for a, q in zip(numbers.tolist(), probabilities.tolist(), strict=True)
    ]


def by_row(rows) -> list[dict]:
    """Rows as JSON has them; infinities as text."""
    count = len(next(iter(rows.values())))

    def cell(value):
        return repr(value) if isinstance(value, float) and math.isinf(value) else value

    return [{name: cell(cells[i]) for name, cells in rows.items()} for i in range(count)]


def run_node(folder, program):
    need("node")
    (folder / "main.mjs").write_text(program)
    done = subprocess.run(["node", "main.mjs"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def read_columns(encoder, rows):
    """Of each column its code and its cells as Python reads them: numbers, text, or None."""
    for code in encoder.columns:
        cells = as_frame(rows).cells(code.name)
        cells = cells.spelled(code.spelling) if code.numeric else cells
        texts = [x if isinstance(x, str) else as_category(x) for x in cells.levels]
        numbers = cells.numbers.tolist() if code.numeric else [math.nan] * len(texts)
        levels = [
            None if missing else text if math.isnan(number) else number
            for text, number, missing in zip(texts, numbers, cells.missing, strict=True)
        ]
        yield code, [levels[i] for i in cells.codes]


def onnx_feed(model, rows):
    """Rows as the inputs of the graph."""
    if isinstance(model.encoder, BitColumns):
        return {"x": np.array([rows[name] for name in model.encoder.names], np.float32).T}
    feed, names = {}, input_names(model.encoder)
    for code, cells in read_columns(model.encoder, rows):
        if code.numeric:
            kind = np.float32 if code.held_as == "float32" else np.float64
            numbers = [x if isinstance(x, float) else math.nan for x in cells]
            with np.errstate(over="ignore"):
                feed[names[code.name, "number"]] = np.array(numbers)[:, None].astype(kind)
        if (code.name, "word") in names:
            words = [x if isinstance(x, str) else "" for x in cells]
            feed[names[code.name, "word"]] = np.array(words, object)[:, None]
    return feed


def run_onnx(model, rows):
    """The outputs of a model's graph, by name."""
    runtime = pytest.importorskip("onnxruntime", reason=NO_RUNTIME)
    graph = onnx_graph(model).SerializeToString()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, onnx_feed(model, rows)), strict=True))


def numpy_reader():
    """The functions that the page on the file spells out."""
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names = {}
    exec(code, names)
    return names


def run_numpy(model, rows):
    """Answers of the reader of the documentation, a line per row."""
    reader = numpy_reader()
    about, arrays = reader["read"](io.BytesIO(npz_file(model, sample_rows(model.encoder, 4))))
    columns = {code.name: cells for code, cells in read_columns(model.encoder, rows)}
    lines = []
    for row in zip(*columns.values(), strict=True):
        bits = reader["encode"](about, dict(zip(columns, row, strict=True)))
        number, probabilities = reader["predict"](about, arrays, bits)
        lines.append(",".join(map(str, [number, *probabilities.tolist()])))
    return lines
