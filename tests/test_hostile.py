"""What a hostile user tries at the faces, from end to end, and no test of a part has.

Only names that every version has are used, so that the file can be run against an older one.
"""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import torch

from vitrail.cli import main
from vitrail.estimator import BinaryNetClassifier

QUICK = ("--hidden", "0", "--predictor", "best", "--epochs", "2")


def call(*arguments: object) -> tuple[int, str]:
    """Exit code and all that was said."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            return int(ended.code or 0), said.getvalue()
    return 0, said.getvalue()


def table(folder: Path, cells: list[str], name: str = "price") -> Path:
    """A table of one column and labels that a half of its rows share."""
    lines = [f"{name},kind", *(f"{cell},{'hi' if i % 2 else 'lo'}" for i, cell in enumerate(cells))]
    path = folder / "t.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_one_stray_word_does_not_cost_the_training(tmp_path):
    cells = [str(100 + 10 * (i % 2) + i % 7) for i in range(300)]
    cells[198] = "oops"
    out = tmp_path / "m.safetensors"
    code, said = call("fit", table(tmp_path, cells), "--target", "kind", *QUICK, "-o", out)
    assert code == 0
    assert out.exists()
    assert "price" in said
    assert "'oops'" in said
    assert "200" in said  # the line of the file, which begins with the header


@pytest.mark.parametrize("spelled", ["${:.2f}", '"{:,.2f}"', "{:.2f} €"])
def test_prices_are_numbers(tmp_path, spelled):
    draws = np.random.default_rng(0).uniform(1, 9999, 400)
    cells = [spelled.format(draw) for draw in np.sort(draws).reshape(2, 200).T.flatten()]
    code, said = call("fit", table(tmp_path, cells), "--target", "kind", *QUICK, "-o",
                      tmp_path / "m.safetensors")  # fmt: skip
    assert code == 0
    assert "price: numbers" in said
    assert "train 1.0000" in said


def test_a_name_that_is_not_utf8_is_written_and_told(tmp_path):
    data = table(tmp_path, ["1", "2"] * 20)
    out = tmp_path / os.fsdecode(b"m\xff.safetensors")
    code, said = call("fit", data, "--target", "kind", *QUICK, "-o", out)
    assert code == 0
    assert out.exists()
    said.encode("utf-8")
    assert call("info", out)[0] == 0


def test_a_terminal_that_lacks_a_sign_gets_it_spelled_out(tmp_path, monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", terminal)
    asked = ["--target", "kind", *QUICK, "-o", str(tmp_path / "m.safetensors")]
    with pytest.raises(SystemExit) as ended:
        main(["fit", str(table(tmp_path, ["1", "2"] * 20, "größe")), *asked])
    assert ended.value.code == 0
    terminal.seek(0)
    assert r"gr\xf6\xdfe" in terminal.read()


def test_the_page_does_not_replace_the_model(tmp_path):
    data, out = table(tmp_path, ["1", "2"] * 20), tmp_path / "m.safetensors"
    code, said = call("fit", data, "--target", "kind", *QUICK, "-o", out, "--report", out)
    assert code == 2
    assert "is the model's file" in said
    assert not out.exists()


def test_images_of_another_size_are_refused(tmp_path):
    draws = np.random.default_rng(0)
    for side in (6, 7):
        images = draws.integers(0, 256, (40, side, 6)).astype(np.uint8)
        np.savez(tmp_path / f"{side}.npz", X=images, y=np.arange(40) % 2)
    out = tmp_path / "m.safetensors"
    assert call("fit", tmp_path / "6.npz", *QUICK, "-o", out)[0] == 0
    code, said = call("predict", out, tmp_path / "7.npz", "-o", tmp_path / "p.csv")
    assert code == 2
    assert "the images are 7×6, the model has 6×6" in said
    for name in ("../x", ""):
        code, said = call("export", out, "--to", "js", "--name", name, "-o", tmp_path / "e")
        assert code == 2
        assert "expected a name of files" in said


@pytest.mark.parametrize("data", ["glass:999999999x99", "stained-glass:999999x3", "glass:5"])
def test_data_that_nobody_can_hold_are_refused(data):
    code, said = call("compare", data, "--epochs", 1, "--solvers", "sbp")
    assert code == 2
    assert "of memory" in said or "two numbers" in said


def test_a_checkpoint_without_a_folder_is_refused_before_training(tmp_path):
    data = table(tmp_path, ["1", "2"] * 20)
    asked = ("fit", data, "--target", "kind", *QUICK, "-o", tmp_path / "m.safetensors")
    code, said = call(*asked, "--checkpoint", tmp_path / "absent" / "c")
    assert code == 2
    assert "the folder of the checkpoint" in said


@pytest.mark.parametrize("command", [("demo", "-o"), ("compare", "glass:5x7", "--figure")])
def test_a_figure_of_no_format_is_refused_before_training(tmp_path, monkeypatch, command):
    from vitrail.lab import demo

    monkeypatch.setattr(demo, "run_demo", lambda *_: pytest.fail("trained first"))
    monkeypatch.setattr(BinaryNetClassifier, "fit", lambda *_: pytest.fail("trained first"))
    code, said = call(*command, tmp_path / "x.csv")
    assert code == 2
    assert "ends in .png" in said


def test_thousands_of_columns_are_fitted_by_a_linear_net():
    rows = np.random.default_rng(0).normal(size=(40, 2340)).round(3)
    net = BinaryNetClassifier((), predictor="best", epochs=1, polish=0)
    assert len(net.fit(rows, rows[:, 0] > 0).predict(rows)) == 40


def test_words_beyond_what_a_linear_net_is_searched_for_name_a_remedy():
    from vitrail.factors import perceptron
    from vitrail.graph import factor_graph
    from vitrail.solvers.flip_search import flip_searches

    graph = factor_graph(perceptron(torch.ones(1, 2**14 + 1), torch.ones(1)))
    with pytest.raises(ValueError, match=r"at most 16,384 weights, got 16,385; add hidden units"):
        flip_searches(graph)


def test_threads_that_wait_leave_the_cores_to_others():
    """By what is set before torch is loaded: a thread that spins takes a busy core from others."""
    script = "import os, vitrail; print(os.environ.get('GOMP_SPINCOUNT'))"
    bare = {name: value for name, value in os.environ.items() if not name.startswith("GOMP_")}
    bare.pop("OMP_WAIT_POLICY", None)
    found = subprocess.run([sys.executable, "-c", script], env=bare, capture_output=True, text=True)
    assert int(found.stdout) <= 10_000
