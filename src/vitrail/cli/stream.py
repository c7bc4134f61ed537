"""`vitrail stream`: predict rows as they arrive, and learn from those whose labels are known."""

from __future__ import annotations

import csv
import io
import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import numpy as np
import typer

from vitrail.cli.app import app, when_stopped
from vitrail.cli.options import LEARN, ModelFile, Seed, Target, check_apart, output_option, shown

READ_BYTES = 2**16  # at a time
WAIT = 0.2  # seconds without a new row, after which rows so far are predicted
BATCH_ROWS = 1024  # at most; each row is predicted before it is learned
MOST_WAITING = 10_000  # rows whose labels may arrive later
COLUMNS = ("prediction", "probability", "uncertainty")


@app.command(rich_help_panel=LEARN)
def stream(
    model: ModelFile,
    target: Target = None,
    output: Annotated[Path, output_option("CSV of predictions; `-` is standard output.")] = Path(
        "-"
    ),
    key: Annotated[
        str | None,
        typer.Option(help="Column of row keys: a label may arrive later, with its row's key."),
    ] = None,
    memory: Annotated[
        str,
        typer.Option(help="Rows after which evidence weighs 1/e; `none` for never, or `auto`."),
    ] = "auto",
    save_every: Annotated[
        int, typer.Option(min=1, help="Rows from one save to the next.")
    ] = 10_000,
    predict_only: Annotated[
        bool, typer.Option("--predict-only", help="Neither learn nor save.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="The input restarts: skip the rows before the last save."),
    ] = False,
    seed: Seed = 0,
) -> None:
    """Predict rows of CSV on standard input as they arrive, and learn from those with labels.

    Every row is predicted before it is learned. An empty label may arrive later: with --key, a
    labelled row with the key of an earlier row supplies its label. The model and `MODEL.stream`
    beside it are saved after every --save-every rows; after a crash --resume continues from there
    with the same answers. Standard error shows accuracy and log-loss of predictions and reports
    where the error rate has risen. A row that cannot be read is reported and skipped.

    Example: `vitrail stream model.safetensors --target class < rows.csv > answers.csv`
    """
    from vitrail.learning.online import StreamFiles, memory_setting
    from vitrail.model import load_model

    files = StreamFiles(model)
    found = load_model(model)
    wanted = memory_setting(memory)
    column = target if target is not None else found.record.get("target")
    if not predict_only and column is None:
        raise ValueError("name the column of labels with --target, or give --predict-only")
    if resume and predict_only:
        raise ValueError("--resume continues learning; leave --predict-only out")
    check_apart(output, model)
    learner, notes = (None, {}) if predict_only else files.begin(found, wanted, seed)
    lines = _Lines(sys.stdin.buffer)
    place = int(notes.get("output", 0)) if resume else 0
    with _opened(output, place) as stream_out, when_stopped("stopped; the model is saved"):
        run = _Run(found, learner, column, key, stream_out, notes, resume)
        saved = run.rows
        try:
            size = BATCH_ROWS if learner is None else min(BATCH_ROWS, save_every)
            for rows in lines.batches(size, run):
                run.take(rows)
                if learner is not None and run.rows - saved >= save_every:
                    saved = run.rows
                    files.save(learner, run.notes())
                    run.report()
        finally:
            stream_out.flush()
            if learner is not None and sys.exc_info()[0] is not BrokenPipeError:
                files.save(learner, run.notes())
        run.report()
        if learner is not None:
            sys.stderr.write(f"model: {shown(model)}\n")


def _opened(path: Path, place: int) -> BinaryIO:
    """The output; a resumed stream truncates it to the last save."""
    if str(path) == "-":
        return os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    if not (place and path.exists()):
        return path.open("wb")
    stream_out = path.open("r+b")
    stream_out.truncate(place)
    stream_out.seek(place)
    return stream_out


class Row(NamedTuple):
    """One line of the input."""

    line: int
    cells: list[str]
    key: str
    label: int | None  # number of its class


class _Lines:
    """Rows of CSV as they arrive."""

    def __init__(self, source: BinaryIO) -> None:
        self._number, self._line = source.fileno(), 0

    def _text(self) -> Iterator[str | None]:
        """Lines; None where no further one has arrived yet."""
        rest = b""
        while True:
            ready, _, _ = select.select([self._number], [], [], WAIT)
            if not ready:
                yield None
                continue
            read = os.read(self._number, READ_BYTES)
            if not read:
                break
            *whole, rest = (rest + read).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in whole)
        if rest:
            yield rest.decode("utf-8", "replace")

    def batches(self, size: int, run: _Run) -> Iterator[list[tuple[int, list[str]]]]:
        """Rows with line numbers, at most `size` at once; the header is passed to run."""
        held: list[tuple[int, list[str]]] = []
        opened = ""  # a quoted cell that continues in the next line
        for line in self._text():
            if line is None:
                if held:
                    yield held
                    held = []
                continue
            self._line += 1
            text = opened + line.rstrip("\r")
            if text.count('"') % 2:
                opened = text + "\n"
                continue
            opened = ""
            if not text.strip():
                continue
            (cells,) = csv.reader(io.StringIO(text, newline=""))
            if run.header is None:
                run.begin(cells)
                continue
            held.append((self._line, cells))
            if len(held) == size:
                yield held
                held = []
        if held:
            yield held
        if opened:
            run.skip(self._line, "a quotation mark is not closed")


