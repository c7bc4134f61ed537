"""Rows that are read as they come: windows, samples, and models within a ceiling of memory."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from vitrail.errors import DataError
from vitrail.learning.streams import BASE, fit_stream, window_rows
from vitrail.model import load_model
from vitrail.ranks import World
from vitrail.tables.streams import Windows, blocks, sample

INPUTS = 15
TEACHER = np.where(np.arange(INPUTS) % 3 > 0, 1, -1)


def rows_of(seed, count):
    """Signs and what a linear teacher says of them."""
    signs = 2 * np.random.default_rng(seed).integers(0, 2, (count, INPUTS), dtype=np.int8) - 1
    return signs, (signs @ TEACHER > 0).astype(np.int64)


def batches_of(seed, count, size):
    bits, labels = rows_of(seed, count)
    return lambda: ((bits[i : i + size], labels[i : i + size]) for i in range(0, count, size))


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    size=st.integers(1, 40),
    seed=st.integers(0, 99),
)
def test_windows_do_not_depend_on_blocks(sizes, size, seed):
    total = sum(sizes)
    bits = np.arange(total, dtype=np.int64)[:, None]
    cuts = np.cumsum([0, *sizes])
    pieces = [(bits[a:b], bits[a:b, 0]) for a, b in pairwise(cuts)]
    windows = Windows(total, size, 1, seed)
    split = list(windows.shuffled(pieces, 0))
    whole = list(windows.shuffled([(bits, bits[:, 0])], 0))
    assert [len(labels) for _, labels, _ in split] == [
        min(size, total - first) for first in range(0, total, size)
    ]
    for (some, labels, places), (others, *_) in zip(split, whole, strict=True):
        assert np.array_equal(some, others)
        assert np.array_equal(labels, places)
        assert np.array_equal(some[:, 0], places)
    assert sorted(place for *_, places in split for place in places) == list(range(total))


def test_every_epoch_has_an_order_of_its_own():
    bits = np.arange(100)[:, None]
    windows = Windows(100, 100, 1, seed=1)
    first, second = (next(windows.shuffled([(bits, bits[:, 0])], epoch))[2] for epoch in (0, 1))
    assert not np.array_equal(first, second)


def file_of(path, count, group):
    """A Parquet file of such rows, with a column of their places."""
    bits, labels = rows_of(0, count)
    columns = {f"c{i}": bits[:, i] for i in range(INPUTS)}
    kinds = np.where(labels, "yes", "no")
    table = pa.table({"place": np.arange(count), **columns, "kind": kinds})
    parquet.write_table(table, path, row_group_size=group)
    return path


@pytest.mark.parametrize("ranks", [2, 3, 7])
@pytest.mark.parametrize("size", [40, 64, 1000])
def test_ranks_read_every_row_once(tmp_path, ranks, size):
    path = file_of(tmp_path / "rows.parquet", 150, 20)
    arrays = {name: np.arange(150) for name in ("X", "y")}
    for rows in (path, lambda: [(arrays["X"][:, None], arrays["y"])]):
        read = []
        for rank in range(ranks):
            windows = Windows(150, size, INPUTS, 0, World(rank, ranks))
            for block in blocks(rows, windows.select):
                places = block.columns[0]
                assert [block.place(i) for i in range(len(block))] == [
                    block.place_of(place) for place in block[places]
                ]
                read += block[places].tolist()
        assert sorted(read) == list(range(150))


def test_row_groups_that_nobody_wants_stay_unread(tmp_path):
    path = file_of(tmp_path / "rows.parquet", 150, 50)
    group = parquet.ParquetFile(path).metadata.row_group(1)
    damaged = bytearray(path.read_bytes())
    first = group.column(0).dictionary_page_offset or group.column(0).data_page_offset
    damaged[first : first + 100] = bytes(100)
    path.write_bytes(damaged)
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        list(blocks(path))
    some = list(blocks(path, lambda first, count: np.flatnonzero(first + np.arange(count) >= 120)))
    assert np.concatenate([block["place"] for block in some]).tolist() == list(range(120, 150))
    assert some[0].place(0) == "row 121"


def test_rows_that_vanish_while_they_are_read_are_missed():
    bits = np.zeros((9, 1), np.int8)
    with pytest.raises(DataError, match="fewer of them"):
        list(Windows(10, 20, 1, 0).shuffled([(bits, bits[:, 0])], 0))


def test_a_sample_is_even_and_does_not_depend_on_blocks():
    count, wanted = 5000, 500
    found, again = (
        sample(batches_of(0, count, size), "label", wanted, seed=3) for size in (5000, 700)
    )
    assert np.array_equal(found.numbers, again.numbers)
    assert np.array_equal(found.labels, again.labels)
    assert (found.total, len(found.labels)) == (count, wanted)
    bits, labels = rows_of(0, count)
    assert np.array_equal(found.labels, labels[found.numbers])
    columns = np.stack([found.table[name] for name in found.table.columns], 1)
    assert np.array_equal(columns, bits[found.numbers])
    # the mean of 500 even draws without replacement: six standard errors
    assert abs(found.numbers.mean() - count / 2) < 6 * count / np.sqrt(12 * wanted)


def test_rows_that_come_in_batches_teach_a_net(tmp_path):
    seen = []
    model = fit_stream(
        batches_of(0, 3000, 512), epochs=2, networks=9, progress=lambda *told: seen.append(told)
    )
    bits, labels = rows_of(1, 1000)
    assert (model.predict(bits) == labels).mean() > 0.97
    assert model.record["encoder_rows"] == 3000
    assert model.record["test_accuracy"] > 0.97
    assert seen[-1][0] == seen[-1][1] == 2 * (3000 - model.record["test_rows"])
    model.save(tmp_path / "stream.safetensors")
    again = load_model(tmp_path / "stream.safetensors")
    assert np.array_equal(again.probabilities(bits), model.probabilities(bits))


def test_a_file_teaches_what_its_rows_teach(tmp_path):
    bits, labels = rows_of(0, 1500)
    columns = {f"c{i}": bits[:, i] for i in range(INPUTS)}
    table = pa.table({**columns, "kind": np.where(labels, "yes", "no")})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=400)
    model = fit_stream(tmp_path / "rows.parquet", "kind", hidden=(7,), epochs=3, networks=9)
    assert model.record["test_accuracy"] > 0.85
    assert set(model.predict({name: column[:20] for name, column in columns.items()})) <= {
        "yes",
        "no",
    }
    with pytest.raises(DataError, match="target column 'colour' not found"):
        fit_stream(tmp_path / "rows.parquet", "colour")


def test_rows_held_out_of_a_sorted_stream_are_representative():
    def noisy(seed, count):
        """Positive rows are called negative rarely, negative ones positive often."""
        bits, rule = rows_of(seed, count)
        draw = np.random.default_rng(seed + 10).random(count)
        return bits, (draw < np.where(rule, 0.95, 0.35)).astype(np.int64)

    bits, labels = noisy(0, 3000)
    order = np.argsort(labels, kind="stable")
    model = fit_stream(lambda: [(bits[order], labels[order])], epochs=2, networks=9)
    fresh, answers = noisy(1, 10_000)
    truth = (model.predict(fresh) == answers).mean()
    rows = model.record["test_rows"]
    # of each class a fifth, rounded down; four standard errors
    assert rows in (599, 600)
    assert abs(model.record["test_accuracy"] - truth) < 4 * np.sqrt(truth * (1 - truth) / rows)


def test_a_ceiling_sets_the_window():
    assert window_rows(196, BASE + 2**28) < window_rows(196, BASE + 2**29)
    with pytest.raises(ValueError, match="leaves no room"):
        window_rows(196, BASE)


@pytest.mark.filterwarnings("ignore:held-out rows show no relation")  # in three rows
def test_a_block_may_hold_one_class_and_a_stream_few_rows():
    bits, labels = rows_of(4, 300)
    order = np.argsort(labels, kind="stable")

    def by_class():
        for first in range(0, 300, 50):
            yield bits[order[first : first + 50]], labels[order[first : first + 50]]

    model = fit_stream(by_class, epochs=5)
    assert (model.predict(bits) == labels).mean() > 0.7
    few = np.flatnonzero(labels)[:2].tolist() + np.flatnonzero(1 - labels)[:1].tolist()
    told = fit_stream(lambda: [(bits[few], labels[few])]).record
    assert (told["test_rows"], told["test_accuracy"]) in ((1, 0.0), (1, 1.0))


@pytest.mark.parametrize(
    ("rows", "target", "complaint"),
    [
        (
            "a,kind\n" + "1,x\n2,y\n" * 9 + "3,\n",
            "kind",
            "missing in 1 of .* first in line 20",
        ),
        ("a,kind\n1,x\n2,y\n", None, "name the target, which is the column of labels"),
        ("a,kind\n1,x\n2,y\n", "sort", "target column 'sort' not found; columns are: a, kind"),
        ("a,kind\n" + "1,x\n" * 9, "kind", "every label is 'x'"),
        ("a,kind\n" + "".join(f"1,x{i}\n" for i in range(50)), "kind", "50 different labels in 50"),
        ("a,kind\n", "kind", "at least two rows"),
    ],
)
def test_a_stream_that_cannot_be_learned_from_says_why(tmp_path, rows, target, complaint):
    path = tmp_path / "t.csv"
    path.write_text(rows)
    with pytest.raises(DataError, match=complaint):
        fit_stream(path, target)


def once():
    came = iter([rows_of(0, 9), rows_of(1, 9)])
    return lambda: came


@pytest.mark.parametrize(
    ("rows", "settings", "complaint"),
    [
        (once(), {}, "rows came once and not again|at least two rows"),
        (None, {}, "rows are a file, or a function"),
        (list, {}, "there is no batch"),
        (lambda: [rows_of(0, 9)[0]], {}, "a pair of inputs and labels"),
        (
            lambda: [rows_of(0, 9), (rows_of(0, 9)[0][:, :3], rows_of(0, 9)[1])],
            {},
            "row 10 has 3 columns, those before have 15",
        ),
        (batches_of(0, 20, 10), {"epochs": 0}, "epochs must be"),
        (batches_of(0, 20, 10), {"hidden": (0,)}, "a hidden layer must be"),
        (batches_of(0, 20, 10), {"networks": 0}, "networks must be"),
    ],
)
def test_batches_that_make_no_sense_are_refused(rows, settings, complaint):
    with pytest.raises((ValueError, TypeError), match=complaint):
        fit_stream(rows, **settings)
