"""`vitrail stream`: predictions before learning, late labels, wrong rows, kills."""

import csv
import io
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from vitrail import BinaryNetClassifier
from vitrail.learning.online import NumberReader, OnlineLearner, memory_setting
from vitrail.scores import PageHinkley

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 4)).round(3)
Y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
NAMES = ["a", "b", "c", "d"]


def table(rows, labels, keys=None) -> str:
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow([*NAMES, "kind", *(["id"] if keys is not None else [])])
    for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
        out.writerow([*row, label, *([keys[number]] if keys is not None else [])])
    return text.getvalue()


@pytest.fixture(scope="module")
def fitted():
    import pandas as pd

    frame = pd.DataFrame(X[:200], columns=NAMES)
    net = BinaryNetClassifier(hidden=(3,), networks=32, random_state=0).fit(frame, Y[:200])
    net.model_.record["target"] = "kind"
    return net.model_


@pytest.fixture
def model(fitted, tmp_path):
    path = tmp_path / "model.safetensors"
    fitted.save(path)
    return path


def stream(model, text, *options):
    command = [sys.executable, "-m", "vitrail", "stream", str(model), *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout))), done.stderr


def test_every_row_is_answered_and_the_model_learns(model):
    flipped = np.where(Y == "up", "down", "up")
    labels = np.where(np.arange(1200) < 600, Y, flipped)[200:]  # all labels change sides
    before = model.read_bytes()
    rows, told = stream(model, table(X[200:], labels), "--memory", "200")
    assert len(rows) == 1000
    right = np.array([row["prediction"] for row in rows]) == labels
    assert right[:400].mean() > 0.8
    assert right[400:430].mean() < 0.3
    assert right[-200:].mean() > 0.8
    for name in ("probability", "uncertainty"):
        assert all(0 <= float(row[name]) <= 1 for row in rows)
    assert f"accuracy {right.mean():.4f}" in told
    assert "drift: the error rate has risen" in told
    assert model.read_bytes() != before


def test_wrong_rows_are_named_and_skipped(model):
    lines = table(X[200:210], Y[200:210]).splitlines()
    lines[3] = "1,2"
    lines[5] = lines[5].rsplit(",", 1)[0] + ",sideways"
    rows, told = stream(model, "\n".join(lines))
    assert len(rows) == 8
    assert "line 4 is skipped: 2 cells, where the header has 5" in told
    assert "line 6 is skipped: the label 'sideways' is none of the classes" in told


def test_only_predicting_changes_nothing(model, fitted):
    before = model.read_bytes()
    rows, _ = stream(model, table(X[200:300], [""] * 100), "--predict-only")
    assert [row["prediction"] for row in rows] == fitted.predict(
        {name: X[200:300, k] for k, name in enumerate(NAMES)}
    ).tolist()
    assert model.read_bytes() == before
    assert not model.with_name("model.safetensors.stream").exists()


def test_labels_may_come_later_by_key(model, tmp_path, fitted):
    at_once, other = tmp_path / "one", tmp_path / "two"
    for path in (at_once, other):
        fitted.save(path)
    keys = [f"k{number}" for number in range(200)]
    direct, told = stream(at_once, table(X[200:400], Y[200:400], keys), "--key", "id")
    later = table(X[200:400], [""] * 200, keys)
    later += "".join(f",,,,{label},{name}\n" for label, name in zip(Y[200:400], keys, strict=True))
    answers, late = stream(other, later, "--key", "id")
    assert [row["id"] for row in answers] == keys
    assert answers[0] == direct[0]
    assert answers[1:] != direct[1:]  # labels that came at once were learned
    assert "on 200 labels" in told
    assert "on 200 labels" in late


@pytest.mark.parametrize("pieces", [1, 7])
def test_a_killed_stream_goes_on_where_it_was_saved(fitted, tmp_path, pieces):
    text = table(X[200:], Y[200:])
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for path in (whole, cut):
        fitted.save(path)
    options = ["--save-every", "150"]
    expected, _ = stream(whole, text, *options)
    out = tmp_path / "answers.csv"
    command = [sys.executable, "-m", "vitrail", "stream", str(cut), "-o", str(out), *options]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdin is not None
    assert running.stderr is not None
    data = text.encode()
    half = data[: int(len(data) * 0.7)]
    for part in np.array_split(np.arange(len(half)), pieces):
        running.stdin.write(half[part[0] : part[-1] + 1])
        running.stdin.flush()
    state, until = cut.with_name("cut.stream"), time.monotonic() + 100
    while not state.exists() and time.monotonic() < until:
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdin.close()
    running.stderr.close()
    subprocess.run([*command, "--resume"], input=data, check=True, capture_output=True)
    assert list(csv.DictReader(io.StringIO(out.read_text()))) == expected


