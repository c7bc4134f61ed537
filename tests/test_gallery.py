"""The examples of the gallery run as they stand, and the site shows every one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LONG = {"own_csv", "few_images"}
RUNS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.long] if path.stem in LONG else [])
    for path in EXAMPLES
]


@pytest.mark.parametrize("example", RUNS)
def test_an_example_runs_and_ends_with_a_number(example, tmp_path, forks):
    done = forks.run(example, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"\d", done.stdout), "an example shows a number"


def test_the_site_shows_every_example():
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r'--8<-- "examples/(\w+\.py)"', page)
    assert sorted(shown) == [example.name for example in EXAMPLES]
