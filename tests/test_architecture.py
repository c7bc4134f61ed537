"""Imports follow the data flow, and each dependency is imported only by its packages."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "vitrail"

# In import order, as docs/architecture.md lists them. A package (a folder or module directly under
# vitrail) imports from its own line or from lines above it. A new package takes its line here.
FLOW = (
    {
        "brief",
        "random",
        "numerics",
        "prepared",
        "fingerprint",
        "interrupts",
        "sockets",
        "ranks",
        "engines",
        "extras",
        "errors",
        "memory",
        "checks",
        "draws",
        "files",
        "output",
        "pages",
        "scores",
        "state",
    },
    {"datasets"},
    {"tables"},
    {"nn"},
    {"scopes", "graph", "factors"},
    {"kernels"},
    {"updates"},
    {"surveys"},
    {"decode"},  # the loop decodes at every step, to keep the best configuration
    {"solvers"},
    {"baselines"},
    {"model"},
    {"export"},
    {"learning"},  # students are measured in bytes of exported code
    {"report"},
    {"estimator"},
    {"lab"},
    {"cli"},
    {"__main__"},
)
PLACE = {package: place for place, packages in enumerate(FLOW) for package in packages}

ONLY_IN = {
    "scipy": {"lab"},
    "sklearn": {"datasets", "tables", "learning", "estimator", "lab"},
    "numba": {"kernels"},
    "llvmlite": {"kernels"},
    "triton": {"kernels"},
    "matplotlib": {"lab"},
    "ortools": {"baselines"},
    "onnx": {"export"},
    "emlearn": {"lab"},
    "typer": {"cli"},
}
BROUGHT = {"triton", "llvmlite"}  # by torch where there is a GPU and by numba; we ask for neither
DISTRIBUTION_OF = {"sklearn": "scikit-learn"}


@dataclass(frozen=True)
class Import:
    module: str  # dotted, absolute
    line: int
    lazy: bool  # inside a function, or for type checkers only


def imports(source: str, folder: str) -> Iterator[Import]:
    """Every import of a file that lies in `folder`, with relative ones made absolute."""
    tree = ast.parse(source)
    lazy = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        or (isinstance(outer, ast.If) and ast.unparse(outer.test) == "TYPE_CHECKING")
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = folder.split(".")[: len(folder.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            # `from vitrail import graph` names a package only in its last part
            names = (
                [f"{base}.{alias.name}" for alias in node.names] if base == "vitrail" else [base]
            )
        else:
            continue
        for name in names:
            yield Import(name, node.lineno, id(node) in lazy)


def package_of(path: Path) -> str:
    """The folder or file directly under the package that holds the path."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def dotted_folder(path: Path) -> str:
    """The folder of a file as imports write it."""
    return ".".join(path.relative_to(PACKAGE.parent).parent.parts)


def flow_faults(path: Path, source: str) -> list[str]:
    """Imports of packages further down, or of kernels or the lab before they are used."""
    package, faults = package_of(path), []
    for found in imports(source, dotted_folder(path)):
        parts = found.module.split(".")
        if parts[0] != "vitrail" or parts[1:] == ["__version__"]:
            continue
        where = f"{path.relative_to(PACKAGE)}:{found.line}"
        target = parts[1] if len(parts) > 1 else ""
        if target not in PLACE:
            faults.append(f"{where} imports {found.module}; import from its own package")
        elif PLACE[target] > PLACE[package]:
            faults.append(
                f"{where}: {package} comes before {target} in the flow, so it may not import it"
            )
        elif (
            target in ("kernels", "lab")
            and package != target
            and not found.lazy
            and found.module != "vitrail.kernels.dispatch"  # which loads a kernel when it is used
        ):
            faults.append(f"{where}: import {target} inside the function that uses it")
    return faults


def dependency_faults(path: Path, source: str, declared: set[str]) -> list[str]:
    """Imports of dependencies that are not declared, or not allowed in this package."""
    package, faults = package_of(path), []
    for found in imports(source, dotted_folder(path)):
        name = found.module.split(".")[0]
        if name in sys.stdlib_module_names or name == "vitrail":
            continue
        where = f"{path.relative_to(PACKAGE)}:{found.line}"
        if package not in ONLY_IN.get(name, {package}):
            faults.append(f"{where}: {name} belongs in {', '.join(sorted(ONLY_IN[name]))} only")
        elif DISTRIBUTION_OF.get(name, name) not in declared and name not in BROUGHT:
            faults.append(f"{where}: {name} is not among the dependencies in pyproject.toml")
    return faults


