"""Write docs/api.md and docs/cli.md from the code: names, signatures, first lines, options.

python scripts/build_reference.py            # write
python scripts/build_reference.py --check    # fail when the pages are out of step
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import typer

DOCS = Path(__file__).parents[1] / "docs"

MODULES = {
    "vitrail": "The names most programs need; each also lives in a module below.",
    "vitrail.data": "Data sets and tables. Nothing is downloaded.",
    "vitrail.nn": "Networks whose weights are bits, as torch modules.",
    "vitrail.graph": "Factor graphs and scopes.",
    "vitrail.factors": "Kinds of factors.",
    "vitrail.updates": "Factor→variable messages.",
    "vitrail.solvers": "Solvers, and the loop they run under.",
    "vitrail.baselines": "What one would use instead, under the same loop.",
    "vitrail.model": "Trained networks on disk.",
}


def api_page() -> str:
    """A table of public names for each module."""
    lines = ["# Python reference", "", "Made from the code by `scripts/build_reference.py`.", ""]
    for module_name, about in MODULES.items():
        module = importlib.import_module(module_name)
        lines += [f"## `{module_name}`", "", about, "", "| name | what it is |", "|---|---|"]
        names = getattr(module, "__all__", None) or _own_names(module)
        for name in sorted(names, key=str.lower):
            value = getattr(module, name)
            if not name.startswith("_") and (callable(value) or inspect.isclass(value)):
                lines.append(f"| {_signature(name, value)} | {_first_line(value)} |")
        lines.append("")
    return "\n".join(lines)


def cli_page() -> str:
    """Every command with its help and options."""
    from vitrail.cli import commands
    from vitrail.cli.app import app

    assert commands  # importing them registers them

    group: Any = typer.main.get_command(app)
    lines = ["# Command line", "", "Made from the code by `scripts/build_reference.py`.", ""]
    lines += ["Exit codes: 0 done, 1 something failed on the way, 2 wrong input, told in one line."]
    for name in sorted(group.commands):
        command = group.commands[name]
        lines += ["", f"## `vitrail {name}`", "", *_paragraphs(command.help or ""), ""]
        lines += ["| option | meaning | default |", "|---|---|---|"]
        for parameter in command.params:
            spelled = " ".join(f"`{o}`" for o in parameter.opts) or f"`{parameter.name}`"
            if parameter.param_type_name == "argument":
                spelled = f"`{(parameter.metavar or parameter.name).upper().strip('{}')}`"
            silent = parameter.default is None or parameter.default is False
            default = "" if silent or parameter.required else f"`{parameter.default}`"
            meaning = _cell(getattr(parameter, "help", None) or "")
            if parameter.name != "help":
                lines.append(f"| {spelled} | {meaning} | {default} |")
    return "\n".join([*lines, ""])


def _own_names(module: Any) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def _signature(name: str, value: Any) -> str:
    if inspect.isclass(value):
        return f"`{name}`"
    arguments = []
    for parameter in inspect.signature(value).parameters.values():
        text = parameter.name
        if parameter.default is not inspect.Parameter.empty and "<" not in repr(parameter.default):
            text += f"={parameter.default!r}"
        arguments.append(text)
    return f"`{name}({', '.join(arguments)})`".replace("|", "\\|")


def _first_line(value: Any) -> str:
    return _cell((inspect.getdoc(value) or "").split("\n\n")[0])


def _paragraphs(text: str) -> list[str]:
    return inspect.cleandoc(text).replace("\b", "").splitlines()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Write the pages, or compare them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare")
    check = parser.parse_args().check
    stale = []
    for name, page in (("api.md", api_page()), ("cli.md", cli_page())):
        path = DOCS / name
        if check:
            if not path.exists() or path.read_text() != page:
                stale.append(name)
        else:
            path.write_text(page)
    if stale:
        print(f"out of step: {', '.join(stale)}; run python scripts/build_reference.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
