"""Every code block of the README and the documentation runs, page by page, in order."""

import importlib
import inspect
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from vitrail.export.devices import TARGETS
from vitrail.solvers import Solver

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN = {"python", "sh"}
PRINTED = "text"  # lines of these blocks are printed by the page's code
COMPILED = "Cortex-M0+"  # in a printed line: bytes that need the compiler
LONG = {"firmware.md", "own-table.md", "scaling.md"}
INTERNAL = {"cli", "kernels", "lab", "pages"}  # commands have a page of their own, docs/cli.md
PACKAGES = sorted(p.parent.name for p in (ROOT / "src" / "vitrail").glob("*/__init__.py"))
DOCUMENTED = ["vitrail", *(f"vitrail.{name}" for name in PACKAGES if name not in INTERNAL)]


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(kind, text) for kind, text in BLOCK.findall(page.read_text()) if kind in RUN]


def runs() -> list[Any]:
    """Every page with code; those that take a minute are long tests."""
    marks = {True: [pytest.mark.long], False: []}
    return [
        pytest.param(page, id=page.name, marks=marks[page.name in LONG])
        for page in PAGES
        if blocks(page)
    ]


@pytest.mark.parametrize("page", runs())
def test_the_code_of_a_page_runs(page, tmp_path, forks):
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
    done = forks.run(script, tmp_path)
    assert done.returncode == 0, f"{page.name}: {done.stderr[-2000:]}"
    for line in printed(page):
        if COMPILED not in line or TARGETS[0].installed:
            assert line in done.stdout, f"{page.name}: {line!r} is not printed:\n{done.stdout}"


def printed(page: Path) -> list[str]:
    """Lines that a page shows as the output of its code, without what ends them: seconds."""
    return [
        line
        for kind, text in BLOCK.findall(page.read_text())
        if kind == PRINTED
        for line in text.splitlines()
    ]


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


def reference_targets() -> dict[str, object]:
    """What the reference pages ask for by `:::`, each looked up in the code."""
    found = {}
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        for target in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE):
            module, name = target.rsplit(".", 1)
            found[target] = getattr(importlib.import_module(module), name)
            assert target not in sys.modules, f"{target} is a module; write {target}.{name}"
    return found


@pytest.mark.parametrize("package", DOCUMENTED)
def test_the_reference_has_every_public_name(package):
    targets = reference_targets()
    module = importlib.import_module(package)
    public = {name: getattr(module, name) for name in module.__all__ if name[0] != "_"}
    ours = {n for n, v in public.items() if not getattr(v, "__module__", "").startswith("torch.")}
    for name in sorted(ours):
        listed = f"{package}.{name}" in targets
        elsewhere = callable(public[name]) and any(v is public[name] for v in targets.values())
        assert listed or elsewhere, f"no page of docs/reference has a line ::: {package}.{name}"


def is_maker(value: object) -> bool:
    """Functions, and frozen dataclasses that describe their fields as arguments, such as `flip`."""
    frozen = getattr(getattr(value, "__dataclass_params__", None), "frozen", False)
    return inspect.isfunction(value) or (frozen and "\n    Args:\n" in (value.__doc__ or ""))


@pytest.mark.parametrize("package", DOCUMENTED)
def test_every_public_function_has_an_example(package):
    module = importlib.import_module(package)
    functions = filter(is_maker, (getattr(module, name) for name in module.__all__))
    assert [f.__name__ for f in functions if ">>> " not in (inspect.getdoc(f) or "")] == []


def test_the_reference_describes_every_parameter():
    for target, value in reference_targets().items():
        text = inspect.getdoc(value) or ""
        parameters = list(inspect.signature(value).parameters) if inspect.isfunction(value) else []
        if inspect.isclass(value) and is_dataclass(value) and is_maker(value):
            own = vars(value).get("__annotations__", {})
            parameters = [part.name for part in fields(value) if part.init and part.name in own]
        for name in parameters:
            described = re.search(rf"^    \*{{0,2}}{name}: ", text, re.MULTILINE)
            assert described, f"the docstring of {target} has no line in Args: for {name}"


def test_the_reference_describes_every_field():
    """Of dataclasses that are not made by a function and do not describe fields as arguments."""
    for target, value in reference_targets().items():
        made = is_maker(value) or (inspect.isclass(value) and issubclass(value, Solver))
        if inspect.isclass(value) and is_dataclass(value) and not made:
            source = inspect.getsource(value)
            own = vars(value).get("__annotations__", {})
            for name in (part.name for part in fields(value) if part.name in own):
                described = re.search(rf"^    {name}: .*  # ", source, re.MULTILINE)
                assert described, f"{target}.{name} has no comment that says what it is"


def test_the_navigation_has_every_page():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert f"- {name}\n" in navigation, f"mkdocs.yml has no place for {name}"
