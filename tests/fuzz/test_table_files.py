"""Any file is a table or a sentence: no other error, in bounded time and memory, nothing silent."""

import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from bounded import calls_in_child
from fuzz.seeds import fresh_seeds
from fuzz.table_files import MAKERS, made

from vitrail.errors import DataWarning
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import TableEncoder, fit_encoder
from vitrail.tables.table import iter_table, read_table

SHORT, LONG = 40, 2_000  # files of each kind
AT_ONCE = 500  # of a child: what one call leaks shows in the next


def use(case: tuple[str, int]) -> str:
    """Read the file of a kind and seed, in the ways there are, and train an encoder on it."""
    kind, seed = case
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        path = Path(folder) / f"t.{kind}" if kind != "idx3-ubyte" else Path(folder) / kind
        path.write_bytes(made(kind, seed))
        table = read_table(path)
        batches = list(iter_table(path, batch_rows=7))
        assert sum(map(len, batches)) == len(table), "batches are not the table"
        target = table.label or table.columns[-1]
        labels = table.labels(target)
        assert labels.tolist() == [x for batch in batches for x in batch[target].tolist()]
        features = table.without(target)
        encoder = fit_encoder(features)
        bits = encoder.transform(features)
        state = json.loads(json.dumps(encoder.to_dict(), allow_nan=False))
        maker = BitColumns if isinstance(encoder, BitColumns) else TableEncoder
        again = maker.from_dict(state)
        assert again == encoder, "the state is not faithful"
        parts = np.concatenate([again.transform(batch) for batch in batches])
        assert (parts == bits).all(), "batches give other bits"
        return f"{bits.shape} {int(bits.sum())}"


def check(seeds: range) -> None:
    cases = [(kind, seed) for seed in seeds for kind in MAKERS]
    used = 0
    for first in range(0, len(cases), AT_ONCE):
        some = cases[first : first + AT_ONCE]
        for case, outcome in zip(
            some, calls_in_child("fuzz.test_table_files:use", some), strict=True
        ):
            assert outcome.error in (None, "DataError", "TableTooLargeError"), (case, outcome)
            assert "\n" not in outcome.sentence, (case, outcome)
            used += outcome.result is not None
    assert used > len(cases) / 20, "hardly a file was sound: the makers are broken"


def test_some_files_are_tables_or_sentences():
    check(range(SHORT))


@pytest.mark.long
def test_many_files_are_tables_or_sentences():
    check(fresh_seeds(LONG))
