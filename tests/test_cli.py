"""The command line from outside: what it writes, what it says, and how it ends."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from vitrail import memory
from vitrail.cli import main
from vitrail.cli.options import SOLVER_NAMES
from vitrail.export import flash, flash_bytes
from vitrail.learning import SOLVERS, shapes
from vitrail.model import load_model
from vitrail.tables import table as tables

RNG = np.random.default_rng(0)
HEADER = ["colour", "size", "note", "class"]


def rows(count: int = 80) -> list[list[str]]:
    made = []
    for number in range(count):
        colour, size = RNG.choice(["red", "green", "blue"]), round(float(RNG.normal()), 2)
        label = "001" if colour == "red" or size > 0.5 else "no, thanks"
        shown = "?" if number % 13 == 5 else str(size)
        made.append([str(colour), shown, f"free text {number}", label])
    return made


ROWS = rows()


def write(path: Path, header: list[str], lines: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *lines])
    return path


@pytest.fixture
def data(tmp_path) -> Path:
    return write(tmp_path / "data.csv", HEADER, ROWS)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    path = folder / "model.safetensors"
    source = write(folder / "data.csv", HEADER, ROWS)
    assert call("fit", source, "--target", "class", "--hidden", 3, "-o", path)[0] == 0
    return path


class Captured(io.TextIOWrapper):
    """Standard output whose bytes can be read back."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # pyright: ignore[reportAttributeAccessIssue]


