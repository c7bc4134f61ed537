"""The page about a model: its numbers are right, and Chromium shows it without help."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from vitrail.cli import main
from vitrail.model import load_model
from vitrail.report.measures import measure
from vitrail.report.page import round_ticks
from vitrail.tables.table import read_table

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
KINDS = ["<b>", "plain & simple", "weiß"]


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A table of three kinds, a model of it, and the page that came with the fit."""
    place = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    lines = ["size,colour,noise,kind"]
    for _ in range(150):
        size, colour = round(float(rng.normal()), 2), str(rng.choice(["red", "blue"]))
        kind = KINDS[2] if colour == "red" else KINDS[int(size > 0)]
        cell = "" if rng.random() < 0.05 else size
        lines.append(f"{cell},{colour},{round(float(rng.normal()), 2)},{kind}")
    (place / "data.csv").write_text("\n".join(lines), encoding="utf-8")
    fit = ("fit", place / "data.csv", "--target", "kind", "--hidden", 3)
    assert call(*fit, "-o", place / "m.safetensors", "--report", place / "fit.html") == 0
    return place


def test_the_numbers_are_those_of_the_model(folder):
    model, table = load_model(folder / "m.safetensors"), read_table(folder / "data.csv")
    found = measure(model, table, table["kind"])
    said = model.predict(table)
    assert found.accuracy == pytest.approx(float(np.mean(said == table["kind"])))
    assert found.confusion.sum() == found.rows == len(table)
    assert found.confusion.trace() == round(found.accuracy * found.rows)
    assert sum(rows for _, _, rows in found.reliability) == found.rows
    assert found.coverage[-1] == (1.0, pytest.approx(found.accuracy))
    probabilities = model.probabilities(table)
    truth = model.labels.encode(table["kind"])
    areas = [roc_auc_score(truth == one, model.decisions(table)[:, one]) for one in range(3)]
    assert found.auc == pytest.approx(np.mean(areas))
    assert found.log_loss == pytest.approx(log_loss(truth, probabilities))
    assert found.base_accuracy == np.bincount(truth).max() / len(truth)
    own = probabilities[np.arange(len(table)), model.labels.encode(table["kind"])]
    assert found.hardest[0].probability == pytest.approx(own.min())
    place = int(own.argmin())
    assert found.hardest[0].against == pytest.approx(model.uncertainty(table)[place])


@pytest.mark.parametrize(
    ("ends", "names"),
    [
        ((0.6, 1.0), ["0.6", "0.7", "0.8", "0.9", "1.0"]),
        ((0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ((0.95, 1.0), ["0.95", "0.96", "0.97", "0.98", "0.99", "1.00"]),
        ((-2.3, 2.4), ["−2", "−1", "0", "1", "2"]),
    ],
)
def test_ticks_are_round_numbers(ends, names):
    assert [name for _, name in round_ticks(*ends)] == names


def test_columns_that_matter_come_before_noise(folder):
    model, table = load_model(folder / "m.safetensors"), read_table(folder / "data.csv")
    columns = measure(model, table, table["kind"]).columns
    assert {columns[0].name, columns[1].name} == {"size", "colour"}
    assert columns[1].loss > 2 * columns[1].error > 0


def test_images_are_drawn(tmp_path):
    images = np.zeros((40, 4, 4), np.uint8)
    images[:20, :2], images[20:, 2:] = 255, 255
    np.savez(tmp_path / "images.npz", X=images, y=np.repeat([0, 1], 20))
    model, page = tmp_path / "m.safetensors", tmp_path / "page.html"
    assert call("fit", tmp_path / "images.npz", "--hidden", 3, "-o", model) == 0
    assert call("report", model, tmp_path / "images.npz", "-o", page) == 0
    text = page.read_text("utf-8")
    assert text.count('class="frame"') == 2
    table = read_table(tmp_path / "images.npz")
    picture = measure(load_model(model), table, table[str(table.label)]).picture
    assert picture is not None
    assert (picture[0, :2] >= picture[0, 2:]).mean() > 0.8


@pytest.mark.parametrize("made_by", ["fit", "report"])
def test_the_page_reads_anywhere_without_help(made_by, folder, browser):
    page = folder / f"{made_by}.html"
    if made_by == "report":
        assert call("report", folder / "m.safetensors", folder / "data.csv", "-o", page) == 0
    text = page.read_text("utf-8")
    assert text.count("<script") == text.count("<script>") == 1
    assert "calibration error" in text
    assert "Confusion matrix" in text
    asked, faults, shades = [], [], {}
    for scheme in ("light", "dark"):
        context = browser.new_context(java_script_enabled=True, color_scheme=scheme)
        tab = context.new_page()
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda line: faults.append(line.text))
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.goto(page.as_uri())
        for viewport in (DESK, PHONE):
            tab.set_viewport_size(viewport)
            assert tab.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(int(part) for part in colour.strip("rgb()").split(","))
        assert tab.locator("section").count() == 8
        assert "plain & simple" in tab.inner_text("main")
        head = tab.locator("table.sort th").first
        head.click()
        assert head.get_attribute("aria-sort") == "ascending"
        context.close()
    assert set(asked) == {page.as_uri()}
    assert faults == []
    assert shades["dark"] < 200 < 600 < shades["light"]


def test_rows_of_one_class_are_reported_and_strange_labels_named(folder, capsys):
    lines = (folder / "data.csv").read_text("utf-8").splitlines()
    label = lines[1].split(",")[lines[0].split(",").index("kind")]
    few = [line for line in lines[1:] if label in line.split(",")][:3]
    path, out = folder / "few.csv", folder / "few.html"
    path.write_text("\n".join([lines[0], *few]) + "\n", "utf-8")
    assert call("report", folder / "m.safetensors", path, "-o", out) == 0
    strange = few[1].replace(label, "strange")
    path.write_text("\n".join([lines[0], few[0], strange]) + "\n", "utf-8")
    capsys.readouterr()
    assert call("report", folder / "m.safetensors", path, "-o", out) == 2
    assert "'strange' in line 3 is none of the classes" in capsys.readouterr().err


def test_a_page_is_not_written_over_the_table(folder, capsys):
    data = folder / "data.csv"
    before = data.read_text("utf-8")
    assert call("report", folder / "m.safetensors", data, "-o", data) == 2
    assert "would replace it" in capsys.readouterr().err
    assert data.read_text("utf-8") == before
