"""Write the results of a full reproduction to the documentation: figures, claims, tables.

    .venv/bin/vitrail reproduce all --out reproduction
    .venv/bin/python scripts/docs_results.py reproduction ["a sentence about this run"]

Raw numbers stay where they are. docs/results/records.json keeps the settings, claims and tables of
every figure; those that the reproduction has are replaced, and the page is written anew.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from vitrail.lab.experiments.reproduce import FIGURES

DOCS = Path(__file__).parents[1] / "docs"
HEAD = """---
hide:
  - toc
---"""


def main(source: Path, docs: Path = DOCS, remark: str = "") -> None:
    """Write the page from the files of a reproduction, and the records of earlier ones."""
    folder = docs / "results"
    folder.mkdir(exist_ok=True)
    kept = folder / "records.json"
    known = json.loads(kept.read_text("utf-8")) if kept.is_file() else []
    found = {record["figure"]: record for record in known}
    for name in FIGURES:
        if not (source / f"{name}.json").is_file():
            continue
        record = json.loads((source / f"{name}.json").read_text("utf-8"))
        if record["quick"]:
            sys.exit(f"{source} holds a quick run; run `vitrail reproduce {name}` in full first")
        found[name] = {**record, "remark": remark}
        for drawing in (f"{name}.svg", f"{name}-narrow.svg"):
            shutil.copyfile(source / drawing, folder / drawing)
    absent = [name for name in FIGURES if name not in found]
    if absent:
        sys.exit(f"{source} lacks {', '.join(absent)}; run `vitrail reproduce all --out {source}`")
    records = [found[name] for name in sorted(found)]  # earlier figures stay
    kept.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "index.md").write_text(page(records), encoding="utf-8")


def runs(records: list[dict[str, Any]]) -> list[str]:
    """A sentence for the figures that were made together: how long, where, with what."""
    together: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        key = json.dumps([record["environment"], record["remark"]], sort_keys=True)
        together.setdefault(key, []).append(record)
    sentences = []
    for group in together.values():
        environment = group[0]["environment"]
        versions = ", ".join(f"{k} {v}" for k, v in environment.items() if k != "machine")
        names = ", ".join(record["figure"] for record in group)
        minutes = sum(record.get("core_seconds", 0) for record in group) / 60
        work = f"{minutes:.0f} minutes of one core, " if minutes else ""
        sentences.append(
            f"{names}: {work}on a machine ({environment['machine']}), with {versions}. "
            f"{group[0]['remark']}".strip()
        )
    return sentences


def page(records: list[dict[str, Any]]) -> str:
    """The page in Markdown."""
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
        *runs(records),
        "The first command also writes all numbers as CSV, the settings and seeds as JSON, and one "
        "page of its own.",
        f"Of {len(claims)} claims: {verdicts}. Verdicts are computed from the numbers by rules in "
        "the source of each figure. A difference is given with its standard error over "
        "independent draws of the data, and counts when its 95 % interval (Student's t) leaves "
        "out zero.",
        table(
            ("figure", "the paper says", "here it"),
            [(_link(record), c["paper"], _verdict(c)) for record, c in claims],
        ),
    ]
    for record in records:
        parts += [
            f"## {_heading(record)}",
            record["about"],
            drawing(record["figure"], record["title"]),
            table(
                ("the paper says", "here it", "measured"),
                [
                    (c["paper"], _verdict(c), f"{c['measured']}{_remedy(c)}")
                    for c in record["claims"]
                ],
            ),
        ]
        for part in record["tables"]:
            rows = table(part["columns"], part["rows"]).replace("\n", "\n    ")
            parts.append(f'??? note "{part["title"]}"\n\n    {rows}')
    return "\n\n".join(parts) + "\n"


def drawing(name: str, title: str) -> str:
    """A picture with a narrow form for phones."""
    return (
        f'<a href="{name}.svg"><picture>\n'
        f'<source media="(max-width: 640px)" srcset="{name}-narrow.svg">\n'
        f'<img src="{name}.svg" alt="{title}">\n'
        "</picture></a>"
    )


def _verdict(claim: dict[str, Any]) -> str:
    """The verdict in its colour, docs/stylesheets/site.css."""
    verdict = claim["verdict"]
    return f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'


def _remedy(claim: dict[str, Any]) -> str:
    """What would make a claim hold that does not."""
    advice = claim.get("remedy") if claim["verdict"] != "holds" else ""
    return f" *What would make it hold:* {advice}" if advice else ""


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
