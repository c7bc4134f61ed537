"""Write the tables of the pages from the records of measurements.

    python scripts/build_records.py [--check]

docs/records/NAME.json is what a benchmark measured: its `command`, its `rows` (fields and values)
and the `columns` of its table, each a heading and a format of fields: {"errors": "{errors:.2%}"}.
A page shows the table between the lines <!-- record: NAME --> and <!-- end of record -->.
`save_record` of benchmarks/harness.py writes a record. --check only lists the pages that differ.
"""

from __future__ import annotations

import argparse
import json
import re
import string
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "docs" / "records"
SHOWN = re.compile(r"(<!-- record: (\S+) -->\n).*?(<!-- end of record -->)", re.DOTALL)


def cell(template: str, row: dict[str, Any]) -> str:
    """The fields of a row in the format of a column; empty where one of them was not measured."""
    fields = [name for _, name, _, _ in string.Formatter().parse(template) if name]
    return "" if any(row.get(name) is None for name in fields) else template.format(**row)


def table(record: dict[str, Any]) -> str:
    """A markdown table with a line per row and the command that measured them."""
    columns = record["columns"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in record["rows"]:
        lines.append(f"| {' | '.join(cell(one, row) for one in columns.values())} |")
    return "\n".join([*lines, "", f"Measured by `{record['command']}`."])


def filled(text: str) -> str:
    """A page whose tables are those of the records."""

    def shown(found: re.Match[str]) -> str:
        record = json.loads((RECORDS / f"{found[2]}.json").read_text(encoding="utf-8"))
        return f"{found[1]}\n{table(record)}\n\n{found[3]}"

    return SHOWN.sub(shown, text)


def main() -> None:
    """Write the tables of all pages, or list those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        if (written := filled(text)) != text:
            stale.append(page.name)
            if not check:
                page.write_text(written, encoding="utf-8")
    if check and stale:
        sys.exit(f"{', '.join(stale)}: run python scripts/build_records.py")


if __name__ == "__main__":
    main()
