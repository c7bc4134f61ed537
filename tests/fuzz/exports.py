"""Models with hostile names and cells, made by a seed, and rows that all exports answer alike.

The encoder and the labels are fitted to a hostile table. The networks are random: trained ones
ignore columns, and a column that is ignored hides how it is read.

Exported code refuses text that people may read as a number and programs do not, such as `1,234` or
`5 kg`; C also refuses numbers that are not whole where a column holds whole ones. `refused` tells
which cells those are. All other rows have the answers and probabilities of Python.
"""

import json
import math
import random
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from export_runs import COMPILERS, as_csv, expected_lines, run_all, run_node, run_numpy, run_onnx

from vitrail.errors import DataError, DataWarning
from vitrail.export.golden import sample_rows
from vitrail.export.js import js_module
from vitrail.model import Model
from vitrail.model.voting import Scheme, num_nets
from vitrail.nn import mlp, program_of
from vitrail.tables.cells import is_missing
from vitrail.tables.columns import MOST_WHOLE, ColumnCode
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.labels import LabelCoder
from vitrail.tables.spelling import as_number, numeral, stripped
from vitrail.tables.table import read_table

Column = Sequence[str | None]
Rows = dict[str, np.ndarray]  # columns of text, None where missing
Case = tuple[Model, Rows]
Cases = dict[int, Case]  # by seed
Answers = dict[int, list[str]]  # by seed, a line per row: the class, then the probabilities
NUMPY_ROWS = 40  # the reader of the documentation is slow

SPACES = [" ", "\t", "  ", " \t", "\u00a0", "\u2003", "\u3000", "\x1f", "\x0b", "\x0c", "\x85"]
SPACES += ["\ufeff", "\u200b", "\u2028", "\r", "\n", "\r\n"]
PLAIN_NAMES = """c0 c1 c2 c10 v0 v1 v12 .c0 .v1 label number proba_parts probabilities x rows
    vitrail word about votes index_0 __proto__ constructor hasOwnProperty toString valueOf prototype
    length int class NAN linux errno near SP row bits h main words tiny_row TINY_CHECK tiny_x m0_row
    M0_OTHER _ __ 0 9lives a-b a_b größe ÿ 年 😀 " ' a,b a;b */ /* // ???/ \\ %s%n ${x} ` @model@
    </script> <!-- ="""
NAMES = PLAIN_NAMES.split()
NAMES += ["a b", "A B", "x word", "label word", " age ", "\u00a0age", "age\ufeff", "e\u0301"]
NAMES += ["a\tb", "a\nb", "a\r\nb", "//: if words", "n" * 300]
PLAIN_WORDS = """red Red blue größe é 😀 年 ß a a,b a"b " ' \\ */ // ???/ ?? %s ${x} ` </script> #
    - + . constructor __proto__ toString true False inf -Infinity +nan n.a. tiny_red TINY_OTHER m0_x
    other missing 1x x1 01 1.0 1e3 0x10 1_000 K falſe"""
WORDS = PLAIN_WORDS.split()
WORDS += ["red wine", "never seen", "e\u0301", "\u00a0", "\ufeff", "a\nb", "a\r", "\x1b[3m", "a\0b"]
NOTHINGS = ["", " ", "?", "NA", "n/a", "#N/A", "<NA>", "NaN", "-nan", "NULL", "None", "NaT", "\t"]
PLAIN_NUMBERS = """e5 1e .. +-1 --1 1.5.2 1,5 1,234 1'000 $5 €5 5€ 5% −5 １２ ٣ ½ 1e400 -1e400
    1e-400 1E+5 1e05 .5 5. -.5 +7 -0 00012 1e0 infinity INF +inf -inf +NaN TRUE tRuE false nan(1) 1f
    2147483647 2147483648 -2147483647 -2147483648 -2147483649 4294967296 9007199254740993
    3.4028235e38 3.4028236e38 3.5e38 -3.5e38 1e-45 7e-46 0.1 0.30000000000000004 16777217 2.5 -2.5
    1e22 123456789.123456789"""
