"""Options that commands share, and helpers for the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as TextTable

if TYPE_CHECKING:
    from vitrail.model import Model
    from vitrail.tables.table import Table

# groups of the help
LEARN, LOOK, SHIP, RESEARCH = "Learn", "Look", "Ship", "Research"


def output_option(help: str) -> Any:  # noqa: A002 (typer's name)
    """The option `--output` with a help text."""
    return typer.Option("--output", "-o", help=help)


DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="CSV, TSV, Parquet, NPZ or idx file; `-` is CSV on standard input."
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `fit` wrote.")]
Target = Annotated[
    str | None,
    typer.Option(help="The column of labels; not needed for NPZ and idx files."),
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", min=0)]
Hidden = Annotated[
    str, typer.Option(help="Hidden units: `8`, `16,8`, `0` for a linear net, or `auto`.")
]
TestSize = Annotated[
    float, typer.Option(min=0.0, max=0.9, help="Share of rows held out to test; 0 for none.")
]
Epochs = Annotated[
    int | None, typer.Option(min=1, help="Passes over the rows; chosen if left out.")
]
FlashLimit = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum bytes of flash on a Cortex-M0+, encoder included."),
]
Jobs = Annotated[int, typer.Option(help="Worker processes.", min=1)]
Workers = Annotated[
    str, typer.Option("--backend", help="What runs the workers: processes, dask, or ray.")
]
FigureFile = Annotated[Path | None, typer.Option("--figure", help="Draw a figure to this file.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar and no list of columns.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]

# as in `vitrail.learning.SOLVERS`, whose import would load torch to print help
SOLVER_NAMES = (
    "chains, messages, select, bp, sbp, s3p, s4p, snmp, reinforced, sampled, streaming, ste, bop, "
    "bayesbinn, annealing, exhaustive, cpsat"
)
FIGURES = (".png", ".svg", ".pdf", ".jpg", "")

BatchT = TypeVar("BatchT", bound=Sized)


def plain_console(*, stderr: bool = False) -> Console:
    """A console without markup, since names may contain square brackets."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def shown(path: Path | str) -> str:
    """A path as printable text, even if its name is not UTF-8."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None
) -> None:
    """Print a table: text left-aligned, numbers right-aligned with thousands separators."""
    lines = [list(row) for row in rows]
    table = TextTable(title=title, title_justify="left")
    for place, name in enumerate(columns):
        words = all(isinstance(line[place], str) for line in lines)
        table.add_column(name, justify="left" if words else "right", no_wrap=place == 0)
    for line in lines:
        table.add_row(*map(cell, line))
    plain_console().print(table)


def cell(value: Any) -> str:
    """A value in a table: `-` where there is none."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    grouped = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if grouped else str(value)


def mixing_text(mixing: Mapping[str, Any]) -> str:
    """R-hat and effective sample size of a fit's chains, from the record's "mixing"."""
    size, count = mixing["effective_networks"], mixing["chains"] * mixing["draws"]
    return f"R-hat {mixing['spread']:.2f}, effective sample size {size:.0f} of {count}"


def check_apart(output: Path, *inputs: Path) -> None:
    """Refuse an output that would replace one of the inputs."""
    for source in inputs:
        if output.exists() and source.exists() and output.samefile(source):
            raise ValueError(
                f"the output {shown(output)} is also the input and would replace it; "
                "give another file with --output"
            )


def check_output(output: Path, *inputs: Path) -> None:
    """Refuse an output that would replace an input or cannot be written."""
    from vitrail.output import check_writable

    check_apart(output, *inputs)
    check_writable(output)


def check_figure(path: Path | None) -> None:
    """Refuse a figure that cannot be drawn or written, before the work starts."""
    if path is None:
        return
    from vitrail.lab import plots

    assert plots  # the import raises where matplotlib is missing
    check_output(path)
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
        raise ValueError(f"hidden units are auto or whole numbers such as 8 or 16,8, got {text!r}")
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


def column_order(text: str) -> tuple[str, int]:
    """`age=-1` → ("age", −1)."""
    name, _, value = text.rpartition("=")
    if not name or value not in ("1", "+1", "0", "-1"):
        raise ValueError(f"monotonic columns are given as age=1 or age=-1, got {text!r}")
    return name, int(value)


def byte_count(text: str) -> int:
    """`4GiB`, `500 MB` or a plain number of bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    if found is None:
        raise ValueError(f"memory is a number of bytes such as 4GiB or 500MB, got {text!r}")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix or " "))


def target_column(table: Any, target: str | None) -> str:
    """The column of labels: `target`, or the one named in the file."""
    chosen = target if target is not None else table.label
    names = ", ".join(table.columns[:20])
    if chosen is None:
        raise ValueError(f"name the column of labels with --target; columns are: {names}")
    if chosen not in table.columns:
        raise ValueError(f"target column {chosen!r} not found; columns are: {names}")
    return chosen


def read_model_and_table(model: Path, data: Path) -> tuple[Model, Table]:
    """The model and the table of a command."""
    from vitrail.model import load_model
    from vitrail.tables.table import read_table

    return load_model(model), read_table(data)


@contextmanager
def _row_bar(
    what: str, text: str, total: int | None = None, *, quiet: bool = False, **fields: Any
) -> Iterator[Callable[..., None]]:
    """A progress bar on standard error, if it is a terminal; yields its update function."""
    console = Console(stderr=True)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description} " + text),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=total, **fields)
        yield lambda **values: bar.update(task, **values)


@contextmanager
def working(what: str, *, quiet: bool = False) -> Iterator[None]:
    """A status line with elapsed time on a terminal."""
    with _row_bar(what, "", quiet=quiet):
        yield


@contextmanager
def rows_per_second(
    what: str, *, quiet: bool = False
) -> Iterator[Callable[[int, int, float], None]]:
    """A progress bar to update with the rows so far, the total and the rate."""
    text = "{task.completed:,} of {task.total:,} rows {task.fields[speed]:,.0f} per second"
    with _row_bar(what, text, total=0, quiet=quiet, speed=0.0) as update:
        yield lambda done, total, speed: update(completed=done, total=total, speed=speed)


def count_rows(batches: Iterable[BatchT], what: str) -> Iterator[BatchT]:
    """The batches, with a row count on terminals."""
    with _row_bar(what, "{task.completed:,} rows") as update:
        for batch in batches:
            yield batch
            update(advance=len(batch))