def call(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command run in this process."""
    before, out, err = (sys.stdout, sys.stderr), Captured(), Captured()
    sys.stdout, sys.stderr = out, err
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    else:
        code = 0
    finally:
        sys.stdout, sys.stderr = before
    return code, out.text(), err.text()


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_quiet_leaves_the_account_of_columns_out(data, tmp_path):
    path = tmp_path / "m.safetensors"
    how = ("--target", "class", "--hidden", 0, "--predictor", "best", "--quiet")
    code, out, _ = call("fit", data, *how, "-o", path)
    assert code == 0
    assert "bits, train" in out
    assert "colour: words" not in out


def test_fit_prints_its_accuracy_and_where_the_model_is(data, tmp_path):
    path = tmp_path / "m.safetensors"
    code, out, err = call(
        "fit", data, "--target", "class", "-o", path, "--hidden", "3", "--seed", 4
    )
    assert code == 0
    assert "error" not in err  # the line that kernels are being compiled may be there
    assert "bits, train" in out
    assert "rows held out" in out
    assert str(path) in out
    assert out.index("colour: words") < out.index("bits, train")
    record = load_model(path).record
    assert record["target"] == "class"
    assert record["settings"]["seed"] == 4
    assert 0.5 < record["test_accuracy"] <= 1


def test_predict_adds_columns_on_the_right_and_keeps_the_rest_verbatim(model, data):
    code, out, err = call("predict", model, data, "--proba")
    assert (code, err) == (0, "")
    answers = table(out)
    added = ["probability_001", "probability_no, thanks", "uncertainty", "prediction"]
    assert list(answers[0]) == [*HEADER, *added]
    assert [[row[name] for name in HEADER] for row in answers] == ROWS
    for row in answers:
        first, second = float(row[added[0]]), float(row[added[1]])
        assert first + second == pytest.approx(1)
        assert row["prediction"] == ("001" if first >= second else "no, thanks")
    right = np.mean([row["prediction"] == row["class"] for row in answers])
    assert right > 0.8


def test_columns_are_matched_by_name_and_labels_are_not_needed(model, tmp_path):
    turned = write(tmp_path / "new.csv", ["size", "colour"], [[r[1], r[0]] for r in ROWS])
    _, out, _ = call("predict", model, turned)
    assert list(table(out)[0]) == ["size", "colour", "prediction"]
    full = write(tmp_path / "full.csv", HEADER, ROWS)
    _, expected, _ = call("predict", model, full)
    assert [r["prediction"] for r in table(out)] == [r["prediction"] for r in table(expected)]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_files_go_in_and_out_in_every_format(model, data, tmp_path, suffix):
    source, target = tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}"
    if suffix == "parquet":
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(data), source)
    else:
        delimiter = "," if suffix == "csv" else "\t"
        with source.open("w", newline="") as stream:
            csv.writer(stream, delimiter=delimiter).writerows([HEADER, *ROWS])
    code, out, err = call("predict", model, source, "-o", target)
    assert (code, out, err) == (0, "", "")
    written = tables.read_table(target)
    _, plain, _ = call("predict", model, data)
    assert written["prediction"].tolist() == [row["prediction"] for row in table(plain)]


def test_standard_input_is_read(model, data):
    command = [sys.executable, "-m", "vitrail", "predict", str(model), "-"]
    outcome = subprocess.run(command, input=data.read_text(), capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.replace("\r\n", "\n") == call("predict", model, data)[1]


def test_arrays_and_images_name_their_labels(tmp_path):
    images = RNG.integers(0, 2, (60, 4, 4)).astype(np.uint8) * 255
    labels = (images[:, 0, 0] > 0).astype(np.int64)
    np.savez(tmp_path / "images.npz", X=images, y=labels)
    path = tmp_path / "m.safetensors"
    code, _, _ = call("fit", tmp_path / "images.npz", "-o", path, "--hidden", 0)
    assert code == 0
    code, out, _ = call("info", path)
    assert code == 0
    assert "██" in out  # the weights as a picture
    code, out, _ = call("evaluate", path, tmp_path / "images.npz", "--json")
    assert json.loads(out)["rows"] == 60


def test_info_shows_layers_bits_and_bytes(model):
    code, out, _ = call("info", model)
    assert code == 0
    facts = json.loads(call("info", model, "--json")[1])
    inputs = facts["inputs"] + facts["constant_inputs"]
    assert facts["layers"] == [f"{inputs}×3", "3×1"]
    assert facts["bits"] == 3 * inputs + 3
    assert facts["bytes_of_weights"] == -(-facts["bits"] // 8)
    assert facts["bytes_of_file"] == model.stat().st_size
    assert str(facts["bits"]) in out
    assert 0 < facts["bytes_of_ram"] < facts["bytes_of_flash"]
    assert "of a Cortex-M0+, " in out
    assert "R-hat" in out
    assert "effective sample size" in out


def test_evaluate_counts_rights_and_wrongs(model, data):
    scores = json.loads(call("evaluate", model, data, "--json")[1])
    answers = table(call("predict", model, data)[1])
    right = [row["prediction"] == row["class"] for row in answers]
    assert scores["accuracy"] == pytest.approx(np.mean(right), abs=1e-6)
    assert np.sum(scores["confusion"]) == len(ROWS)
    assert 0 <= scores["calibration_error"] <= 1
    code, out, _ = call("evaluate", model, data)
    assert code == 0
    assert "accuracy" in out


def test_evaluate_names_the_row_of_an_unknown_label_in_its_file(model, tmp_path, monkeypatch):
    lines = [list(row) for row in ROWS[:40]]
    lines[33][-1] = "perhaps"
    path = write(tmp_path / "data.csv", HEADER, lines)
    whole = tables.iter_table
    monkeypatch.setattr(tables, "iter_table", lambda path: whole(path, batch_rows=10))
    code, _, err = call("evaluate", model, path)
    assert code == 2
    assert "label 'perhaps' in line 35" in err


def test_compare_prints_a_row_per_solver_and_draws(tmp_path):
    figure = tmp_path / "curves.png"
    arguments = ("compare", "glass:11x20", "--solvers", "sbp,ste", "--epochs", 3)
    code, out, _ = call(*arguments, "--json", "--figure", figure)
    assert code == 0
    results = json.loads(out)["results"]
    assert [result["solver"] for result in results] == ["sbp", "ste"]
    assert all(result["bits"] == 11 and result["test"] is None for result in results)
    assert figure.read_bytes().startswith(b"\x89PNG")
    code, out, _ = call(*arguments)
    assert "train best" in out.replace("\n", " ")


def test_compare_takes_files(data):
    how = ("--target", "class", "--hidden", 3, "--solvers", "chains,sbp", "--epochs", 2)
    code, out, _ = call("compare", data, *how, "--json")
    assert code == 0
    chains, sbp = json.loads(out)["results"]
    assert (chains["solver"], sbp["solver"]) == ("chains", "sbp")
    assert chains["test"] > 0.8
    assert 0 < sbp["train_last"] <= sbp["train_best"] <= 1


def test_ctrl_c_keeps_the_best_and_says_where(data, tmp_path, monkeypatch):
    from vitrail.solvers.chains import Chains

    original, calls = Chains.advance, []

    def advance(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(Chains, "advance", advance)
    path = tmp_path / "m.safetensors"
    code, _, err = call("fit", data, "--target", "class", "-o", path)
    assert code == 130
    assert f"the best network so far is in {path}" in err
    assert load_model(path).predict({"colour": ["red"], "size": ["1"], "note": [""]}).size == 1


def test_the_table_is_not_replaced_by_the_model(data, model):
    before = data.read_bytes()
    sentence = one_line(call("fit", data, "--target", "class", "-o", data))
    assert "is also the input" in sentence
    assert "is also the input" in one_line(call("predict", model, data, "-o", data))
    assert data.read_bytes() == before


def test_the_least_confident_rows_can_be_left_unanswered(tmp_path):
    many, model = write(tmp_path / "many.csv", HEADER, rows(500)), tmp_path / "many.safetensors"
    settings = ("--target", "class", "--hidden", 0, "--predictor", "posterior", "--beta", 1)
    assert call("fit", many, *settings, "-o", model)[0] == 0
    code, out, err = call("predict", model, many, "--abstain", 0.4, "--proba")
    assert code == 0
    answered = table(out)
    names = [name for name in answered[0] if name.startswith("probability")]
    confidence = np.array([max(float(row[name]) for name in names) for row in answered])
    empty = np.array([row["prediction"] == "" for row in answered])
    assert 0.1 < empty.mean() < 0.6
    assert confidence[empty].max() < confidence[~empty].min()
    found = load_model(model).abstention(0.4)
    assert f"left {empty.sum()} of 500 rows empty" in err
    assert f"at most {found.rate:.0%} of the rows held out" in err
    assert "from 0 to below 1" in one_line(call("predict", model, many, "--abstain", 2))


def test_no_rate_is_promised_from_ten_rows_held_out(tmp_path):
    few, model = write(tmp_path / "few.csv", HEADER, rows(50)), tmp_path / "few.safetensors"
    assert call("fit", few, "--target", "class", "--hidden", 3, "-o", model)[0] == 0
    sentence = one_line(call("predict", model, few, "--abstain", 0.05))
    assert "fewer than 100 rows held out" in sentence


def test_evaluate_shows_accuracy_against_coverage(model, data):
    covered = json.loads(call("evaluate", model, data, "--json")[1])["coverage"]
    assert [part["answered"] for part in covered] == [k / 10 for k in range(10, 0, -1)]
    assert covered[0]["rows"] == len(ROWS)
    assert covered[-1]["accuracy"] >= covered[0]["accuracy"]
    assert "answered" in call("evaluate", model, data)[1]


def test_compress_prints_a_curve_and_writes_a_small_model(model, data, tmp_path):
    path = tmp_path / "small.safetensors"
    code, out, _ = call("compress", model, data, "-o", path, "--bits", 200)
    assert code == 0
    assert "chosen" in out
    small, whole = load_model(path), load_model(model)
    assert small.networks.numel() <= 200 < whole.networks.numel()
    assert len(small.predict({"colour": ["red"], "size": ["1"], "note": [""]})) == 1
    asked = ("compress", model, data, "-o", path)
    assert "too few" in one_line(call(*asked, "--bits", 3))
    code, out, _ = call(*asked, "--flash", 400)
    assert code == 0
    assert flash_bytes(load_model(path)).flash <= 400
    assert "bytes of flash" in out
    assert "bytes of flash are too few: the smallest model has" in one_line(
        call(*asked, "--flash", 3)
    )
    assert "'nope' not found" in one_line(call(*asked, "--target", "nope"))
    assert "in line 2 is none of the classes" in one_line(call(*asked, "--target", "colour"))


def test_fit_gives_a_small_model_where_flash_is_given(data, tmp_path):
    path = tmp_path / "small.safetensors"
    asked = ("fit", data, "--target", "class", "--hidden", 3, "-o", path, "--flash", 300)
    code, out, _ = call(*asked)
    assert code == 0
    assert "bytes of flash" in out
    small = load_model(path)
    assert flash_bytes(small).flash <= 300
    assert {"train_accuracy", "test_accuracy", "target", "seconds"} <= small.record.keys()
    assert "leave out --predictor" in one_line(call(*asked, "--predictor", "best"))
    assert "does not take --flash" in one_line(call(*asked, "--memory", "1GB"))


def test_export_to_c_shows_flash_and_warns_of_much(model, tmp_path, monkeypatch):
    asked = ("export", model, "--to", "c", "-o", tmp_path)
    monkeypatch.setattr(flash, "DEVICE_FLASH", 10**9)
    _, _, told = call(*asked)
    assert "bytes of flash" in told
    assert "warning" not in told
    monkeypatch.setattr(flash, "DEVICE_FLASH", 100)
    assert "--flash 100` makes a model that fits" in call(*asked)[2]
    assert "bytes of flash" not in call("export", model, "--to", "js", "-o", tmp_path)[2]


def test_names_in_square_brackets_are_shown_as_they_are(tmp_path):
    lines = [[*row[:3], f"[/{row[3]}]"] for row in ROWS]
    source = write(tmp_path / "data.csv", HEADER, lines)
    path = tmp_path / "m[red].safetensors"
    arguments = ("fit", source, "--target", "class", "--hidden", 0, "--epochs", 1, "-o", path)
    code, out, _ = call(*arguments)
    assert code == 0
    assert str(path) in out
    for command in (("info", path), ("evaluate", path, source)):
        code, out, _ = call(*command)
        assert code == 0
        assert "[/001]" in out


def test_info_without_a_model_shows_versions():
    code, out, _ = call("info")
    assert code == 0
    assert "torch" in out
    assert json.loads(call("info", "--json")[1])["vitrail"]


@pytest.mark.parametrize("shape", [[4], "x", [0, -3], [4, "4"], {"a": 1}, 7])
def test_info_does_without_a_malformed_image_shape(model, tmp_path, shape):
    net = load_model(model)
    net.record["image_shape"] = shape
    net.save(tmp_path / "odd.safetensors")
    assert call("info", tmp_path / "odd.safetensors")[0] == 0


def test_hidden_units_beyond_reason_are_refused(tmp_path):
    assert "take at most" in fit_fault(tmp_path, HEADER, ROWS, "--hidden", "999999999", "--quiet")


def test_a_figure_without_a_folder_is_refused_before_training(tmp_path, monkeypatch):
    from vitrail.lab import demo

    monkeypatch.setattr(demo, "run_demo", lambda *_: pytest.fail("trained first"))
    assert "there is no folder" in one_line(call("demo", "-o", tmp_path / "absent" / "x.png"))


@pytest.mark.parametrize(
    "line",
    [
        "predict {model} - <&-",
        "info {model} >&-",
        "predict {model} {data} | head -1",
        pytest.param("predict {model} {data} >&-", marks=pytest.mark.long),
    ],
)
def test_closed_streams_end_in_no_traceback(model, data, line):
    command = f"{sys.executable} -m vitrail {line.format(model=model, data=data)}"
    outcome = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in outcome.stderr


def test_ctrl_c_before_anything_is_found_says_so(data, tmp_path, monkeypatch):
    from vitrail.tables.encoders import TableEncoder

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(TableEncoder, "transform", interrupted)
    path = tmp_path / "m.safetensors"
    code, _, err = call("fit", data, "--target", "class", "-o", path)
    assert code == 130
    assert "nothing is saved" in err
    assert not path.exists()


def test_version_and_help():
    code, out, _ = call("--version")
    assert (code, out.split()[0]) == (0, "vitrail")
    for command in ("fit", "predict", "info", "evaluate", "compare", "demo"):
        code, out, _ = call(command, "--help")
        assert code == 0
        assert "Example" in out, command


def one_line(outcome: tuple[int, str, str]) -> str:
    """The sentence of a refused command: exit code 2, one line, nothing on standard output."""
    code, out, err = outcome
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def fit_fault(tmp_path, header, lines, *more, target="class") -> str:
    source = write(tmp_path / "bad.csv", header, lines)
    path = tmp_path / "m.safetensors"
    sentence = one_line(call("fit", source, "--target", target, "-o", path, *more))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.csv"]
    return sentence


def test_a_missing_target_column_is_named_with_the_ones_there_are(tmp_path):
    sentence = fit_fault(tmp_path, HEADER, ROWS, target="lable")
    assert "target column 'lable' not found; columns are: colour, size, note, class" in sentence


def test_one_class_only(tmp_path):
    same = [[*row[:3], "yes"] for row in ROWS]
    assert "at least two classes" in fit_fault(tmp_path, HEADER, same)


def test_an_all_missing_column(tmp_path):
    blank = write(tmp_path / "t.csv", HEADER, [[row[0], "?", *row[2:]] for row in ROWS])
    code, out, _ = call("fit", blank, "--target", "class", "-o", tmp_path / "m")
    assert code == 0
    assert "size: dropped, 64 missing; it is empty in every row" in out


def test_an_empty_file_and_a_file_without_rows(tmp_path):
    (tmp_path / "bad.csv").write_text("")
    assert "empty" in one_line(call("fit", tmp_path / "bad.csv", "--target", "class"))
    one_line(call("fit", write(tmp_path / "bad.csv", HEADER, []), "--target", "class"))


def test_a_bad_setting(tmp_path):
    assert "unknown solver 'sgd'" in fit_fault(tmp_path, HEADER, ROWS, "--solver", "sgd")
    assert "beta is a positive number" in fit_fault(tmp_path, HEADER, ROWS, "--beta", "-1")
    assert "hidden units" in fit_fault(tmp_path, HEADER, ROWS, "--hidden", "8,x")


def test_text_in_a_numeric_column_at_predict_time(model, tmp_path):
    bad = write(tmp_path / "bad.csv", HEADER, [*ROWS, ["red", "large", "", ""]])
    out = tmp_path / "out.csv"
    code, _, err = call("predict", model, bad, "-o", out)
    assert code == 0
    assert err == (
        "warning: column 'size', line 82: expected a number, found 'large'; read as missing\n"
    )
    assert len(tables.read_table(out)) == 81


def test_a_feature_column_missing_at_predict_time(model, tmp_path):
    bad = write(tmp_path / "bad.csv", ["colour"], [["red"]])
    assert "column 'size' not found" in one_line(call("predict", model, bad))


def test_files_that_are_not_there(model, tmp_path):
    assert "is not there" in one_line(call("predict", tmp_path / "no.safetensors", "x.csv"))
    assert "no.csv" in one_line(call("predict", model, tmp_path / "no.csv"))
    assert "no.csv" in one_line(call("fit", tmp_path / "no.csv", "--target", "class"))


def test_outputs_that_cannot_be_written(model, data, tmp_path):
    for arguments in (
        ("fit", data, "--target", "class", "-o", tmp_path / "absent" / "m.safetensors"),
        ("predict", model, data, "-o", tmp_path / "absent" / "out.csv"),
        ("predict", model, data, "-o", tmp_path),
    ):
        assert "cannot" in one_line(call(*arguments))


def test_a_file_that_is_no_model(data):
    assert "damaged or no model" in one_line(call("info", data))


def test_a_table_beyond_memory_is_refused_before_it_is_loaded(data, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    sentence = one_line(call("fit", data, "--target", "class"))
    assert "of memory to load" in sentence


def test_a_table_beyond_memory_is_still_predicted_on(model, data, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    assert call("predict", model, data)[0] == 0


def test_a_prediction_column_in_the_input_is_refused(model, tmp_path):
    bad = write(tmp_path / "bad.csv", [*HEADER, "prediction"], [[*row, "x"] for row in ROWS])
    assert "already has a column 'prediction'" in one_line(call("predict", model, bad))


def test_the_help_names_every_solver_of_the_table():
    assert SOLVER_NAMES.split(", ") == list(SOLVERS)


def test_rows_are_streamed_within_a_ceiling(tmp_path):
    source = write(
        tmp_path / "long.csv", HEADER[:2] + HEADER[3:], [r[:2] + r[3:] for r in ROWS] * 5
    )
    path = tmp_path / "streamed.safetensors"
    asked = ("fit", source, "--target", "class", "--memory", "2GiB", "--epochs", 3, "-o", path)
    code, out, _ = call(*asked)
    assert code == 0
    assert "encoder fitted to 400 rows" in out
    assert "rows per second" in out
    model = load_model(path)
    assert model.record["settings"]["solver"] == "streaming"
    assert call("predict", path, source, "-o", tmp_path / "answers.csv")[0] == 0
    refused = one_line(call(*asked, "--report", tmp_path / "r.html", "--beta", 2))
    assert "does not take --beta, --report" in refused
    code, _, err = call("fit", source, "--target", "class", "--memory", "much", "-o", path)
    assert code != 0
    assert "such as 4GiB" in err


def bars(rows):
    """Noisy images 9×9 with a bar at the top, in the middle or at the bottom, and which it is."""
    rng, labels = np.random.default_rng(0), np.arange(rows) % 3
    images = (rng.random((rows, 9, 9)) < 0.2).astype(np.uint8) * 255
    for number, label in enumerate(labels):
        images[number, 3 * label : 3 * label + 3] = 255
    return images, labels


def test_images_are_fitted_by_convolutions(tmp_path):
    rng = np.random.default_rng(1)
    images, labels = bars(90)
    np.savez(tmp_path / "digits.npz", X=images, y=labels)
    path = tmp_path / "conv.safetensors"
    asked = ("fit", tmp_path / "digits.npz", "--net", "conv", "--solver", "streaming", "-o", path)
    code, out, _ = call(*asked, "--epochs", 20)
    assert code == 0, out
    model = load_model(path)
    assert model.program.input_shape == (1, 9, 9)
    assert model.record["test_accuracy"] > 0.8
    np.savez(tmp_path / "digits.npz", X=images // 255 * rng.integers(70, 256, (90, 9, 9)), y=labels)
    code, out, _ = call(*asked, "--epochs", 20)
    assert code == 0, out
    assert "243 bits; 3 per column, every 63.75 from 0 to 255" in out
    assert load_model(path).program.input_shape == (4, 9, 9)  # three bits and ones
    small = ("fit", tmp_path / "digits.npz", "--net", "small-conv", "--epochs", 20, "-o", path)
    code, out, _ = call(*small)
    assert code == 0, out
    assert "whole numbers to 255" in out
    assert load_model(path).record["settings"]["solver"] == "ste"
    code, out, _ = call("info", path)
    assert code == 0
    assert "bytes of flash" in out
    table = write(tmp_path / "flat.csv", ["a", "class"], [["1", "x"], ["2", "y"]] * 5)
    code, _, err = call("fit", table, "--target", "class", "--net", "conv", "-o", path)
    assert code != 0
    assert "--net conv needs images" in err


def test_shapes_of_nets_for_images_are_compared_within_flash(tmp_path, monkeypatch):
    monkeypatch.setattr(shapes, "FAMILIES", shapes.FAMILIES[3:5])
    monkeypatch.setattr(shapes, "FINALISTS", 1)
    images, labels = bars(300)
    path = tmp_path / "small.safetensors"
    np.savez(tmp_path / "bars.npz", X=images, y=labels)
    asked = ("fit", tmp_path / "bars.npz", "--epochs", 160, "-o", path)
    code, out, _ = call(*asked, "--flash", 1800)
    assert code == 0, out
    model = load_model(path)
    assert flash_bytes(model).flash <= 1800
    assert str(flash_bytes(model)) in out
    assert model.record["test_accuracy"] > 0.8
    tried = model.record["shapes"]
    assert tried[0]["accuracy"] == max(one["accuracy"] for one in tried if one["epochs"] == 40)
    assert {one["epochs"] for one in tried} == {10, 40}
    assert all(one["flash"] <= 1800 for one in tried)
    refused = call(*asked, "--flash", 300)
    assert refused[0] != 0
    assert "300 bytes of flash are too few: the smallest model has" in one_line(refused)
    chains = ("--solver", "chains", "--hidden", 3, "--effort", "quick")
    code, out, _ = call("fit", tmp_path / "bars.npz", *chains, "--flash", 900, "-o", path)
    assert code == 0, out
    assert "compressed" in load_model(path).record