NUMBERS = PLAIN_NUMBERS.split()
NUMBERS += ["1 000", "5 kg", "5 %", "1\u00a0000", "1\u202f000", "tru\u0435", "9" * 400]
NUMBERS += ["0." + "0" * 400 + "1", "1" + "0" * 308]
CELLS = [*WORDS, *NOTHINGS, *NUMBERS, "word" * 300, " " * 500 + "red", "\0"]
SPELLINGS = ("{!r}", "{:e}", "{:E}", "{:+}", "{:.17g}", "{:.3f}", "000{!r}", "{!r}0", "{:.40f}")
UNITS = ("{:.1f} kg", "{:.1f}%", "${:.2f}", "{:.2f} €")


def word_among(rng: random.Random, words: Sequence[str]) -> str:
    """A word with spaces of any kind around it, half the time."""
    word = rng.choice(words)
    if rng.random() < 0.5:
        return word
    return rng.choice(["", *SPACES]) + word + rng.choice(["", *SPACES])


def number_text(rng: random.Random, number: float, spellings: Sequence[str] = SPELLINGS) -> str:
    spelled = rng.choice(spellings).format(number)
    return rng.choice(["", "", " ", "\t"]) + spelled + rng.choice(["", "", " ", "\t "])


def training_column(rng: random.Random, rows: int) -> list[str]:
    """Words, whole numbers, real ones, or numbers with a unit or with words among them."""
    kinds = ["words"] * 5 + ["codes", "whole", "real", "mixed"] * 2 + ["unit", "comma"]
    kind = rng.choice(kinds)
    blanks = ["", " ", "\t"]
    if kind == "words":
        words = rng.sample(WORDS, rng.randint(2, 6))
        cells = [rng.choice(blanks) + rng.choice(words) + rng.choice(blanks) for _ in range(rows)]
    elif kind in ("codes", "whole"):
        most = 4 if kind == "codes" else rng.choice([50, 10**5, 2**31 - 1, 10**12])
        cells = [str(rng.randint(-most, most)) for _ in range(rows)]
    elif kind == "unit":
        unit = rng.choice(UNITS)
        cells = [unit.format(rng.uniform(0, 99)) for _ in range(rows)]
    elif kind == "comma":
        cells = [f"{rng.uniform(-9, 9):.1f}".replace(".", ",") for _ in range(rows)]
    else:
        centre, scale = rng.choice([(0, 1), (0, 1), (0, 1e-30), (0, 1e38), (1.7e9, 0.1)])
        cells = [repr(rng.gauss(centre, scale)) for _ in range(rows)]
    if kind == "mixed" or (kind in ("codes", "whole") and rng.random() < 0.2):
        word = rng.choice([word for word in WORDS if math.isnan(as_number(word))])
        cells = [word if rng.random() < 0.08 else cell for cell in cells]
    if rng.random() < 0.3:
        cells = [rng.choice(NOTHINGS) if rng.random() < 0.15 else cell for cell in cells]
    return cells


def fitted_encoder(rng: random.Random) -> tuple[TableEncoder, dict[str, list[str]]]:
    """An encoder of a hostile table, and its cells; what cannot be learned from is drawn again."""
    while True:
        rows = rng.randint(30, 60)
        names = rng.sample(NAMES, rng.randint(1, 5))
        table = {name: training_column(rng, rows) for name in names}
        try:
            return TableEncoder.fit(table, thresholds=rng.choice([2, 5])), table
        except DataError:
            continue


