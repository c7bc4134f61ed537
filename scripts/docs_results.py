"""Put the results of a full reproduction into the documentation: figures, claims, tables.

    .venv/bin/vitrail reproduce all --out reproduction
    .venv/bin/python scripts/docs_results.py reproduction

Raw numbers stay where they are; docs/results.md and the drawings in docs/results/ are written anew.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5")


def main(source: Path) -> None:
    """Write the page from the files of a reproduction."""
    records = [json.loads((source / f"{name}.json").read_text("utf-8")) for name in FIGURES]
    if any(record["quick"] for record in records):
        sys.exit(f"{source} holds a quick run; run `vitrail reproduce all` in full first")
    pictures = DOCS / "results"
    pictures.mkdir(exist_ok=True)
    for name in FIGURES:
        shutil.copyfile(source / f"{name}.svg", pictures / f"{name}.svg")
    (DOCS / "results.md").write_text(page(records), encoding="utf-8")


def page(records: list[dict[str, Any]]) -> str:
    """The page in Markdown."""
    hours = sum(record["core_seconds"] for record in records) / 3600
    parts = [
        "# The paper's figures, measured again",
        "`vitrail reproduce all` makes this page's figures and numbers "
        f"({hours:.1f} hours of one core), `scripts/docs_results.py` writes it. Verdicts are "
        "computed from the numbers; a difference below two standard errors is called undecided.",
        table(
            ("figure", "the paper says", "here it"),
            [(r["figure"], c["paper"], c["verdict"]) for r in records for c in r["claims"]],
        ),
    ]
    for record in records:
        parts += [
            f"## {record['figure']}: {record['title']}",
            f"![{record['title']}](results/{record['figure']}.svg)",
            *(
                f"**{c['paper']}** {c['verdict'].capitalize()}. {c['measured']}"
                for c in record["claims"]
            ),
        ]
        for part in record["tables"]:
            parts += [f"### {part['title']}", table(part["columns"], part["rows"])]
    versions = ", ".join(f"{k} {v}" for k, v in records[0]["environment"].items())
    parts.append(f"Made with {versions}.")
    return "\n\n".join(parts) + "\n"


def table(columns: Any, rows: Any) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("which folder? For example: python scripts/docs_results.py reproduction")
    main(Path(sys.argv[1]))
