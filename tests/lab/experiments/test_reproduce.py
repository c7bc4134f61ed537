"""Every figure is made whole from a small config: drawing, numbers, settings, claims."""

import csv
import errno
import json
import math
import re
import runpy
from dataclasses import replace
from pathlib import Path
from shutil import copy

import pytest

from vitrail.cli import main
from vitrail.lab.experiments import fig1, fig2, fig3, fig4, fig5, units
from vitrail.lab.experiments.methods import SBP, SNMP, Rate
from vitrail.lab.experiments.report import write_report
from vitrail.lab.experiments.reproduce import FIGURES, FigurePlan, make, reproduce
from vitrail.lab.experiments.units import compute

ROOT = Path(__file__).parents[3]
SURVEYS = SNMP(batch=5, survey_samples=5, bins=11)
COUNTED = replace(SURVEYS, update="counting")

TINY = {
    "fig1": fig1.Config(
        widths=(4,),
        dampings=(0.5,),
        samples=(5, 8),
        repeats=2,
        survey_width=6,
        bins=(11,),
        inner_samples=(5,),
        survey_samples=(2, 5),
        survey_sizes=(4, 6),
        steps=2,
    ),
    "fig2": fig2.Config(
        sweeps=(
            fig2.Sweep("glass", 5, (5, 10), (Rate(10, 0.1),), (10,)),
            fig2.Sweep("digits", 64, (5,), (Rate(5, 0.1),), (5,)),
        ),
        surveys=SURVEYS,
        repeats=2,
        epochs=2,
    ),
    "fig3": fig3.Config(steps=2, survey_samples=(1, 3), repeats=2),
    "fig4": fig4.Config(
        curves=(
            fig4.Curve("linear", (SBP(batch=8), SURVEYS), (Rate(16, 0.03),)),
            fig4.Curve("conv", (SBP(batch=8), COUNTED), (Rate(16, 0.03),)),
        ),
        sizes=(8, 16),
        repeats=2,
        epochs=1,
    ),
    "fig5": fig5.Config(
        betas=(1.0, 10.0, math.inf),
        updates=(("counting", 8),),
        size=40,
        batch=16,
        epochs=2,
        repeats=2,
    ),
    "fig4-pinned": replace(
        fig4.AS_PRINTED, curves=fig4.AS_PRINTED.curves[2:], sizes=(8, 16), repeats=2, epochs=1
    ),
}


def planned(name):
    experiment = replace(FIGURES[name], quick=TINY[name])
    return FigurePlan(experiment, True, tuple(experiment.units(TINY[name])))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    return {
        name: make(plan, compute(plan.units, out / ".units" / name, 1), out)
        for name in FIGURES
        for plan in [planned(name)]
    }


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_leaves_all_its_files(name, results):
    folder = results[name].wide.parent
    for ending in (".png", ".svg", "-narrow.svg", ".csv", ".json"):
        assert (folder / f"{name}{ending}").stat().st_size > 0
    record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert record["config"]["seed"] == TINY[name].seed
    assert record["environment"]["torch"]
    assert [claim["verdict"] for claim in record["claims"]]


@pytest.mark.parametrize("name", FIGURES)
def test_the_numbers_on_disk_are_the_rows(name, results):
    with open(results[name].wide.parent / f"{name}.csv", encoding="utf-8", newline="") as file:
        stored = list(csv.DictReader(file))
    assert len(stored) == len(results[name].rows)


@pytest.mark.parametrize("name", FIGURES)
def test_a_finished_figure_takes_no_more_work(name, results):
    kept = results[name].wide.parent / ".units" / name
    before = {path: path.stat().st_mtime_ns for path in kept.iterdir()}
    done = compute(planned(name).units, kept, 1)
    assert [row for part in done for row in part.rows] == results[name].rows
    assert {path: path.stat().st_mtime_ns for path in kept.iterdir()} == before


@pytest.mark.parametrize("name", FIGURES)
def test_accuracies_are_consistent(name, results):
    for row in results[name].rows:
        if "decoded" in row:
            assert 0 <= row["last"] <= row["decoded"] <= row["best"] <= 1
            assert row["early"] <= row["best"]