def made_model(seed: int) -> tuple[Model, dict[str, list[str]]]:
    """The model of a seed, and the cells that its encoder was fitted to."""
    rng = random.Random(f"exports {seed}")
    encoder, table = fitted_encoder(rng)
    labels = LabelCoder.fit(rng.sample([w for w in WORDS if not is_missing(w)], rng.randint(2, 4)))
    classes, bias = len(labels.classes), rng.randint(0, 2)
    scheme: Scheme = "argmax"
    if classes > 2:
        several: list[Scheme] = ["argmax", "pairs", "one-vs-rest"]
        scheme = rng.choice(several)
    nets, outputs = num_nets(classes, scheme)
    inputs = len(encoder.bit_names) + bias
    hidden = rng.choice([(), (3,), (3,)])
    program = program_of(mlp(inputs, hidden, num_outputs=outputs), (inputs,))
    draws = np.random.default_rng(seed)
    networks = torch.from_numpy(draws.random((3, nets, program.num_bits)) < 0.5)
    model = Model(
        encoder=encoder,
        labels=labels,
        coding=rng.choice(["binary", "bipolar"]),
        bias=bias,
        program=program,
        scheme=scheme,
        networks=networks,
        best=networks[0],
        marginals=networks[0] * 65535,
        votes=torch.from_numpy(draws.integers(1, 4, (3, nets))),
        clip=2 * inputs + 1,
        calibration=torch.from_numpy(np.sort(draws.integers(0, 65536, (nets, 257)), axis=1)),
        record={"target": rng.choice(NAMES), "note": rng.choice(WORDS)},
    )
    return model, table


def codes_of(model: Model) -> tuple[ColumnCode, ...]:
    assert isinstance(model.encoder, TableEncoder)
    return model.encoder.columns


def cell(rng: random.Random, code: ColumnCode, training: Column) -> str | None:
    """Something a column may be asked to read; most of what exports refuse is drawn again.

    So is all that makes Python refuse a table, and exports a cell: numbers of another spelling.
    """
    while True:
        text = drawn_cell(rng, code, training)
        found = numeral(text or "")
        unread = code.spelling.is_ambiguous(found) and math.isnan(found.read(code.spelling))
        if code.numeric and (unread or code.spelling.contradicts(found)):
            continue
        if not refused(code, text, whole=True) or rng.random() < 0.1:
            return text


def drawn_cell(rng: random.Random, code: ColumnCode, training: Column) -> str | None:
    """Something known, near a threshold, or hostile."""
    draw = rng.random()
    if draw < 0.02:
        return None
    if draw < 0.35:
        return rng.choice(training)
    if draw < 0.65 and code.numeric:
        number = rng.choice([*code.thresholds, *code.values, code.typical])
        number = float(np.float32(number)) if rng.random() < 0.5 else number
        number += rng.choice([0, 0, 1, -1, 0.5, 1e-7]) * rng.choice([1.0, abs(number)])
        whole = code.whole and rng.random() < 0.8
        return number_text(rng, float(np.clip(round(number), -1e15, 1e15)) if whole else number)
    if draw < 0.65:
        return word_among(rng, code.categories or WORDS)
    return word_among(rng, CELLS)


def made(seed: int, count: int) -> tuple[Model, Rows]:
    """The model of a seed and as many rows of text to answer."""
    model, table = made_model(seed)
    rng = random.Random(f"cells {seed}")
    codes = {code.name: code for code in codes_of(model)}
    drawn = {name: [cell(rng, codes[name], table[name]) for _ in range(count)] for name in codes}
    # as objects: arrays of text drop a letter 0 at the end
    return model, {name: np.array(cells, object) for name, cells in drawn.items()}


def refused(code: ColumnCode, text: str | None, whole: bool = False) -> bool:
    """Whether exported code refuses a cell; whole: as C does, whose field holds whole numbers."""
    if text is None or not code.numeric or is_missing(text):
        return False
    number = as_number(text) if code.spelling.accepts("") else math.nan
    plain = code.spelling.decimal == "." and not math.isnan(number)
    if math.isnan(number) and stripped(text) in code.categories:
        return False
    if re.match("[^A-Za-z0-9]*[0-9]", text) and not plain:
        return True
    held = max(-MOST_WHOLE, min(MOST_WHOLE, number))
    return whole and code.whole and not math.isnan(number) and held != round(held)


def lines_of_exports(model: Model, rows: Rows, expected: list[str], whole: bool) -> list[str]:
    """The lines that C or JavaScript must give: those of Python, `-2` where a cell is refused."""
    lines = list(expected)
    for code in codes_of(model):
        for i, text in enumerate(rows[code.name]):
            if refused(code, text, whole):
                lines[i] = "-2"
    return lines


