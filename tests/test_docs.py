"""Every code block of the README and the documentation runs, page by page, in order."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN = {"python", "sh"}


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(kind, text) for kind, text in BLOCK.findall(page.read_text()) if kind in RUN]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_the_code_of_a_page_runs(page, tmp_path):
    """Python blocks of a page share one namespace and folder; shell blocks run in that folder."""
    lines = ["import subprocess"]
    for kind, text in blocks(page):
        if kind == "python":
            lines.append(text)
        else:
            commands = [line for line in text.splitlines() if line.split("#")[0].strip()]
            check_make_targets([line for line in commands if line.startswith("make ")])
            ours = [line for line in commands if line.startswith("vitrail ")]
            others = [c for c in commands if not c.startswith(("make ", "vitrail "))]
            assert not others, f"a block of {page.name} that no test runs: {others}"
            lines += [f"subprocess.run({line!r}, shell=True, check=True)" for line in ours]
    script = tmp_path / "page.py"
    script.write_text("\n".join(lines))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-W", "error", script.name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{page.name}: {done.stderr[-2000:]}"


def check_make_targets(commands: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in commands:
        assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE), command


def test_the_reference_pages_are_in_step_with_the_code():
    done = subprocess.run(
        [sys.executable, "scripts/build_reference.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if not target.startswith(("http://", "https://", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
