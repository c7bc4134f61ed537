"""Figures of README and the documentation agree with what was measured."""

import json
import re
import runpy
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FIGURE = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?: / \d+\.\d+)?")


def figures(text: str) -> set[str]:
    return {figure.rstrip(",") for figure in FIGURE.findall(text)}


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_tables_of_pages_are_those_of_their_records():
    command = [sys.executable, "scripts/build_records.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_results_page_is_that_of_its_records():
    write = runpy.run_path(str(ROOT / "scripts" / "docs_results.py"))["page"]
    folder = ROOT / "docs" / "results"
    records = json.loads((folder / "records.json").read_text("utf-8"))
    assert (folder / "index.md").read_text("utf-8") == write(records)


def test_every_record_is_shown():
    shown = set(re.findall(r"<!-- record: (\S+) -->", "".join(p.read_text() for p in PAGES)))
    assert shown == {path.stem for path in (ROOT / "docs" / "records").glob("*.json")}


def headline_rows() -> list[list[str]]:
    readme = (ROOT / "README.md").read_text()
    return rows(readme.split("\n## Figures\n")[1].split("\n## ")[0])[1:]


def test_readme_has_headline_figures():
    assert len(headline_rows()) >= 5


@pytest.mark.parametrize("row", headline_rows(), ids=lambda row: row[0])
def test_figures_of_readme_stand_in_the_page_they_link_to(row):
    """Its table or its text; the row's last cell links to the page."""
    *cells, source = row
    link = re.search(r"\]\(([^)#]+)", source)
    assert link, f"no link to a page: {source}"
    known = figures((ROOT / link[1]).read_text())
    missing = sorted(figures(" ".join(cells)) - known)
    assert not missing, f"{link[1]} has no {', '.join(missing)}"


@pytest.mark.parametrize("page", [p for p in PAGES if "| **mean** |" in p.read_text()])
def test_means_are_those_of_the_rows_above(page):
    """Of the columns of accuracy / log-loss, up to the rounding of rows and mean."""
    lines = page.read_text().splitlines()
    for end, line in enumerate(lines):
        if not line.startswith("| **mean** |"):
            continue
        above = list(takewhile(lambda one: not one.startswith("|---"), reversed(lines[:end])))
        table, mean = rows("\n".join(above)), rows(line)[0]
        for column in (at for at, cell in enumerate(mean) if " / " in cell):
            for part in (0, 1):
                values = [float(row[column].split(" / ")[part]) for row in table]
                told = float(mean[column].split(" / ")[part])
                assert told == pytest.approx(sum(values) / len(values), abs=0.001), line


def test_summary_of_flash_is_that_of_its_tables():
    """The row "any rival" of docs/footprint.md counts the ratios of the table below it."""
    page = rows((ROOT / "docs" / "footprint.md").read_text())
    summary = next(row for row in page if row[0] == "any rival")
    head = next(at for at, row in enumerate(page) if row[:2] == ["table", "accuracy of both"])
    table = list(takewhile(lambda row: len(row) == len(page[head]), page[head + 1 :]))
    number = [[float(row[at].split(" ")[0].replace(",", "")) for at in (2, 3, 4)] for row in table]
    for (ours, rival, ratio), row in zip(number, table, strict=True):
        assert ratio == pytest.approx(ours / rival, abs=0.0051), row
    ratios = sorted(ratio for _, _, ratio in number)
    assert float(summary[1]) == ratios[len(ratios) // 2]
    half = sum(ratio <= 0.5 for ratio in ratios)
    assert summary[2] == f"{half} of {len(ratios)} tables"
    assert int(summary[3]) == sum(ratio > 1 for ratio in ratios)