DRIVER = """
import { readFileSync, writeFileSync } from "node:fs";
for (let i = 0; i < COUNT; i++) {
  const model = await import(`./m${i}.mjs`);
  const rows = JSON.parse(readFileSync(`rows${i}.json`, "utf8"));
  const lines = rows.map((row) => {
    try {
      const { number, probaParts } = model.predict(row);
      return [number, ...probaParts].join(",");
    } catch (error) {
      if (!error.message.includes("expected a number, found")) throw error;
      return "-2";
    }
  });
  writeFileSync(`lines${i}.txt`, lines.join("\\n"));
  console.log(JSON.stringify([model.check(), model.classes]));
}
"""


def by_javascript(cases: Sequence[Case], folder: Path) -> list[list[str]]:
    for i, (model, rows) in enumerate(cases):
        module = js_module(model, sample_rows(model.encoder, 8))
        (folder / f"m{i}.mjs").write_text(module, "utf-8")
        table = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
        (folder / f"rows{i}.json").write_text(json.dumps(table), "utf-8")
    said = run_node(folder, DRIVER.replace("COUNT", str(len(cases)))).splitlines()
    # no known answer differs
    assert [json.loads(line) for line in said] == [
        [0, list(model.labels.classes)] for model, _ in cases
    ]
    return [(folder / f"lines{i}.txt").read_text("utf-8").split("\n") for i in range(len(cases))]


def answer_lines(numbers: list[int], probabilities: list[list[int]]) -> list[str]:
    return [",".join(map(str, [n, *q])) for n, q in zip(numbers, probabilities, strict=True)]


def by_python(cases: Cases, folder: Path) -> dict[str, Answers]:
    """What Python reads in a file, and what ONNX and NumPy give for the cells that Python reads."""
    from_file, by_onnx, by_numpy = {}, {}, {}
    for seed, (model, rows) in cases.items():
        path = folder / f"{seed}.csv"
        path.write_bytes(as_csv(model, rows).encode())
        from_file[seed] = expected_lines(model, read_table(path))
        graph = run_onnx(model, rows)
        assert graph["label"].tolist() == model.labels.decode(graph["number"]).tolist()
        by_onnx[seed] = answer_lines(graph["number"].tolist(), graph["proba_parts"].tolist())
        first = {name: cells[:NUMPY_ROWS] for name, cells in rows.items()}
        by_numpy[seed] = run_numpy(model, first)
    return {"CSV": from_file, "ONNX": by_onnx, "NumPy": by_numpy}


def by_c(cases: Cases, folder: Path) -> Answers:
    """C has no columns of float64."""
    held = {seed: {code.held_as for code in codes_of(cases[seed][0])} for seed in cases}
    mine = [seed for seed in cases if "float64" not in held[seed]]
    found = run_all([cases[seed] for seed in mine], folder, COMPILERS["gcc"]) if mine else []
    return dict(zip(mine, found, strict=True))


def differences(seeds: Sequence[int], count: int, folder: Path) -> list[str]:
    """What exports answer otherwise than Python, of as many rows for the model of each seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        cases = {seed: made(seed, count) for seed in seeds}
        python = {seed: expected_lines(*case) for seed, case in cases.items()}
        found = by_python(cases, folder)
    by_node = by_javascript([*cases.values()], folder)
    found |= {"JavaScript": dict(zip(seeds, by_node, strict=True)), "C": by_c(cases, folder)}
    told = []
    for way, answers in found.items():
        for seed, given in answers.items():
            model, rows = cases[seed]
            wanted = python[seed]
            if way in ("JavaScript", "C"):
                wanted = lines_of_exports(model, rows, wanted, whole=way == "C")
            wanted = wanted[:NUMPY_ROWS] if way == "NumPy" else wanted
            if len(given) != len(wanted):
                told.append(f"seed {seed}, {way}: {len(given)} answers to {len(wanted)} rows")
                continue
            wrong = [i for i in range(len(given)) if given[i] != wanted[i]]
            if wrong:
                i = wrong[0]
                row = {name: cells[i] for name, cells in rows.items()}
                told.append(
                    f"seed {seed}, {way}: {len(wrong)} of {len(given)} rows differ, such as {row}: "
                    f"expected {wanted[i]}, got {given[i]}"
                )
    return told
