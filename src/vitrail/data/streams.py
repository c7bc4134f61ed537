"""Rows of a table that need not fit into memory: in blocks, as a sample, and in windows.

A window is a run of rows by their number in the stream, whatever blocks they came in, shuffled
within itself. So the order of rows is a pure function of (seed, epoch, window, row), and memory
holds one window. A file whose rows are sorted should be shuffled once before: rows do not move
from one window to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from vitrail.data.errors import DataError
from vitrail.data.labels import LabelCoder, check_recurring, require_labels
from vitrail.data.sources import ArraySource
from vitrail.data.tables import Table, iter_table
from vitrail.random import Key, permutation_keys

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


def blocks(rows: ROWS) -> Iterator[Table]:
    """The rows from the first on, a block at a time."""
    if isinstance(rows, str | Path):
        yield from iter_table(rows)
        return
    if not callable(rows):
        raise TypeError(f"rows are a file, or a function that gives batches, got {rows!r}")
    start = 0
    for batch in rows():
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise TypeError(f"a batch is a pair of inputs and labels, got {type(batch).__name__}")
        inputs, labels = batch
        source = ArraySource("the batch", np.asarray(inputs), LABEL, np.asarray(labels))
        for block in source.blocks():
            yield Table(pa.Table.from_batches([block]), LABEL, source.image_shape, start)
            start += block.num_rows


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
    require_labels(labels, block.place)
    return labels


def sample(rows: ROWS, target: str, count: int, seed: int) -> Sample:
    """At most `count` rows, the same whatever the blocks are, and all labels; one look at all."""
    kept: list[tuple[np.ndarray, Table]] = []
    limit, total, held, columns = 2**62, 0, 0, None
    seen: set[Any] = set()
    for block in blocks(rows):
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
        keys = _keys(seed, 0, total, len(block))
        chosen = np.flatnonzero(keys < limit)
        kept.append((keys[chosen], block.take(chosen)))
        total, held = total + len(block), held + len(chosen)
        if held > 2 * count:
            limit = int(np.partition(np.concatenate([keys for keys, _ in kept]), count)[count])
            kept = [_below(keys, part, limit) for keys, part in kept]
            held = sum(len(keys) for keys, _ in kept)
    if total < 2:
        raise DataError(f"expected at least two rows to learn from, got {total}; add rows")
    keys = np.concatenate([keys for keys, _ in kept])
    order = np.sort(np.argsort(keys, kind="stable")[:count])
    arrow = pa.concat_tables([part.arrow for _, part in kept]).unify_dictionaries()
    numbers = np.concatenate([part.start + _origin(part) for _, part in kept])[order]
    first = kept[0][1]
    table = Table(arrow, first.label, first.image_shape, place_of=first.place_of).take(order)
    coder = LabelCoder.fit(np.array(sorted(seen, key=lambda label: (str(type(label)), label))))
    check_recurring(len(coder.classes), total)
    return Sample(table.without(target), table[target], numbers, coder, total)


def windows(
    encoded: Iterable[tuple[np.ndarray, np.ndarray]], size: int, seed: int, epoch: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Blocks of bits (rows, D) and label numbers (rows,) as shuffled windows of `size` rows.

    Yields bits, label numbers, and the rows' places in the stream.
    """
    held: list[tuple[np.ndarray, np.ndarray]] = []
    start = waiting = 0
    for bits, labels in encoded:
        while len(labels):
            taken = min(size - waiting, len(labels))
            held.append((bits[:taken], labels[:taken]))
            waiting, bits, labels = waiting + taken, bits[taken:], labels[taken:]
            if waiting == size:
                yield _shuffled(held, start, seed, epoch)
                start, waiting, held = start + size, 0, []
    if waiting:
        yield _shuffled(held, start, seed, epoch)


def _shuffled(
    held: list[tuple[np.ndarray, np.ndarray]], start: int, seed: int, epoch: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    bits = np.concatenate([part for part, _ in held])
    labels = np.concatenate([part for _, part in held])
    held.clear()  # one copy of a window at a time
    order = np.argsort(_keys(seed, 1 + epoch, start, len(labels)), kind="stable")
    return bits[order], labels[order], start + order


def _keys(seed: int, epoch: int, start: int, count: int) -> np.ndarray:
    """One sortable number a row, a function of (seed, epoch, row)."""
    ids = torch.arange(start, start + count)
    return permutation_keys(Key(seed), ids, torch.full_like(ids, epoch)).numpy()


def _below(keys: np.ndarray, part: Table, limit: int) -> tuple[np.ndarray, Table]:
    chosen = np.flatnonzero(keys < limit)
    return keys[chosen], part.take(chosen)


def _origin(part: Table) -> np.ndarray:
    """Places of taken rows, from the start of their block."""
    assert part.rows is not None
    return part.rows - part.start
