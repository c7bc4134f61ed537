"""Results stay what they are: every row of the golden table gives the same bits as ever.

A row that changes is a changed result. Where that is meant (a mended bug), name the bug beside
the row and write the table anew: `python scripts/build_golden.py --write`.
"""

import json
from pathlib import Path

import pytest
from golden.rows import ROWS

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))


def test_every_row_has_its_record():
    assert list(ROWS) == list(GOLDEN)


@pytest.mark.parametrize("row", ROWS)
def test_the_result_is_what_it_was(row):
    assert ROWS[row]() == GOLDEN[row]
