"""Hostile names and cells: exports answer as Python does, whatever columns and words are called."""

import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from export_cases import committee, plain
from export_runs import (
    COMPILERS,
    as_csv,
    expected_lines,
    header_of,
    run_all,
    run_node,
    run_numpy,
    run_onnx,
)
from fuzz.exports import answer_lines, by_javascript, differences
from parts import need

from vitrail.export.arrays import npz_file
from vitrail.export.c.text import comment, identifiers, string, with_prefix
from vitrail.export.formats import golden_rows
from vitrail.export.golden import sample_rows
from vitrail.export.js import js_module
from vitrail.export.onnx import input_names, onnx_graph
from vitrail.nn import mlp
from vitrail.tables.columns import ColumnCode
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.labels import LabelCoder
from vitrail.tables.spelling import BLANKS, Spelling
from vitrail.tables.table import read_table

ROWS = 12
pytestmark = pytest.mark.filterwarnings("ignore::vitrail.errors.DataWarning")


def test_models_with_hostile_names_and_cells_are_answered_alike(tmp_path):
    need("gcc", "node")
    pytest.importorskip("onnxruntime")
    assert differences(range(8), 150, tmp_path) == []


def model_of(names):
    """Numbers that may hold the word é, which has no letter that C takes: the constant of the word
    is called as the column."""
    return committee(
        tuple(ColumnCode(name, True, ("é",), thresholds=(0.5,), typical=1.0) for name in names)
    )


def identifiers_in(code):
    return set(re.findall(r"[A-Za-z_]\w*", re.sub(r"(?s)/\*.*?\*/|//[^\n]*", "", code)))


def names_in_onnx(model, folder):
    graph = onnx_graph(model).graph
    names = {name for node in graph.node for name in [*node.input, *node.output]}
    return names | {x.name for x in [graph, *graph.input, *graph.output, *graph.initializer]}


def names_in_c(model, folder):
    return identifiers_in(header_of(model))


def names_in_javascript(model, folder):
    of_objects = "console.log(Object.getOwnPropertyNames(Object.prototype).join(' '))"
    own = identifiers_in(js_module(model, sample_rows(model.encoder, 4)))
    return own | set(run_node(folder, of_objects).split())


def names_in_numpy(model, folder):
    arrays = np.load(io.BytesIO(npz_file(model, sample_rows(model.encoder, 4))))
    return set(arrays.files) | set(json.loads(bytes(arrays["about"])))


def by_c(models, folder):
    need("gcc")
    return run_all(models, folder, COMPILERS["gcc"])


def by_onnx(models, folder):
    found = [run_onnx(*one) for one in models]
    return [answer_lines(x["number"].tolist(), x["proba_parts"].tolist()) for x in found]


def by_numpy(models, folder):
    return [run_numpy(*one) for one in models]


