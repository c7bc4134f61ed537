"""The core works without the packages of the lab; what needs them says what to install."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LAB = [line.split(">=")[0] for line in PROJECT["optional-dependencies"]["lab"]]
MISSING = [package for package in LAB if package != "scipy"]  # scikit-learn brings scipy

SCRIPT = """
import contextlib, io, json, sys
for package in sys.argv[2:]:
    sys.modules[package] = None  # which makes its import fail
from vitrail.cli import main

found = []
for command in json.loads(sys.argv[1]):
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            main(command)
            code = 0
        except SystemExit as end:
            code = end.code
    found.append((code, said.getvalue()))
print(json.dumps(found))
"""

CORE = [
    "fit table.csv --target class --hidden 2 -o model.safetensors",
    "predict model.safetensors table.csv -o answers.csv",
    "compress model.safetensors table.csv -o small.safetensors --bits 30",
    "export small.safetensors --to c -o code --rows table.csv",
    "report small.safetensors table.csv -o page.html",
    "compare table.csv --target class --solvers sbp --epochs 1",
]
WRITTEN = ["model.safetensors", "answers.csv", "small.safetensors", "code/tiny.h", "page.html"]
NEED_THE_LAB = [
    "demo",
    "capacity --n 11 --alpha 0.5 --count 1",
    "reproduce fig1 --quick",
    "compare table.csv --target class --figure curves.png",
    "bench --share 0.001 --figure bench.png",
]


def test_the_core_does_not_depend_on_the_lab():
    assert "matplotlib" in LAB
    assert not [line for line in PROJECT["dependencies"] if line.split(">=")[0] in LAB]


def test_the_core_works_without_the_lab_and_the_lab_says_what_to_install(tmp_path):
    rows = [f"{i % 7},{'red' if i % 3 else 'blue'},{i % 7 > 3}" for i in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(["size,colour,class", *rows]))
    commands = json.dumps([line.split() for line in CORE + NEED_THE_LAB])
    call = [sys.executable, "-c", SCRIPT, commands, *MISSING]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ended = list(map(tuple, json.loads(done.stdout)))
    assert [code for code, _ in ended[: len(CORE)]] == [0] * len(CORE), ended
    assert [name for name in WRITTEN if not (tmp_path / name).is_file()] == []
    sentence = "a figure needs matplotlib, which is not installed; run: pip install 'vitrail[lab]'"
    assert ended[len(CORE) :] == [(2, f"error: {sentence}\n")] * len(NEED_THE_LAB)
