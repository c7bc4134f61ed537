"""Every format that a model can be exported to, and the files that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.export.arrays import npz_file
from vitrail.export.c import c_header
from vitrail.export.devices import layout_files
from vitrail.export.golden import GOLDEN, Rows, sample_rows
from vitrail.export.js import js_module
from vitrail.export.onnx import onnx_file
from vitrail.export.plan import ExportError
from vitrail.model import Model
from vitrail.output import atomic_output
from vitrail.tables.bits import BitColumns
from vitrail.tables.cells import Cells, as_category
from vitrail.tables.columns import MOST_WHOLE, ColumnCode
from vitrail.tables.frames import as_frame, places

Contents = Mapping[str, str | bytes]  # by path


def export_model(
    model: Model,
    to: str,
    folder: str | Path = ".",
    *,
    name: str = "tiny",
    layout: str = "header",
    rows: Any = None,
) -> list[Path]:
    """Write a model as files of another language, and return their paths.

    Args:
        model: Any model.
        to: One of FORMATS; "onnx" needs the extra `export`.
        folder: Where the files go.
        name: Of files, and in C of everything in them.
        layout: Of C: one of LAYOUTS.
        rows: A table; its first rows are checked by the exported code against the answers here.
            Without one, rows are made up that reach every part of the encoder.

    Returns:
        The files that were written.

    Examples:
        >>> from vitrail import load_model
        >>> model = load_model("cancer.safetensors")  # doctest: +SKIP
        >>> export_model(model, "js", "site", name="cancer")  # doctest: +SKIP
        [PosixPath('site/cancer.mjs')]
    """
    if to not in FORMATS:
        raise ExportError(f"unknown format {to!r}; choose one of: {', '.join(FORMATS)}")
    if layout != "header" and to != "c":
        raise ExportError(f"the layout {layout!r} is one of C; leave it out for {to}")
    if not name or Path(name).name != name or "\0" in name:
        raise ExportError(f"expected a name of files, without a folder, got {name!r}")
    if Path(folder).is_file():
        raise ExportError(f"{folder} is a file; give a folder")
    written = []
    for path, content in FORMATS[to](model, name, layout, golden_rows(model, rows)).items():
        target = Path(folder) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_output(target) as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
        written.append(target)
    return written


def golden_rows(model: Model, table: Any = None) -> Rows:
    """The rows that exported code carries with their answers."""
    if table is None:
        return sample_rows(model.encoder, GOLDEN)
    frame, encoder = as_frame(table), model.encoder
    first = np.arange(min(GOLDEN, len(frame)))
    if isinstance(encoder, BitColumns):
        where = places(frame, encoder.all_names, list(encoder.names))
        return {name: frame[where[name]][first].tolist() for name in encoder.names}
    where = places(frame, encoder.all_names, [code.name for code in encoder.columns])
    return {
        code.name: _cells(code, frame.cells(where[code.name]), first) for code in encoder.columns
    }


def _cells(code: ColumnCode, cells: Cells, rows: np.ndarray) -> list[Any]:
    """A column's cells as exported code is given them: numbers, which are whole where the code
    holds them so, words, None where missing or where a word means nothing among numbers."""
    cells = cells.spelled(code.spelling) if code.numeric else cells
    both = zip(cells.levels, cells.missing, strict=True)
    levels: list[Any] = [None if missing else as_category(level) for level, missing in both]
    numbers = cells.numbers if code.numeric else np.full(len(levels), np.nan)
    if code.whole:
        numbers = np.clip(np.rint(numbers), -MOST_WHOLE, MOST_WHOLE)
    for i, number in enumerate(numbers.tolist()):
        if not np.isnan(number):
            levels[i] = number
        elif code.numeric and not code.other and levels[i] not in code.categories:
            levels[i] = None
    return [levels[i] for i in cells.codes[rows].tolist()]


FORMATS: dict[str, Callable[[Model, str, str, Rows], Contents]] = {
    "c": lambda model, name, layout, rows: layout_files(c_header(model, name, rows), name, layout),
    "js": lambda model, name, _, rows: {f"{name}.mjs": js_module(model, rows)},
    "onnx": lambda model, name, _, rows: {f"{name}.onnx": onnx_file(model)},
    "numpy": lambda model, name, _, rows: {f"{name}.npz": npz_file(model, rows)},
}
"""Each format by name, as a function that gives the files' contents."""