def declared_distributions() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + extras["export"] + extras["lab"] + extras["rivals"]
    return {re.split(r"[^\w-]", line)[0] for line in wanted}


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]
NAMES = [str(path.relative_to(PACKAGE)) for path in FILES]


def test_every_package_has_a_place_in_the_flow():
    packages = {package_of(path) for path in FILES}
    assert packages <= PLACE.keys(), f"give {packages - PLACE.keys()} a place in FLOW"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_imports_follow_the_flow(path):
    assert flow_faults(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_dependencies_are_imported_by_their_packages_alone(path):
    assert dependency_faults(path, path.read_text(encoding="utf-8"), declared_distributions()) == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("graph.py", "from vitrail.solvers import run"),
        ("graph.py", "from .solvers.run import run"),
        ("graph.py", "from vitrail import solvers"),
        ("updates/flip.py", "from ..solvers import run"),
        ("updates/flip.py", "def f():\n    import vitrail.cli"),
        ("updates/flip.py", "from vitrail.kernels import cpu"),
        ("updates/flip.py", "import vitrail"),
        ("updates/flip.py", "from vitrail import FactorGraph"),
        ("report/page.py", "def f():\n    from vitrail.lab import plots"),
        ("cli/research.py", "from vitrail.lab.demo import show"),
    ],
)
def test_an_import_against_the_flow_is_found(file, source):
    assert len(flow_faults(PACKAGE / file, source)) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("solvers/run.py", "from vitrail.graph import FactorGraph\nfrom ..updates import flip"),
        ("solvers/run.py", "from .base import Solver\nfrom vitrail import random, graph"),
        ("updates/flip.py", "def f():\n    from vitrail.kernels import cpu"),
        ("learning/learn.py", "from vitrail import __version__"),
        ("graph.py", "import math\nimport torch"),
        ("lab/demo.py", "from vitrail.lab.plots import save"),
        ("cli/research.py", "def f():\n    from vitrail.lab.demo import show"),
        ("cli/research.py", "if TYPE_CHECKING:\n    from vitrail.lab.demo import Shown"),
    ],
)
def test_an_import_with_the_flow_is_let_through(file, source):
    assert flow_faults(PACKAGE / file, source) == []


@pytest.mark.parametrize(
    ("file", "source", "fault"),
    [
        ("updates/flip.py", "import numba", "numba belongs in kernels only"),
        ("solvers/run.py", "def f():\n    from matplotlib import pyplot", "belongs in lab"),
        (
            "nn/layers.py",
            "from sklearn.base import clone",
            "belongs in datasets, estimator, lab",
        ),
        ("graph.py", "import pandas as pd", "pandas is not among the dependencies"),
    ],
)
def test_a_dependency_out_of_its_package_is_found(file, source, fault):
    faults = dependency_faults(PACKAGE / file, source, declared_distributions())
    assert len(faults) == 1
    assert fault in faults[0]


def test_nothing_heavy_is_imported_before_it_is_used():
    script = """
import importlib, sys
import torch
before = set(sys.modules)
heavy = {"numba", "triton", "ortools", "onnx"}
names = sys.argv[1:]
for name in (one for one in names if not one.startswith("vitrail.lab")):
    importlib.import_module(name)
early = (set(sys.modules) - before) & (heavy | {"matplotlib", "vitrail.lab"})
assert not early, f"{early} imported with the modules of the core"
for name in names:
    importlib.import_module(name)
early = (set(sys.modules) - before) & heavy
assert not early, f"{early} imported with the modules of the lab"
"""
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in FILES]
    light = [name for name in names if not re.search(r"\.kernels\.c|__main__$", name)]
    outcome = subprocess.run([sys.executable, "-c", script, *light], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_no_file_names_a_path_of_someones_machine():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    pattern = re.compile(rb"(?<![\w./~:-])/(home|root|work|opt|farm|mnt|Users)/|[A-Z]:\\Users\\")
    assert pattern.search(b'path = "/' + b'home/someone/data"')
    assert not pattern.search(b"see docs/work/ and https://host/home/page")
    faults = []
    for path in (ROOT / name for name in listed if name):
        if path.is_file() and (content := path.read_bytes()) and b"\0" not in content:
            faults += [
                f"{path.relative_to(ROOT)}:{number}"
                for number, line in enumerate(content.splitlines(), 1)
                if pattern.search(line)
            ]
    assert faults == []


def test_only_nn_imports_kinds_of_layers():
    """Only nn distinguishes kinds of layers; other packages read a program."""
    layers = {"BinaryLinear", "BinaryConv1d", "BinaryConv2d", "Sign", "Threshold", "Activation"}
    faults = []
    for path in FILES:
        if package_of(path) == "nn":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} & layers:
                faults.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert faults == []
