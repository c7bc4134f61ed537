"""Put the results of a full reproduction into the documentation: figures, claims, tables.

    .venv/bin/vitrail reproduce all --out reproduction
    .venv/bin/python scripts/docs_results.py reproduction ["a sentence about this run"]

Raw numbers stay where they are; the page and the drawings in docs/results/ are written anew.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5")
HEAD = """---
hide:
  - toc
---"""


def main(source: Path, docs: Path = DOCS, remark: str = "") -> None:
    """Write the page from the files of a reproduction."""
    absent = [name for name in FIGURES if not (source / f"{name}.json").is_file()]
    if absent:
        sys.exit(f"{source} lacks {', '.join(absent)}; run `vitrail reproduce all --out {source}`")
    records = [json.loads((source / f"{name}.json").read_text("utf-8")) for name in FIGURES]
    if any(record["quick"] for record in records):
        sys.exit(f"{source} holds a quick run; run `vitrail reproduce all` in full first")
    folder = docs / "results"
    folder.mkdir(exist_ok=True)
    for name in FIGURES:
        for drawing in (f"{name}.svg", f"{name}-narrow.svg"):
            shutil.copyfile(source / drawing, folder / drawing)
    (folder / "index.md").write_text(page(records, remark), encoding="utf-8")


def page(records: list[dict[str, Any]], remark: str = "") -> str:
    """The page in Markdown."""
    minutes = sum(record["core_seconds"] for record in records) / 60
    environment = records[0]["environment"]
    versions = ", ".join(f"{k} {v}" for k, v in environment.items() if k != "machine")
    claims = [(record, claim) for record in records for claim in record["claims"]]
    counts: dict[str, int] = {}
    for _, claim in claims:
        counts[claim["verdict"]] = counts.get(claim["verdict"], 0) + 1
    verdicts = ", ".join(f"{count} × *{verdict}*" for verdict, count in counts.items())
    parts = [
        HEAD,
        "# The paper's figures, measured again",
        "Every figure of *Nonlocal optimization of binary neural networks*, with what the paper "
        "says beside what came out here, also where it contradicts the paper.",
        "```bash\nvitrail reproduce all --out reproduction\n"
        "python scripts/docs_results.py reproduction\n```",
        f"This run took {minutes:.0f} minutes of one core, spread over the cores of a machine "
        f"({environment['machine']}), with {versions}." + f" {remark}" * bool(remark),
        "The first command also writes all numbers as CSV, the settings and seeds as JSON, and one "
        "page of its own.",
        f"Of {len(claims)} claims: {verdicts}. Verdicts are computed from the numbers by rules in "
        "the source of each figure. A difference is given with its standard error over "
        "independent draws of the data, and counts when its 95 % interval (Student's t) leaves "
        "out zero.",
        table(
            ("figure", "the paper says", "here it"),
            [(_link(record), c["paper"], f"**{c['verdict']}**") for record, c in claims],
        ),
    ]
    for record in records:
        parts += [
            f"## {_heading(record)}",
            record["about"],
            drawing(record["figure"], record["title"]),
            *(
                f"**{c['paper']}** — *{c['verdict'].capitalize()}.* {c['measured']}"
                for c in record["claims"]
            ),
        ]
        for part in record["tables"]:
            rows = table(part["columns"], part["rows"]).replace("\n", "\n    ")
            parts.append(f'??? note "{part["title"]}"\n\n    {rows}')
    return "\n\n".join(parts) + "\n"


def drawing(name: str, title: str) -> str:
    """A picture that takes its narrow form on a phone."""
    return (
        f'<a href="{name}.svg"><picture>\n'
        f'<source media="(max-width: 640px)" srcset="{name}-narrow.svg">\n'
        f'<img src="{name}.svg" alt="{title}">\n'
        "</picture></a>"
    )


def _heading(record: dict[str, Any]) -> str:
    return f"{record['figure']}: {record['title']}"


def _link(record: dict[str, Any]) -> str:
    """To the heading, by the name that Markdown gives it."""
    words = re.sub(r"[^\w\s-]", "", _heading(record).lower())
    return f"[{record['figure']}](#{'-'.join(words.split())})"


def table(columns: Any, rows: Any) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("which folder? For example: python scripts/docs_results.py reproduction")
    main(Path(sys.argv[1]), remark=" ".join(sys.argv[2:]))
