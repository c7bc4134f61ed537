"""`vitrail export` writes what each format and layout needs, and says what it cannot do."""

import shutil
import subprocess
import sys

import pytest
from export_cases import committee, plain
from torch import nn

from vitrail.export import FORMATS, LAYOUTS, ExportError, export_model
from vitrail.export.formats import golden_rows
from vitrail.model import load_model
from vitrail.nn import mlp

TABLE = "colour,size,rooms,y\nred,0.5,2,yes\nblue,?,1,no\ngreen,7,3,yes\n"


def vitrail(*arguments, folder):
    command = [sys.executable, "-m", "vitrail", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_rows_to_check_by_are_whole_where_the_code_holds_whole_numbers():
    rows = {"colour": ["red"] * 4, "size": [0.5] * 4, "rooms": ["2.4", "1.6", "inf", "?"]}
    assert golden_rows(committee(), rows)["rooms"] == [2, 2, 2**31 - 1, None]
    assert golden_rows(committee(), rows)["size"] == [0.5] * 4


def test_the_command_writes_a_header_that_answers_the_rows_it_is_given(tmp_path):
    committee().save(tmp_path / "model.safetensors")
    (tmp_path / "rows.csv").write_text(TABLE)
    options = ["--to", "c", "-o", "out", "--name", "paint", "--rows", "rows.csv"]
    done = vitrail("export", "model.safetensors", *options, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "wrote out/paint.h" in done.stderr
    text = (tmp_path / "out/paint.h").read_text()
    assert "#define PAINT_GOLDEN 3u" in text
    assert "{PAINT_COLOUR_RED, 0.5f, 2}" in text
    if shutil.which("gcc"):
        (tmp_path / "main.c").write_text('#define PAINT_MAIN\n#include "out/paint.h"\n')
        subprocess.run(["gcc", "main.c", "-o", "main"], cwd=tmp_path, check=True)
        done = subprocess.run([tmp_path / "main"], input=TABLE, capture_output=True, text=True)
        assert "3 of 3 known answers agree" in done.stderr
        found = [int(line.split(",")[0]) for line in done.stdout.splitlines()]
        net = load_model(tmp_path / "model.safetensors")
        lines = [line.split(",") for line in TABLE.splitlines()]
        columns = {name: list(cells) for name, *cells in zip(*lines, strict=True)}
        assert found == net.answers(columns).numbers.tolist()


@pytest.mark.parametrize("to", FORMATS)
def test_every_format_is_written_for_the_rows_of_a_table(to, tmp_path):
    model = committee()
    rows = {"colour": ["red", "blue"], "size": [0.5, None], "rooms": [2, 1], "more": [0, 0]}
    (path,) = export_model(model, to, tmp_path, name="paint", rows=rows)
    assert path.stem == "paint"
    assert path.stat().st_size > 1000
    again = export_model(model, to, tmp_path / "again", name="paint", rows=rows)
    assert again[0].read_bytes() == path.read_bytes()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_holds_the_header_and_a_program_that_checks_it(layout, tmp_path):
    paths = export_model(committee(), "c", tmp_path, name="paint", layout=layout)
    assert any(path.name == "paint.h" for path in paths)
    if layout != "header":
        assert all(path.is_relative_to(tmp_path / "paint") for path in paths)
        program = next(path for path in paths if path.name in ("main.c", "Check.ino"))
        assert "paint_check()" in program.read_text()
        if program.suffix == ".c" and layout != "firmware" and shutil.which("gcc"):
            header = next(path for path in paths if path.name == "paint.h")
            command = ["gcc", f"-I{header.parent}", str(program), "-o", str(tmp_path / "check")]
            subprocess.run(command, check=True)
            done = subprocess.run([tmp_path / "check"], capture_output=True, text=True)
            assert (done.returncode, done.stdout) == (0, "16 of 16 known answers agree\n")


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"to": "fortran"}, "unknown format 'fortran'; choose one of: c"),
        ({"to": "c", "layout": "cmake"}, "unknown layout 'cmake'; choose one of: header"),
        ({"to": "c", "name": "1st"}, "cannot begin names in C"),
        ({"to": "js", "layout": "arduino"}, "the layout 'arduino' is one of C"),
    ],
)
def test_an_export_that_cannot_be_written_is_refused(options, fault, tmp_path):
    with pytest.raises(ExportError, match=fault):
        export_model(committee(), folder=tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_net_of_unknown_parts_is_refused_with_advice(tmp_path):
    module = nn.Sequential(mlp(4, (3,)), nn.Tanh())
    with pytest.raises(ExportError, match=r"build it of the layers of vitrail\.nn"):
        export_model(plain(module, (4,)), "c", tmp_path)