class _Run:
    """The state of a stream: predictions, waiting rows, scores."""

    def __init__(
        self,
        model: Any,
        learner: Any,
        target: str | None,
        key: str | None,
        out: BinaryIO,
        notes: dict[str, Any],
        resume: bool,
    ) -> None:
        from vitrail.scores import PageHinkley

        self.header: list[str] | None = None
        self.rows = 0  # read, skipped ones included
        # rows that were processed before the last save
        self._until = int(notes.get("rows", 0)) if resume else 0
        self._model, self._learner = model, learner
        self._target, self._key, self._out = target, key, out
        self._waiting: dict[str, tuple[Any, ...]] = {}  # rows without a label, by key
        self._scored, self._hits, self._loss = 0, 0, 0.0
        self._drift, self._began = PageHinkley(), time.perf_counter()
        if notes:
            self._restore(notes)

    def _restore(self, notes: dict[str, Any]) -> None:
        self._scored, self._hits, self._loss = notes["scored"], notes["hits"], notes["loss"]
        self._drift.restore(notes["drift"])
        for name, (inputs, probabilities) in notes["waiting"].items():
            self._waiting[name] = (np.array(inputs, np.int8), probabilities)

    def notes(self) -> dict[str, Any]:
        """The state that a resumed stream needs, besides the learner."""
        self._out.flush()
        place = self._out.tell() if self._out.seekable() else 0
        return {
            "rows": self.rows,
            "output": place,
            "scored": self._scored,
            "hits": self._hits,
            "loss": self._loss,
            "drift": self._drift.state(),
            "waiting": {name: (x.tolist(), p) for name, (x, p) in self._waiting.items()},
        }

    def begin(self, header: list[str]) -> None:
        """Read the names of the columns."""
        self.header = header
        for name in (self._target, self._key):
            labelled = name is not None and (name != self._target or self._learner is not None)
            if labelled and name not in header:
                raise ValueError(f"column {name!r} not found; columns are: {', '.join(header)}")
        if not self._until:
            named = () if self._key is None else (self._key,)
            self._write([[*named, *COLUMNS]])

    def skip(self, line: int, why: str) -> None:
        """Report a row that cannot be used."""
        if self.rows > self._until:
            sys.stderr.write(f"line {line} is skipped: {why}\n")

    def take(self, rows: list[tuple[int, list[str]]]) -> None:
        """Predict rows, and learn from those that have labels."""
        import torch

        assert self.header is not None
        if self.rows + len(rows) <= self._until:
            self.rows += len(rows)
            return
        done = max(0, self._until - self.rows)
        self.rows += done
        kept: list[Row] = []
        at = None if self._key is None else self.header.index(self._key)
        labels = self.header.index(self._target) if self._target in self.header else None
        for line, cells in rows[done:]:
            self.rows += 1
            if len(cells) != len(self.header):
                self.skip(line, f"{len(cells)} cells, where the header has {len(self.header)}")
                continue
            name = cells[at] if at is not None else ""
            number = None
            if labels is not None and self._learner is not None and cells[labels].strip():
                number = self._class(line, cells[labels].strip())
                if number is None:
                    continue
                if name in self._waiting or any(name == row.key for row in kept if name):
                    self._predict(kept)  # in the order of arrival
                    kept = []
                    if name in self._waiting:
                        inputs, probabilities = self._waiting.pop(name)
                        self._score(number, probabilities)  # the label has arrived
                        self._learner.follow(torch.from_numpy(inputs[None]), np.array([number]))
                        continue
            kept.append(Row(line, cells, name, number))
        self._predict(kept)
        self._out.flush()

    def _class(self, line: int, label: str) -> int | None:
        try:
            return int(self._model.labels.encode(np.array([label], object))[0])
        except ValueError:
            self.skip(line, f"the label {label!r} is none of the classes")
            return None

    def _predict(self, rows: list[Row]) -> None:
        if not rows:
            return
        rows, read = self._inputs(rows)
        if not rows:
            return
        from vitrail.model.voting import ONE

        numbers = np.array([-1 if row.label is None else row.label for row in rows])
        if self._learner is None:
            answers = self._model.answers_of(read)
        else:
            answers = self._learner.follow(read, numbers)
        words = self._model.labels.decode(answers.numbers.numpy())
        probabilities = answers.probabilities.numpy() / ONE
        against = answers.against.numpy() / ONE
        best = probabilities.max(1)
        self._write(
            [*([name] if self._key is not None else []), word, f"{p:.6f}", f"{u:.6f}"]
            for (_, _, name, _), word, p, u in zip(rows, words.tolist(), best, against, strict=True)
        )
        if self._learner is None:
            return
        for (_, _, name, number), x, p in zip(rows, read.numpy(), probabilities, strict=True):
            if number is not None:
                self._score(number, p.tolist())
            elif name:
                self._waiting[name] = (x, p.tolist())
                if len(self._waiting) > MOST_WAITING:
                    del self._waiting[next(iter(self._waiting))]

    def _inputs(self, rows: list[Row]) -> tuple[list[Row], Any]:
        """The rows that can be read, and their inputs; other rows are reported."""
        import torch

        try:
            return rows, self._encoded(rows)
        except ValueError as error:
            if len(rows) == 1:
                self.skip(rows[0].line, " ".join(str(error).split()))
                return [], None
            middle = len(rows) // 2
            parts = [self._inputs(part) for part in (rows[:middle], rows[middle:])]
            found = [read for valid, read in parts if valid]
            read = torch.cat(found) if found else None
            return [row for valid, _ in parts for row in valid], read

    def _encoded(self, rows: list[Row]) -> Any:
        import pyarrow as pa

        from vitrail.tables.table import Table

        assert self.header is not None
        columns = zip(*(cells for _, cells, _, _ in rows), strict=True)
        arrow = pa.table(
            {
                name: pa.array(cells, pa.string())
                for name, cells in zip(self.header, columns, strict=True)
            }
        )
        lines = np.array([line for line, *_ in rows])
        table = Table(arrow, rows=lines, place_of=lambda line: f"line {line}", untyped=True)
        return self._model.inputs(table)

    def _score(self, number: int, probabilities: list[float]) -> None:
        """Count a prediction whose label is known."""
        wrong = int(np.argmax(probabilities)) != number
        self._scored += 1
        self._hits += not wrong
        self._loss -= float(np.log(max(probabilities[number], 1e-9)))
        if self._drift.add(float(wrong)):
            sys.stderr.write(
                f"drift: the error rate has risen to {self._drift.late:.3f} by labelled row "
                f"{self._scored:,}\n"
            )

    def report(self) -> None:
        """Print accuracy and log-loss so far."""
        speed = (self.rows - self._until) / max(1e-9, time.perf_counter() - self._began)
        text = f"{self.rows:,} rows"
        if self._scored:
            accuracy, loss = self._hits / self._scored, self._loss / self._scored
            text += f", accuracy {accuracy:.4f}, log-loss {loss:.4f} on {self._scored:,} labels"
        sys.stderr.write(f"{text}, {speed:,.0f} rows per second\n")

    def _write(self, rows: Any) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._out.write(text.getvalue().encode())
