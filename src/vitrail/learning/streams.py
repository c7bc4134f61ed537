"""Training on more rows than fit into memory: beliefs are kept, rows are read again each epoch.

One look at all rows finds the labels and an even sample; the encoder is fitted to the sample, and
some of its rows are held out for calibration. Then batch after batch goes through `streaming`, and
only one window of rows and one number per weight are held. Each rank reads and encodes a share of
every window, and all then do the same sums: batches are small, and a sum over ranks for each would
take longer than the batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from vitrail import ranks
from vitrail.checks import checked_count
from vitrail.decode import threshold
from vitrail.draws import random_order
from vitrail.errors import DataError
from vitrail.factors import network
from vitrail.graph import FactorGraph, factor_graph
from vitrail.learning.examples import Examples, split_rows
from vitrail.learning.learn import LEAST, model_of
from vitrail.learning.posterior import (
    Posterior,
    TrainingData,
    calibrated,
    drawn_from_marginals,
    raw_margins_of,
)
from vitrail.learning.preprocessing import BIAS, Preprocessing, default_coding, multilayer
from vitrail.learning.table import AUTO, STREAM_BATCH, stream_schedules
from vitrail.memory import in_gigabytes
from vitrail.model import Model
from vitrail.model.calibration import Evidence
from vitrail.model.model import as_inputs
from vitrail.nn import Program
from vitrail.nn.moments import class_probabilities
from vitrail.random import Key
from vitrail.solvers import Status, streaming
from vitrail.solvers.history import History
from vitrail.solvers.streaming import Streaming, StreamState, usual_rate
from vitrail.tables.encoders import fit_encoder
from vitrail.tables.sources import RowSelector
from vitrail.tables.streams import ROWS, Windows, blocks, labels_of, sample, target_of

CEILING = 2**31
BASE = 3 * 2**28  # bytes that the program itself takes, with torch and the blocks it reads
COPIES = 3  # of a window's bits: as read, put together, shuffled
SAMPLE, HELD_OUT = 20_000, 4_000  # rows that the encoder is fitted to; of these, held out at most
SHARE = 0.2  # of the sample that is held out
LARGEST_WINDOW = 2**20
MEMORIES = (None, 32_000.0, 4_000.0)  # rows, those of "auto"

Progress = Callable[[int, int, float], None]


def fit_stream(
    rows: ROWS,
    target: str | None = None,
    *,
    hidden: tuple[int, ...] = (),
    epochs: int = 1,
    memory: float | str | None = None,
    ceiling: int = CEILING,
    networks: int = 128,
    seed: int = 0,
    progress: Progress | None = None,
) -> Model:
    """Train a net on rows of any number, within a ceiling of memory.

    Args:
        rows: A CSV, TSV, Parquet or NPZ file, or a function that gives batches of inputs (rows,
            columns) and labels (rows,), anew at each call.
        target: The column of labels; None is the one that the file names.
        hidden: Units of each hidden layer.
        epochs: How often every row is used.
        memory: Rows after which earlier evidence weighs 1/e; None is for ever; "auto" takes the one
            of several that predicts rows of the first epoch best, each before it is learned.
        ceiling: Bytes that the process may take.
        networks: How many networks of the posterior are kept, at most.
        seed: Same number, same model.
        progress: Called with rows so far, rows in all epochs, and rows per second.

    Returns:
        The model; its record says how many rows the encoder was fitted to.

    Examples:
        >>> model = fit_stream("long.parquet", "kind", ceiling=4 * 2**30)  # doctest: +SKIP
    """
    start = time.perf_counter()
    checked_count("epochs", epochs, 1)
    checked_count("networks", networks, 1)
    counted = isinstance(memory, float | int) and 1 <= memory < float("inf")
    if memory is not None and memory != AUTO and not counted:
        raise ValueError(f"memory is a number of rows from 1, 'auto' or None, got {memory!r}")
    for units in hidden:
        checked_count("a hidden layer", units, 1)
    target = target_of(rows, target)
    world = ranks.current_world()
    found = sample(rows, target, SAMPLE, seed, world)
    encoder = fit_encoder(found.table)
    coding = default_coding(encoder)
    fixed = Preprocessing(encoder, found.coder, coding, BIAS[coding], "argmax")
    program = multilayer(fixed.shape, hidden, fixed.num_outputs)
    held = _held_out(found.labels, seed)
    held_numbers = found.numbers[held]
    tried = MEMORIES if isinstance(memory, str) else (memory,)
    size = window_rows(len(encoder.bit_names), ceiling)
    # rows of a window are shuffled, so no memory is shorter
    size = min([size, *(max(STREAM_BATCH, int(one)) for one in tried if one is not None)])
    windows = Windows(found.total, size, len(encoder.bit_names), seed, world)
    per_epoch = -(-(found.total - len(held_numbers)) // STREAM_BATCH)
    batches = epochs * per_epoch
    beta, rate = stream_schedules(batches, batches)
    each = partial(streaming, batch=STREAM_BATCH, batches=1, beta=beta)
    # with a memory all parts count alike: the rate stays, that of a run as long as the memory
    rates = [rate if one is None else usual_rate(int(one) // STREAM_BATCH) for one in tried]
    rivals = [
        _Rival(one, each(memory=one, rate=own)) for one, own in zip(tried, rates, strict=True)
    ]
    graph, number, done = None, 0, 0
    fitting = time.perf_counter()
    for epoch in range(epochs):
        encoded = _encoded(rows, target, fixed, windows.select)
        for bits, labels, places in windows.shuffled(encoded, epoch):
            seen = ~np.isin(places, held_numbers)
            bits, labels = bits[seen], labels[seen]
            for first in range(0, len(labels), STREAM_BATCH):
                part = slice(first, first + STREAM_BATCH)
                inputs = as_inputs(bits[part], coding, fixed.bias)
                graph = factor_graph(network(program, inputs, torch.from_numpy(labels[part])))
                for rival in rivals:
                    if len(rivals) > 1:
                        rival.predict(program, graph, inputs, labels[part])
                    if rival.state is None:
                        rival.state = rival.solver.init(Key(seed), graph)
                    key = Key(seed, number)
                    rival.state = rival.solver.absorb(key, graph, graph.blocks, rival.state)
                number += 1
            done += len(labels)
            if progress is not None:
                spent = time.perf_counter() - fitting
                progress(done, epochs * (found.total - len(held_numbers)), done / spent)
        rivals = [min(rivals, key=lambda rival: rival.loss)]
    solver, state = rivals[0].solver, rivals[0].state
    if state is None or graph is None:
        raise DataError("rows came once and not again; give a function that gives them each time")
    log_odds = solver.log_odds(graph, state)
    seconds = time.perf_counter() - fitting
    notes = {
        "rows": found.total,
        "encoder_rows": len(found.labels),
        "rows_per_second": round(done / seconds),
        "seconds": round(time.perf_counter() - start, 3),
        "target": target,
    }
    settings = {
        "solver": "streaming",
        "hidden": list(hidden),
        "epochs": epochs,
        "batch_size": STREAM_BATCH,
        "predictor": "posterior",
        "memory": rivals[0].memory,
        "window_rows": size,
        "seed": seed,
    }
    labels = torch.from_numpy(fixed.coder.encode(found.labels[held]))
    inputs, equal = (
        fixed.inputs(found.table.take(held)),
        torch.ones(len(labels), dtype=torch.float64),
    )
    drawn = drawn_from_marginals(log_odds[None], networks, seed)
    posterior = Posterior(
        program=program,
        networks=drawn,
        votes=torch.ones(drawn.shape[:2], dtype=torch.int64),
        best=threshold(Key(seed), log_odds)[None],
        marginals=torch.sigmoid(log_odds)[None],
        accuracy=torch.full((1,), torch.nan),  # rows are gone
        evidence=Evidence(raw_margins_of(program, drawn, inputs), labels, equal),
        settings=settings,
        history=History(),
        steps=number,
        evaluations=done,
        status=(Status.MAX_STEPS,),
        found_by=("streaming",),
        state=state,
        notes=notes,
    )
    examples = Examples(inputs, labels, equal, equal)
    model = model_of(fixed, posterior, *calibrated(TrainingData(fixed, examples, []), posterior))
    right = model.answers_of(inputs).numbers == labels
    model.record.pop("best_accuracy")
    model.record["test_rows"] = len(held)
    model.record["test_accuracy"] = round(float(right.double().mean()), 6)
    return model


@dataclass(eq=False)
class _Rival:
    """Training with one of several memories."""

    memory: float | None
    solver: Streaming
    state: StreamState | None = None
    loss: float = 0.0  # of predictions of rows before they were learned

    def predict(
        self, program: Program, graph: FactorGraph, inputs: Tensor, labels: np.ndarray
    ) -> None:
        """Add the loss on rows that are not learned yet."""
        if self.state is not None:
            probability = torch.sigmoid(self.solver.log_odds(graph, self.state))
            shares = class_probabilities(program, probability, inputs).numpy()
            own = shares[np.arange(len(labels)), labels]
            self.loss -= float(np.log(own.clip(min=LEAST)).sum())


def _held_out(labels: np.ndarray, seed: int) -> np.ndarray:
    """The rows of a sample that are held out, (rows,), at least one."""
    share = min(SHARE, HELD_OUT / len(labels))
    _, held = split_rows(labels, share, seed)
    return held if len(held) else random_order(seed, len(labels))[:1]


def window_rows(bits: int, ceiling: int) -> int:
    """How many rows a window may have under a ceiling, in bytes."""
    room = ceiling - BASE
    if room < COPIES * bits * STREAM_BATCH:
        raise ValueError(
            f"a ceiling of {in_gigabytes(ceiling)} leaves no room beside the program's own "
            f"{in_gigabytes(BASE)}; allow more"
        )
    return max(STREAM_BATCH, min(LARGEST_WINDOW, room // (COPIES * (bits + 16))))


def _encoded(
    rows: ROWS, target: str, fixed: Preprocessing, select: RowSelector
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for block in blocks(rows, select):
        if len(block):
            yield (
                fixed.encoder.transform(block.without(target)),
                fixed.coder.encode(labels_of(block, target), block.place),
            )
