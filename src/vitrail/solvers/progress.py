"""A progress bar for long runs, shown on terminals only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from torch import Tensor

Progress = Callable[[int, Tensor, Tensor], None]


@contextmanager
def progress_bar(total: int, label: str = "training") -> Iterator[Progress]:
    """A bar on standard error with current and best accuracy; silent when not a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("now {task.fields[now]:.3f}  best {task.fields[best]:.3f}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with RichProgress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(label, total=total, now=0.0, best=0.0)

        def show(step: int, accuracy: Tensor, best: Tensor) -> None:
            bar.update(task, completed=step, now=float(accuracy.mean()), best=float(best.mean()))

        yield show


def silent(step: int, accuracy: Tensor, best: Tensor) -> None:
    """Show nothing."""