WAYS = {  # how names are collected, how rows are answered, columns at once, some of the names
    "ONNX": (names_in_onnx, by_onnx, 16, {".c0", ".v1", "label", "number", "proba_parts"}),
    "C": (names_in_c, by_c, 60, {"TINY_BITS", "TINY_OTHER", "TINY_H", "tiny_row", "row", "int"}),
    "JavaScript": (names_in_javascript, by_javascript, 60, {"MODEL", "__proto__", "constructor"}),
    "NumPy": (names_in_numpy, by_numpy, 60, {"about", "votes", "index_0", "columns"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_columns_may_be_called_as_anything_inside_an_export(way, tmp_path):
    collect, answer, most, some = WAYS[way]
    names = sorted(collect(model_of([f"column {i}" for i in range(most)]), tmp_path))
    assert some <= set(names)
    models = [model_of(names[i : i + most]) for i in range(0, len(names), most)]
    cases = [(model, sample_rows(model.encoder, ROWS, seed=1)) for model in models]
    assert answer(cases, tmp_path) == [expected_lines(*case) for case in cases]


def test_inputs_of_onnx_are_called_as_their_columns_as_far_as_they_can_be():
    names = ["age", "age word", "label", ".c0", "word"]
    encoder = model_of(names).encoder
    assert isinstance(encoder, TableEncoder)
    assert input_names(encoder) == {
        ("age", "number"): "age",
        ("age", "word"): ".word:age",
        ("age word", "number"): "age word",
        ("age word", "word"): "age word word",
        ("label", "number"): ".number:label",
        ("label", "word"): "label word",
        (".c0", "number"): ".number:.c0",
        (".c0", "word"): ".word:.c0",
        ("word", "number"): "word",
        ("word", "word"): "word word",
    }


SPACES = [chr(i) for i in range(1, sys.maxunicode) if chr(i).isspace()] + ["\ufeff", "\u200b", "\0"]


def test_blanks_around_words_are_ascii_space_and_tab_everywhere(tmp_path):
    codes = (
        ColumnCode("word", False, ("red",), other=True, missing=True),
        ColumnCode("mixed", True, ("red",), thresholds=(1.5,), missing=True),
    )
    model = committee(codes)
    words = [a + word + b for a in SPACES for b in ("", a) for word in ("red", "na")]
    table = {code.name: np.array(words, object) for code in codes}
    bits = dict(zip(model.encoder.bit_names, model.encoder.transform(table).T, strict=True))
    for name, word in {"word=red": "red", "mixed=red": "red", "word missing": "na"}.items():
        assert bits[name].tolist() == [text.strip(BLANKS) == word for text in words]
    expected = [expected_lines(model, table)]
    for answer in (by_c, by_javascript, by_onnx, by_numpy):
        assert answer([(model, table)], tmp_path) == expected


def test_blanks_around_numbers_are_ascii_space_and_tab_everywhere(tmp_path):
    model = committee((ColumnCode("x", True, thresholds=(1.5, 3.0), missing=True),))
    cells = [a + "2.5" + b for a in SPACES for b in ("", a)]
    table = {"x": np.array(cells, object)}
    are_read = [cell.strip(BLANKS) == "2.5" for cell in cells]
    assert model.encoder.transform(table)[:, 0].tolist() == are_read
    lines = zip(expected_lines(model, table), are_read, strict=True)
    expected = [line if is_read else "-2" for line, is_read in lines]
    for answer in (by_c, by_javascript):
        assert answer([(model, table)], tmp_path) == [expected]


FILES = {
    "quotes": 'x,w\n"1","red"\n 1, "red"\n"1" ,"red"" wine"\n1,re"d\n1,"re"d"\n"1,5",red\n',
    "line ends": 'x,w\r\n1,red\r\n\r\n2,"red\r\n"\n\n3,"re\rd"\r4,red\n',
    "no end": "\n\nx,w\n1,red",
    "mark": '\ufeff"x",w\n1,red\n',
    "part of a mark": "ｘ,x,w\n1,2,red\n",
    "blank cells": "x\t , w\n ,\t\n\t2 ,\tred \n",
    "control characters": "x,w\n1,red\0\n1,\x1fred\n\x0b1,red\n",
}


@pytest.mark.parametrize("kind", FILES)
def test_c_reads_a_file_as_python_does(kind, tmp_path):
    codes = (
        ColumnCode("x", True, thresholds=(1.5, 2.5, 3.5), missing=True),
        ColumnCode("w", False, ("red", 'red" wine', "red\r\n", "red\0", '"red"'), missing=True),
    )
    model = committee(codes)
    path = tmp_path / "t.csv"
    path.write_bytes(FILES[kind].encode())
    table = read_table(path)
    lines = zip(expected_lines(model, table), table["x"], strict=True)
    expected = [line if re.fullmatch(r"[\d \t]*", cell) else "-2" for line, cell in lines]
    assert run_main(model, FILES[kind], tmp_path).stdout.split() == expected


def run_main(model, table, folder):
    """The program of a header, given a table."""
    need("gcc")
    (folder / "tiny.h").write_text(header_of(model))
    (folder / "main.c").write_text('#define TINY_MAIN\n#include "tiny.h"\n')
    subprocess.run(["gcc", "main.c", "-o", "main"], cwd=folder, check=True)
    done = subprocess.run([folder / "main"], input=table.encode(), capture_output=True, check=True)
    return SimpleNamespace(stdout=done.stdout.decode(), stderr=done.stderr.decode())


def test_c_refuses_a_cell_that_is_too_long_to_be_kept_and_reads_on(tmp_path):
    model = committee((ColumnCode("w", False, ("red",), other=True),))
    cells = ["red", "red" + " " * 70_000 + "x", "red"]
    table = "w,more\n" + "".join(f"{cell},{'x' * 70_000}\n" for cell in cells)
    expected = expected_lines(model, {"w": cells})
    assert run_main(model, table, tmp_path).stdout.split() == [expected[0], "-2", expected[2]]


def test_c_refuses_a_pixel_that_is_not_whole(tmp_path):
    model = plain(mlp(2, (3,)), (2,))
    expected = expected_lines(model, {"x0": [0, 1, 1], "x1": [1, 0, 1]})
    found = run_main(model, "x0,x1\n0,1\n 1 ,false\n0.7,1\n1,+1.0\n", tmp_path).stdout.split()
    assert found == [*expected[:2], "-2", expected[2]]


def test_labels_are_counted_by_c_without_blanks_around_them(tmp_path):
    model = replace(committee(), labels=LabelCoder((" no", "yes\t"), "str"))
    rows = sample_rows(model.encoder, 20, seed=2)
    said = [["no", "yes"][number] for number in model.answers(rows).numbers.tolist()]
    done = run_main(model, as_csv(model, {**rows, " y ": said}), tmp_path)
    assert "20 of 20 rows answered as their label says" in done.stderr


JAVASCRIPT_CELLS = """
import { predict, columns } from "./m0.mjs";
import { readFileSync } from "node:fs";
const said = (row) => {
  try {
    const { number, probaParts } = predict(row);
    return [number, ...probaParts].join(",");
  } catch (error) {
    return error.message;
  }
};
const found = [5e-324, 1e-7, 1.5e-5, 0.00012, -1e-9, 1e21, 1e300, -0, 0.1, Infinity, -Infinity, 7n]
  .concat([true, false, null, undefined, NaN, "\\ud800", "7"]).map((word) => said([word, 1]));
const strange = [{}, [], new Date(0), () => 1, Symbol("x")].map((word) => said([word, 1]));
const rows = [JSON.parse('{"w": "7", "__proto__": 2}'), { w: "7" }, { w: "7", __proto__: 2 }];
console.log(JSON.stringify({ found, strange, rows: rows.map(said) }));
"""


def test_javascript_reads_cells_of_every_type_as_python_does(tmp_path):
    words = ("7", "5e-324", "1e-07", "1.5e-05", "0.00012", "-1e-09", str(10**21), str(int(1e300)))
    words = (*words, "0", "0.1", "inf", "-inf", "True", "False", "?")
    codes = (
        ColumnCode("w", False, words, other=True, missing=True),
        ColumnCode("__proto__", True, thresholds=(1.5,), missing=True),
    )
    model = committee(codes)
    (tmp_path / "m0.mjs").write_text(js_module(model, sample_rows(model.encoder, 8)))
    found = json.loads(run_node(tmp_path, JAVASCRIPT_CELLS))
    cells = [5e-324, 1e-7, 1.5e-5, 0.00012, -1e-9, 1e21, 1e300, -0.0, 0.1, np.inf, -np.inf, 7]
    cells += [True, False, None, None, np.nan, "\ud800", "7"]
    for cell, line in zip(cells, found["found"], strict=True):
        row = {"w": np.array([cell], object), "__proto__": [1]}
        assert [line] == expected_lines(model, row), cell
    kinds = ["object", "object", "object", "function", "symbol"]
    assert found["strange"] == [
        f"column w: expected a number, text or boolean, found {kind}" for kind in kinds
    ]
    own = expected_lines(model, {"w": ["7"], "__proto__": [2]})
    assert found["rows"] == [*own, *["column __proto__ not found"] * 2]


def test_words_among_numbers_may_be_called_as_properties_of_objects(tmp_path):
    model = committee((ColumnCode("x", True, thresholds=(1.5,), missing=True),))
    words = ["constructor", "__proto__", "toString", "valueOf"]
    (tmp_path / "m0.mjs").write_text(js_module(model, sample_rows(model.encoder, 8)))
    script = f"{json.dumps(words)}.map((word) => [...encode([word])])"
    said = f'import {{ encode }} from "./m0.mjs"; console.log(JSON.stringify({script}));'
    found = json.loads(run_node(tmp_path, said))
    assert found == model.encoder.transform({"x": words}).tolist()


def test_numbers_with_a_unit_are_no_numbers_without_it(tmp_path):
    spelling = Spelling(unit="kg")
    codes = (ColumnCode("x", True, thresholds=(0.5,), missing=True, spelling=spelling),)
    model = committee(codes)
    table = {"x": np.array(["true", "inf", "5", "5 kg", "na", "-Infinity"], object)}
    expected = expected_lines(model, table)
    expected[2:4] = ["-2", "-2"]
    assert by_javascript([(model, table)], tmp_path) == [expected]
    assert by_c([(model, table)], tmp_path) == [expected]


def test_no_field_of_c_is_called_as_a_macro_of_the_compiler():
    need("gcc")
    headers = "".join(f"#include <{name}.h>\n" for name in ("stdio", "math", "complex", "errno"))
    command = ["gcc", "-std=gnu17", "-dM", "-E", "-"]
    done = subprocess.run(command, input=headers, capture_output=True, text=True, check=True)
    macros = re.findall(r"^#define ([a-z]\w*) ", done.stdout, re.MULTILINE)
    assert {"linux", "unix", "stdin", "complex"} <= set(macros)
    assert not set(identifiers(macros)) & set(macros)


def test_text_of_the_user_is_left_as_it_is_where_prefixes_are_replaced():
    texts = ["tiny_x", "TINY_X", 'a "tiny_x"', "tiny_tiny_x"]
    for text in texts:
        assert with_prefix(comment(text), "iris") == text
        assert with_prefix(string(text), "iris") == '"' + text.replace('"', "\\042") + '"'
    assert with_prefix(" ".join(identifiers(["tiny_x", "iris_x", "tiny_x"])), "iris") == (
        "tiny_x iris_x tiny_x_2"
    )
    assert comment("a ???/ b /*/ c") == "a ? ? ?/ b / * / c"


def test_a_record_cannot_end_a_comment(tmp_path):
    model = replace(committee(), record={"a\n*/ throw 1; //\u2028": "*/\n??/\\"})
    (tmp_path / "m0.mjs").write_text(js_module(model, sample_rows(model.encoder, 8)))
    assert run_node(tmp_path, 'import "./m0.mjs"; console.log("fine");') == "fine\n"
    about = header_of(model).split("#ifndef")[0]
    assert about.count("*/") == 1


def test_rows_to_check_by_have_only_words_that_count_and_columns_by_their_names():
    codes = (
        ColumnCode(" x ", True, ("unknown",), thresholds=(1.5,), missing=True),
        ColumnCode("w", False, ("red",)),
    )
    rows = {"x": ["1", "5x", "unknown ", "\t2"], "w": ["red", "5x", " red", "?"]}
    assert golden_rows(committee(codes), rows) == {
        " x ": [1.0, None, "unknown", 2.0],
        "w": ["red", "5x", "red", None],
    }