def test_a_learner_is_saved_and_loaded_with_all_it_goes_on_from(fitted):
    frame = {name: X[:, k] for k, name in enumerate(NAMES)}

    def rows(first):
        return {name: column[first : first + 100] for name, column in frame.items()}

    learner = OnlineLearner(fitted, memory="auto", seed=3)
    for first in range(200, 500, 100):
        learner.learn(rows(first), Y[first : first + 100])
    again, notes = OnlineLearner.from_bytes(learner.to_bytes(rows=7))
    assert notes == {"rows": 7}
    for one in (learner, again):
        one.learn(rows(500), Y[500:600])
    assert learner.to_bytes() == again.to_bytes()


def test_evidence_of_m_rows_ago_weighs_one_in_e(fitted):
    learner = OnlineLearner(fitted, memory=300)
    before = learner._beliefs.beliefs
    nothing = torch.zeros((300, fitted.program.num_inputs), dtype=torch.int8)
    learner.follow(nothing, np.zeros(300, np.int64))  # no input, so no message to the first layer
    weights = fitted.program.num_inputs * 3
    after = learner._beliefs.beliefs[:, :weights]
    np.testing.assert_allclose(after, before[:, :weights] / np.e, rtol=1e-4)


def test_rows_are_learned_one_by_one_however_many_come_together(fitted):
    frame = {name: X[:, k] for k, name in enumerate(NAMES)}
    together, alone = OnlineLearner(fitted), OnlineLearner(fitted)
    inputs, numbers = fitted.inputs(frame)[:60], fitted.labels.encode(Y[:60])
    first = together.follow(inputs, numbers).probabilities
    each = [alone.follow(inputs[k : k + 1], numbers[k : k + 1]).probabilities for k in range(60)]
    assert torch.equal(first, torch.cat(each))
    assert together.to_bytes() == alone.to_bytes()


def test_regressions_read_the_middle_of_a_bin_words_and_what_is_missing():
    import pandas as pd

    size = np.arange(400) / 4 % 50
    frame = pd.DataFrame({"size": size, "kind": np.array(["a", "b", "c"])[np.arange(400) % 3]})
    frame.loc[::7, "kind"] = None
    learner = OnlineLearner.untrained(frame, np.arange(400) % 2)
    reader = NumberReader.of(learner.began.encoder)
    read = reader.read(learner.began.inputs(frame).numpy())
    names = learner.began.encoder.bit_names
    assert read.shape == (400, len(reader)) == (400, 1 + sum("kind" in n for n in names) + 1)
    assert (read[:, -1] == 1).all()
    assert np.corrcoef(read[:, 0], size)[0, 1] > 0.999
    assert (read[:, 1:-1].sum(1) == 1).all()
    assert np.array_equal(read[:, -2] == 1, frame.kind.isna())


def test_a_threshold_on_a_sum_of_columns_is_learned():
    draw = np.random.default_rng(5)
    rows = draw.random((4000, 3))
    labels = ((rows[:, 0] + rows[:, 1] > 1) ^ (draw.random(4000) < 0.1)).astype(int)
    learner = OnlineLearner.untrained(rows[:200], np.arange(2))
    right = learner.learn(rows, labels).numbers.numpy() == labels
    assert right[-3000:].mean() > 0.87  # 0.9 at best


def test_a_saved_model_answers_as_the_learner_does(fitted):
    frame = {name: X[:, k] for k, name in enumerate(NAMES)}
    learner = OnlineLearner(fitted)
    learner.learn({name: column[:600] for name, column in frame.items()}, Y[:600])
    rows = {name: column[600:] for name, column in frame.items()}
    ours, saved = learner.answers(rows), learner.model.answers(rows)
    assert (ours.numbers == saved.numbers).double().mean() > 0.9  # regressions do not vote
    apart = (ours.probabilities - saved.probabilities).abs().double().mean() / 65535
    assert apart < 0.12


@pytest.mark.parametrize("classes", [2, 3])
def test_a_stream_needs_no_model_to_begin(classes):
    labels = np.digitize(X[:, 0] + X[:, 1], [0.0, 1.0][: classes - 1])
    learner = OnlineLearner.untrained(X[:100], np.arange(classes), memory=2000)
    right = learner.learn(X, labels).numbers.numpy() == labels
    assert right[-300:].mean() > 0.85
    assert learner.rows == 1200


def test_a_memory_is_rows_none_or_auto():
    assert memory_setting("none") is None
    assert memory_setting("auto") == "auto"
    assert memory_setting("500") == 500
    for wrong in ("0", "nan", "long", "inf"):
        with pytest.raises(ValueError, match="memory is a number of rows"):
            memory_setting(wrong)


def test_a_rise_of_the_mean_is_detected_once_and_a_level_sequence_is_not():
    test, draws = PageHinkley(), np.random.default_rng(1).random(20_000)
    assert not any(test.add(float(draw < 0.1)) for draw in draws[:10_000])
    assert any(test.add(float(draw < 0.4)) for draw in draws[10_000:11_000])
