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
from vitrail.tables.sources import ArraySource, RowSelector, all_rows
from vitrail.tables.table import BATCH_ROWS, Table, file_format, iter_table, open_source

ROWS = Path | str | Callable[[], Iterable[tuple[Any, Any]]]
"""A file, or what gives batches of inputs (rows, columns) and labels (rows,) anew each time."""

MOST_CLASSES = 2**16  # remembered while rows go by
LABEL = "label"  # what the column of labels is called where batches have no names


@dataclass(frozen=True)
class Sample:
    """Statistics from one pass over all rows."""

    table: Table  # some rows, drawn evenly, without the labels
    labels: np.ndarray  # (rows of the table,)
    numbers: np.ndarray  # (rows of the table,) int64, their places in the stream
    coder: LabelCoder  # all labels there are
    total: int  # rows in all


def blocks(rows: ROWS, select: RowSelector = all_rows) -> Iterator[Table]:
    """The selected rows from the first on, a block at a time."""
    if isinstance(rows, str | Path):
        yield from iter_table(rows, select=select)
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
            chosen = select(table.start, len(table))
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
class _RankSample:
    """Statistics of the rows that one rank has read."""

    keys: np.ndarray  # of the sampled rows
    numbers: np.ndarray  # their places in the stream
    arrow: pa.Table | None  # the sampled rows
    labels: set[Any]  # of all rows read
    count: int  # rows read


def sample(rows: ROWS, target: str, count: int, seed: int, world: World = ALONE) -> Sample:
    """At most `count` rows, the same whatever the blocks are, and all labels; reads all rows once.

    Each rank reads a share of the rows; then ranks exchange what they have found.
    """
    parts: list[tuple[np.ndarray, Table]] = []  # rows with their keys
    limit, num_rows, columns = 2**62, 0, None
    classes: set[Any] = set()
    for block in blocks(rows, _share_of_rank(rows, world)):
        if not len(block):
            continue
        columns = columns or block.columns
        if block.columns != columns:
            raise DataError(
                f"{block.place(0)} has {len(block.columns) - 1} columns, those before have "
                f"{len(columns) - 1}; give batches of one table"
            )
        classes.update(labels_of(block, target).tolist())
        if len(classes) > MOST_CLASSES:
            check_recurring(len(classes), 2 * MOST_CLASSES)
        num_rows += len(block)
        parts.append(_below(limit, _keys(seed, 0, block.numbers), block))
        if sum(len(keys) for keys, _ in parts) > 2 * count:
            limit = int(np.partition(np.concatenate([keys for keys, _ in parts]), count)[count])
            parts = [_below(limit, *part) for part in parts]
    none = np.empty(0, np.int64)
    mine = _RankSample(
        np.concatenate([none, *(keys for keys, _ in parts)]),
        np.concatenate([none, *(part.numbers for _, part in parts)]),
        pa.concat_tables([part.arrow for _, part in parts]) if parts else None,
        classes,
        num_rows,
    )
    shares = world.all_gather_objects(mine)
    total = sum(share.count for share in shares)
    if total < 2:
        raise DataError(f"expected at least two rows to learn from, got {total}; add rows")
    numbers = np.concatenate([share.numbers for share in shares])
    in_order = np.argsort(numbers)
    ranked = np.argsort(np.concatenate([share.keys for share in shares])[in_order], kind="stable")
    chosen = in_order[np.sort(ranked[:count])]
    first = parts[0][1] if parts else next(iter(blocks(rows)))
    arrow = pa.concat_tables([share.arrow for share in shares if share.arrow is not None])
    whole = Table(
        arrow.unify_dictionaries(), first.label, first.image_shape, place_of=first.place_of
    )
    table = whole.take(chosen)
    labels = set().union(*(share.labels for share in shares))
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

    def select(self, first: int, count: int) -> np.ndarray:
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
            need, held = len(self.world.contiguous_share(count)), [(left[0][:0], left[1][:0])]
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
        packed = torch.cat(self.world.all_gather(torch.from_numpy(np.packbits(bits, axis=1))))
        labels = torch.cat(self.world.all_gather(torch.from_numpy(labels))).numpy()
        return np.unpackbits(packed.numpy(), axis=1, count=self.width).view(np.int8), labels


def _share_of_rank(rows: ROWS, world: World) -> RowSelector:
    """The share of all rows that a rank reads: a run of them where their number is known."""
    if isinstance(rows, str | Path) and file_format(rows) == "parquet":
        with closing(open_source(rows)) as source:
            total = source.num_rows
        assert total is not None
        return _stretches(total, total, world)

    def alternate(first: int, count: int) -> np.ndarray:
        return np.flatnonzero((first + np.arange(count)) // BATCH_ROWS % world.size == world.rank)

    return all_rows if world.size == 1 else alternate


def _stretches(total: int, size: int, world: World) -> RowSelector:
    """Of every `size` rows, this rank's run."""

    def mine(first: int, count: int) -> np.ndarray:
        places = first + np.arange(count)
        start = places // size * size
        rows = np.minimum(size, total - start)
        least, most = world.rank * rows // world.size, (world.rank + 1) * rows // world.size
        return np.flatnonzero((places - start >= least) & (places - start < most))

    return all_rows if world.size == 1 else mine


def _keys(seed: int, epoch: int, places: np.ndarray) -> np.ndarray:
    """One sortable number per row, a function of (seed, epoch, row)."""
    ids = torch.from_numpy(places)
    return permutation_keys(Key(seed), ids, torch.full_like(ids, epoch)).numpy()


def _below(limit: int, keys: np.ndarray, rows: Table) -> tuple[np.ndarray, Table]:
    """The rows whose keys are below the limit."""
    chosen = np.flatnonzero(keys < limit)
    return keys[chosen], rows.take(chosen)
