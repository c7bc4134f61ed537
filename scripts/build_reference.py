"""Write docs/cli.md from the code: every command, its help and its options.

python scripts/build_reference.py            # write
python scripts/build_reference.py --check    # fail when the page is out of date
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path
from typing import Any

import typer

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


def cli_page() -> str:
    """Every command with its help and options."""
    from vitrail.cli.app import commands

    group: Any = typer.main.get_command(commands())
    lines = ["# Command line", "", "Made from the code by `scripts/build_reference.py`.", ""]
    lines += [
        "Exit codes: 0 done, 1 output pipe closed, 2 invalid input (one line says why), "
        "130 and 143 stopped by Ctrl-C and by SIGTERM ([what is kept](reliability.md))."
    ]
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


def _paragraphs(text: str) -> list[str]:
    return inspect.cleandoc(text).replace("\b", "").splitlines()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare")
    page = cli_page()
    if not parser.parse_args().check:
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        print(f"{PAGE.name} is out of date; run python scripts/build_reference.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
