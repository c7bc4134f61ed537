"""Build the golden table of the tests.

    python scripts/build_golden.py            print the records
    python scripts/build_golden.py --write    keep them as tests/golden/golden.json

Other versions are compared with the records: write them only when a result is meant to change.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from golden.rows import ROWS  # noqa: E402


def main() -> None:
    """Run every row."""
    parser = argparse.ArgumentParser(description="Run the golden table of the tests.")
    parser.add_argument("--write", action="store_true", help="keep the records")
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default: 1)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    records = {}
    for name, row in ROWS.items():
        begun = time.perf_counter()
        records[name] = row()
        print(f"{time.perf_counter() - begun:6.2f} s  {name}", file=sys.stderr)
    lines = [f"  {json.dumps(name)}: {json.dumps(record)}" for name, record in records.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if options.write:
        (TESTS / "golden" / "golden.json").write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
