"""Measured parts are written between the marks of a page, and nowhere else."""

import runpy
from pathlib import Path

import pytest

HARNESS = Path(__file__).parents[2] / "benchmarks" / "harness.py"
write_between = runpy.run_path(str(HARNESS))["write_between"]


def test_only_what_stands_between_the_marks_changes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n<!-- a -->old<!-- end -->\nrest\n<!-- b -->kept<!-- end -->\n")
    for _ in range(2):
        write_between(page, "<!-- a -->", "<!-- end -->", "| new |")
    assert page.read_text() == (
        "# Title\n<!-- a -->\n\n| new |\n\n<!-- end -->\nrest\n<!-- b -->kept<!-- end -->\n"
    )


@pytest.mark.parametrize("content", ["no marks", "<!-- a -->", "<!-- end --><!-- a -->"])
def test_a_page_without_its_marks_is_left_alone(tmp_path, content):
    page = tmp_path / "page.md"
    page.write_text(content)
    with pytest.raises(ValueError, match="needs the marks"):
        write_between(page, "<!-- a -->", "<!-- end -->", "new")
    assert page.read_text() == content
