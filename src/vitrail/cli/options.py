"""Options that several commands share, and small helpers of the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="CSV, TSV, Parquet, NPZ or idx file; `-` is CSV on standard input."
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `fit` wrote.")]
Target = Annotated[
    str | None,
    typer.Option(help="The column of labels; NPZ and idx files say it themselves."),
]
Seed = Annotated[int, typer.Option(help="Same seed, same network.", min=0)]
Hidden = Annotated[
    str, typer.Option(help="Hidden units: `8`, `16,8`, `0` for a linear net, or `auto`.")
]
Workers = Annotated[
    str, typer.Option("--backend", help="Who does the parts: processes, dask, or ray.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]

# Those of `vitrail.learning.SOLVERS`, whose import would load torch for a page of help.
SOLVER_NAMES = (
    "chains, messages, select, bp, sbp, s3p, s4p, snmp, reinforced, sampled, streaming, ste, bop, "
    "bayesbinn, annealing, exhaustive, cpsat"
)
FIGURES = (".png", ".svg", ".pdf", ".jpg", "")

BatchT = TypeVar("BatchT", bound=Sized)


def plain_console(*, stderr: bool = False) -> Console:
    """A console that prints what it is given: square brackets in names are no markup."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def shown(path: Path | str) -> str:
    """A path as text that any terminal and file takes, also where its name is not UTF-8."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def mixing_text(mixing: Mapping[str, Any]) -> str:
    """How well the chains of a fit mixed, by the record's "mixing"."""
    size, count = mixing["effective_networks"], mixing["chains"] * mixing["draws"]
    return f"R-hat {mixing['spread']:.2f}, effective sample size {size:.0f} of {count}"


def check_apart(output: Path, *inputs: Path) -> None:
    """Refuse an output that would replace one of the inputs."""
    for source in inputs:
        if output.exists() and source.exists() and output.samefile(source):
            raise ValueError(
                f"the output {shown(output)} is the input itself and would replace it; "
                "give another file with --output"
            )


def check_figure(path: Path) -> None:
    """Refuse a figure that could not be drawn or written, before the work that it shows."""
    from vitrail.lab import plots
    from vitrail.output import check_writable

    assert plots  # its import says what to install where matplotlib is missing
    check_writable(path)
    if path.suffix.lower() not in FIGURES:
        raise ValueError(
            f"cannot draw {shown(path)}; give it a name that ends in {', '.join(FIGURES[:-1])}"
        )


def hidden_units(text: str) -> tuple[int, ...] | Literal["auto"]:
    """`8` → (8,), `16,8` → (16, 8), `0` → (), `auto` as it is."""
    if text == "auto":
        return "auto"
    try:
        units = tuple(int(part) for part in text.split(","))
    except ValueError:
        units = (-1,)
    if min(units) < 0 or (0 in units and units != (0,)):
        raise ValueError(f"hidden units are whole numbers such as 8 or 16,8 or auto, got {text!r}")
    return () if units == (0,) else units


def number_or_auto(name: str, text: str) -> float | Literal["auto"]:
    """A positive number (`inf` allowed) or "auto"."""
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise ValueError(f"{name} is a positive number, inf or auto, got {text!r}")
    return value


def byte_count(text: str) -> int:
    """`4GiB`, `500 MB` or a plain number of bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    if found is None:
        raise ValueError(f"memory is a number of bytes such as 4GiB or 500MB, got {text!r}")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix or " "))


def target_column(table: Any, target: str | None) -> str:
    """The column of labels: the one asked for, or the one the file names."""
    chosen = target if target is not None else table.label
    if chosen is None:
        raise ValueError(
            f"name the column of labels with --target; columns are: {', '.join(table.columns[:20])}"
        )
    if chosen not in table.columns:
        raise ValueError(
            f"target column {chosen!r} not found; columns are: {', '.join(table.columns[:20])}"
        )
    return chosen


@contextmanager
def rows_per_second(what: str) -> Iterator[Callable[[int, int, float], None]]:
    """A bar on standard error, if it is a terminal: rows so far, in all, per second."""
    console = Console(stderr=True)
    words = TextColumn("{task.description} {task.completed:,} of {task.total:,} rows")
    speed = TextColumn("{task.fields[speed]:,.0f} per second")
    with Progress(
        SpinnerColumn(),
        words,
        speed,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=0, speed=0.0)
        yield lambda done, total, speed: bar.update(task, completed=done, total=total, speed=speed)


def counted_rows(batches: Iterable[BatchT], what: str) -> Iterator[BatchT]:
    """The batches, with a count of rows on standard error while a terminal is watching."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,} rows"))
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=None)
        for batch in batches:
            yield batch
            bar.update(task, advance=len(batch))