def test_no_method_beats_the_optimum(results):
    rows = results["fig2"].rows
    top = {
        (row["family"], row["examples"], row["repeat"]): row["best"]
        for row in rows
        if row["method"] == fig2.OPTIMUM
    }
    assert top
    for row in rows:
        assert row["best"] <= top.get((row["family"], row["examples"], row["repeat"]), 1.0)


def test_the_page_needs_nothing_from_elsewhere(results, tmp_path):
    text = write_report(list(results.values()), tmp_path / "report.html").read_text("utf-8")
    assert "http://" not in text
    assert "https://" not in text
    assert text.count("data:image/svg+xml;base64,") == 2 * len(FIGURES)
    for result in results.values():
        for claim in result.claims:
            assert str(claim.verdict) in text


def test_an_unknown_figure_is_refused_with_the_names_there_are(tmp_path):
    with pytest.raises(ValueError, match="no figure 'fig9'; choose one of: fig1, "):
        reproduce("fig9", out=tmp_path)


def test_the_command_makes_the_page_and_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(FIGURES, "fig3", replace(FIGURES["fig3"], quick=TINY["fig3"]))
    command = ["reproduce", "fig3", "--quick", "--out", str(tmp_path / "out"), "--jobs", "1"]
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert not ended.value.code
    assert "no evidence about the paper" in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "the paper says" in capsys.readouterr().out


def test_the_command_refuses_an_unknown_figure(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "fig9", "--out", str(tmp_path)])
    assert ended.value.code == 2
    assert "no figure 'fig9'" in capsys.readouterr().err


def test_a_file_where_the_folder_should_be_is_refused(tmp_path, capsys):
    place = tmp_path / "out"
    place.write_text("mine")
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "fig3", "--quick", "--out", str(place)])
    assert ended.value.code == 2
    assert f"{place} is a file; give a folder" in capsys.readouterr().err
    assert place.read_text() == "mine"


def test_a_full_disk_is_told_in_a_sentence(tmp_path, monkeypatch, capsys):
    def full(done, cache):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(units, "_write", full)
    monkeypatch.setitem(FIGURES, "fig3", replace(FIGURES["fig3"], quick=TINY["fig3"]))
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "fig3", "--quick", "--out", str(tmp_path / "out"), "--jobs", "1"])
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: no space left for the results in")
    assert errors.count("\n") == 1


def test_the_documentation_has_every_claim_and_picture(results, tmp_path):
    script = runpy.run_path(str(ROOT / "scripts" / "docs_results.py"))
    source = results["fig1"].wide.parent
    with pytest.raises(SystemExit, match="holds a quick run"):
        script["main"](source, tmp_path)
    for name in FIGURES:
        place = source / f"{name}.json"
        place.write_text(place.read_text("utf-8").replace('"quick": true', '"quick": false'))
    script["main"](source, tmp_path)
    text = (tmp_path / "results" / "index.md").read_text("utf-8")
    for result in results.values():
        assert all(claim.paper in text and claim.measured in text for claim in result.claims)
        assert all(claim.advice in text for claim in result.claims)
    pictures = re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
    assert len(pictures) == 3 * len(FIGURES)
    assert all((tmp_path / "results" / picture).stat().st_size > 0 for picture in pictures)


def test_a_figure_that_is_not_there_is_missed(tmp_path):
    script = runpy.run_path(str(ROOT / "scripts" / "docs_results.py"))
    with pytest.raises(SystemExit, match="lacks fig1, fig2"):
        script["main"](tmp_path, tmp_path)


def test_figures_made_before_stay_on_the_page(results, tmp_path):
    script = runpy.run_path(str(ROOT / "scripts" / "docs_results.py"))
    source = results["fig1"].wide.parent
    for name in FIGURES:
        place = source / f"{name}.json"
        place.write_text(place.read_text("utf-8").replace('"quick": true', '"quick": false'))
    script["main"](source, tmp_path, "The first run.")
    (newer := tmp_path / "newer").mkdir()
    for ending in (".json", ".svg", "-narrow.svg"):
        copy(source / f"fig3{ending}", newer)
    script["main"](newer, tmp_path, "The second run.")
    text = (tmp_path / "results" / "index.md").read_text("utf-8")
    assert "\nfig3: " in text
    assert text.index("The first run.") < text.index("The second run.")
    assert all(claim.measured in text for claim in results["fig1"].claims)
