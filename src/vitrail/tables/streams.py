"""Rows of a table that need not fit into memory: in blocks, as a sample, and in windows.

A window is a run of rows by their number in the stream, whatever blocks they came in, shuffled
within itself. So the order of rows is a pure function of (seed, epoch, window, row), and memory
holds one window. A file whose rows are sorted should be shuffled once before: rows do not move
from one window to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from vitrail.errors import DataError
from vitrail.random import Key, permutation_keys
from vitrail.ranks import ALONE, World
from vitrail.tables.labels import LabelCoder, check_recurring, require_labels
from vitrail.tables.sources import ArraySource, file_format, open_source
from vitrail.tables.table import BATCH_ROWS, Table, iter_table
from vitrail.tables.wanted import Wanted, everything

ROWS = Path | str | Callable[[], Iterable[tuple[Any, Any]]]
"""A file, or what gives batches of inputs (rows, columns) and labels (rows,) anew each time."""

MOST_CLASSES = 2**16  # remembered while rows go by
LABEL = "label"  # what the column of labels is called where batches have no names


@dataclass(frozen=True)
class Sample:
    """What one look at all rows tells."""

    table: Table  # some rows, drawn evenly, without the labels
    labels: np.ndarray  # (rows of the table,)
    numbers: np.ndarray  # (rows of the table,) int64, their places in the stream
    coder: LabelCoder  # all labels there are
    total: int  # rows in all


def blocks(rows: ROWS, wanted: Wanted = everything) -> Iterator[Table]:
    """The wanted rows from the first on, a block at a time."""
    if isinstance(rows, str | Path):
        yield from iter_table(rows, wanted=wanted)
        return
    if not callable(rows):
        raise TypeError(f"rows are a file, or a function that gives batches, got {rows!r}")
    start = 0
    for batch in rows():
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise TypeError(f"a batch is a pair of inputs and labels, got {type(batch).__name__}")
        inputs, labels = batch
        source = ArraySource("the batch", np.asarray(inputs), LABEL, np.asarray(labels))
        for first, block in source.blocks():
            arrow = pa.Table.from_batches([block])
            table = Table(arrow, LABEL, source.image_shape, start + first)
            chosen = wanted(table.start, len(table))
            if len(chosen):
                yield table if len(chosen) == len(table) else table.take(chosen)
        start += source.num_rows


def target_of(rows: ROWS, target: str | None) -> str:
    """The column of labels: the one asked for, or the one that the stream names."""
    first = next(iter(blocks(rows)), None)
    if first is None:
        raise DataError("there is no batch of rows; give some to learn from")
    chosen = first.label if target is None else target
    there = f"columns are: {', '.join(first.columns[:20])}"
    if chosen is None:
        raise DataError(f"name the target, which is the column of labels; {there}")
    if chosen not in first.columns:
        raise DataError(f"target column {chosen!r} not found; {there}")
    return chosen


def labels_of(block: Table, target: str) -> np.ndarray:
    """The labels of a block, none of them missing; all may be of one class."""
    labels = block[target]
    require_labels(labels, block.place, block.untyped)
    return labels


@dataclass(frozen=True)
class _Look:
    """What one rank has seen of the rows."""

    keys: np.ndarray  # of the rows kept
    numbers: np.ndarray  # their places in the stream
    arrow: pa.Table | None  # the rows kept
    labels: set[Any]  # of all rows seen
    count: int  # rows seen


def sample(rows: ROWS, target: str, count: int, seed: int, world: World = ALONE) -> Sample:
    """At most `count` rows, the same whatever the blocks are, and all labels; one look at all.

    Ranks each look at a share of the rows and tell each other what they have found.
    """
    kept: list[tuple[np.ndarray, Table]] = []
    limit, seen_rows, held, columns = 2**62, 0, 0, None
    seen: set[Any] = set()
    for block in blocks(rows, _looked_at(rows, world)):
        if not len(block):
            continue
        columns = columns or block.columns
        if block.columns != columns:
            raise DataError(
                f"{block.place(0)} has {len(block.columns) - 1} columns, those before have "
                f"{len(columns) - 1}; give batches of one table"
            )
        seen.update(labels_of(block, target).tolist())
        if len(seen) > MOST_CLASSES:
            check_recurring(len(seen), 2 * MOST_CLASSES)
        keys = _keys(seed, 0, _places(block))
        chosen = np.flatnonzero(keys < limit)
        kept.append((keys[chosen], block.take(chosen)))
        seen_rows, held = seen_rows + len(block), held + len(chosen)
        if held > 2 * count:
            limit = int(np.partition(np.concatenate([keys for keys, _ in kept]), count)[count])
            kept = [_below(keys, part, limit) for keys, part in kept]
            held = sum(len(keys) for keys, _ in kept)
    mine = _Look(
        np.concatenate([np.empty(0, np.int64), *(keys for keys, _ in kept)]),
        np.concatenate([np.empty(0, np.int64), *(_places(part) for _, part in kept)]),
        pa.concat_tables([part.arrow for _, part in kept]) if kept else None,
        seen,
        seen_rows,
    )
    looks = world.exchanged(mine)
    total = sum(look.count for look in looks)
    if total < 2:
        raise DataError(f"expected at least two rows to learn from, got {total}; add rows")
    arrow = pa.concat_tables([look.arrow for look in looks if look.arrow is not None])
    numbers = np.concatenate([look.numbers for look in looks])
    in_order = np.argsort(numbers)
    keys = np.concatenate([look.keys for look in looks])[in_order]
    chosen = in_order[np.sort(np.argsort(keys, kind="stable")[:count])]
    first = kept[0][1] if kept else next(iter(blocks(rows)))
    whole = Table(
        arrow.unify_dictionaries(), first.label, first.image_shape, place_of=first.place_of
    )
    table = whole.take(chosen)
    labels = set().union(*(look.labels for look in looks))
    coder = LabelCoder.fit(np.array(sorted(labels, key=lambda label: (str(type(label)), label))))
    check_recurring(len(coder.classes), total)
    return Sample(table.without(target), table[target], numbers[chosen], coder, total)


@dataclass(frozen=True)
class Windows:
    """How the rows of a stream become shuffled windows of `size` rows.

    Of every window each rank reads a run of rows and makes bits of them; the bits are put together
    at every rank, so that all see the same windows as a single process.
    """

    total: int  # rows in all
    size: int
    width: int  # bits of a row
    seed: int
    world: World = ALONE

    def wanted(self, first: int, count: int) -> np.ndarray:
        """The rows that this rank reads."""
        return _stretches(self.total, self.size, self.world)(first, count)

    def shuffled(
        self, encoded: Iterable[tuple[np.ndarray, np.ndarray]], epoch: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Windows of this rank's blocks of bits (rows, D) and label numbers (rows,).

        Yields bits, label numbers, and the rows' places in the stream.
        """
        source = iter(encoded)
        left = np.empty((0, self.width), np.int8), np.empty(0, np.int64)
        for start in range(0, self.total, self.size):
            count = min(self.size, self.total - start)
            need, held = len(self.world.stretch(count)), [(left[0][:0], left[1][:0])]
            while need:
                if not len(left[1]):
                    left = next(source, left)
                if not len(left[1]):
                    raise DataError(
                        "rows came once and not again, or fewer of them; give a file that stays as "
                        "it is, or a function that gives them each time"
                    )
                held.append((left[0][:need], left[1][:need]))
                taken = len(held[-1][1])
                need, left = need - taken, (left[0][taken:], left[1][taken:])
            bits, labels = self._together(held)
            order = np.argsort(
                _keys(self.seed, 1 + epoch, np.arange(start, start + count)), kind="stable"
            )
            yield bits[order], labels[order], start + order

    def _together(self, held: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """The rows of all ranks, from those that this one holds."""
        bits = np.concatenate([part for part, _ in held])
        labels = np.concatenate([part for _, part in held])
        held.clear()  # one copy of a window at a time
        if self.world.size == 1:
            return bits, labels
        packed = torch.cat(self.world.together(torch.from_numpy(np.packbits(bits, axis=1))))
        labels = torch.cat(self.world.together(torch.from_numpy(labels))).numpy()
        return np.unpackbits(packed.numpy(), axis=1, count=self.width).view(np.int8), labels


def _looked_at(rows: ROWS, world: World) -> Wanted:
    """The share of all rows that a rank looks at: a run of them where their number is known."""
    if isinstance(rows, str | Path) and file_format(rows) == "parquet":
        with closing(open_source(rows)) as source:
            total = source.num_rows
        assert total is not None
        return _stretches(total, total, world)

    def alternate(first: int, count: int) -> np.ndarray:
        return np.flatnonzero((first + np.arange(count)) // BATCH_ROWS % world.size == world.rank)

    return everything if world.size == 1 else alternate


def _stretches(total: int, size: int, world: World) -> Wanted:
    """Of every `size` rows, this rank's run."""

    def mine(first: int, count: int) -> np.ndarray:
        places = first + np.arange(count)
        start = places // size * size
        rows = np.minimum(size, total - start)
        least, most = world.rank * rows // world.size, (world.rank + 1) * rows // world.size
        return np.flatnonzero((places - start >= least) & (places - start < most))

    return everything if world.size == 1 else mine


def _keys(seed: int, epoch: int, places: np.ndarray) -> np.ndarray:
    """One sortable number per row, a function of (seed, epoch, row)."""
    ids = torch.from_numpy(places)
    return permutation_keys(Key(seed), ids, torch.full_like(ids, epoch)).numpy()


def _below(keys: np.ndarray, part: Table, limit: int) -> tuple[np.ndarray, Table]:
    chosen = np.flatnonzero(keys < limit)
    return keys[chosen], part.take(chosen)


def _places(part: Table) -> np.ndarray:
    """Places of a block's rows in the stream, (rows,) int64."""
    return part.start + np.arange(len(part)) if part.rows is None else part.rows
