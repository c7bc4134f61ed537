"""What a table can be read from: one small class per kind of file, all of one shape."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from vitrail.data.cells import unique_names
from vitrail.data.delimited import DelimitedFile, is_stream, open_file
from vitrail.data.errors import DataError, listed
from vitrail.data.idx import read_idx

Format = Literal["csv", "tsv", "parquet", "npz", "idx"]
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".npz": "npz",
}
PARQUET_BLOCK_ROWS = 65_536
INPUT_ARRAYS, LABEL_ARRAYS = ("X", "inputs"), ("y", "labels")  # the names looked for in NPZ files


class Source(Protocol):
    """An opened file of rows.

    label        the column of labels, where the file says which
    image_shape  (height, width) where the other columns are the pixels of an image, row by row
    """

    @property
    def label(self) -> str | None: ...

    @property
    def image_shape(self) -> tuple[int, int] | None: ...

    @property
    def schema(self) -> pa.Schema: ...

    def blocks(self) -> Iterator[pa.RecordBatch]:
        """The rows from the first on, a block at a time; may be called again."""
        ...

    def blocks_in_file(self) -> float:
        """About how many blocks there are, so that the first tells the size of the whole."""
        ...

    def close(self) -> None: ...


class ParquetSource:
    """A Parquet file, a block of rows at a time."""

    label = None
    image_shape = None

    def __init__(self, path: str | Path) -> None:
        self._stream = open_file(path)
        try:
            self._file = parquet.ParquetFile(self._stream)
            unique_names(self.schema.names)
        except (pa.ArrowInvalid, OSError) as error:
            self.close()
            raise DataError(f"{path} cannot be read as Parquet: {_sentence(error)}") from None
        except DataError:
            self.close()
            raise

    @property
    def schema(self) -> pa.Schema:
        return self._file.schema_arrow

    def blocks(self) -> Iterator[pa.RecordBatch]:
        return self._file.iter_batches(PARQUET_BLOCK_ROWS)

    def blocks_in_file(self) -> float:
        return self._file.metadata.num_rows / PARQUET_BLOCK_ROWS

    def close(self) -> None:
        self._stream.close()


class ArraySource:
    """Inputs (rows, columns) or images (rows, height, width), and perhaps labels (rows,)."""

    def __init__(
        self, title: str, inputs: np.ndarray, label: str | None, labels: np.ndarray | None
    ) -> None:
        self.label = None if labels is None else label
        self.image_shape = None
        if inputs.ndim == 3:
            self.image_shape = (inputs.shape[1], inputs.shape[2])
            names = [f"r{row}c{column}" for row, column in np.ndindex(self.image_shape)]
        elif inputs.ndim == 2:
            names = [f"x{column}" for column in range(inputs.shape[1])]
        else:
            raise DataError(
                f"{title}: expected inputs of shape (rows, columns) or (rows, height, width), "
                f"found {inputs.shape}; reshape them"
            )
        columns = list(np.ascontiguousarray(inputs.reshape(len(inputs), len(names)).T))
        if labels is not None:
            if labels.shape != inputs.shape[:1]:
                raise DataError(
                    f"{title}: expected one label for each of {len(inputs)} inputs, found labels "
                    f"of shape {labels.shape}; give arrays of one data set"
                )
            names, columns = [*names, str(label)], [*columns, labels]
        try:
            self._batch = pa.RecordBatch.from_arrays(list(map(pa.array, columns)), names)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(f"{title} cannot be read as a table: {_sentence(error)}") from None

    @property
    def schema(self) -> pa.Schema:
        return self._batch.schema

    def blocks(self) -> Iterator[pa.RecordBatch]:
        yield self._batch

    def blocks_in_file(self) -> float:
        return 1.0

    def close(self) -> None:
        pass


def open_source(path: str | Path, kind: Format | None = None) -> Source:
    """Open a file by its format, told by its name unless given."""
    kind = kind or file_format(path)
    if kind not in get_args(Format):
        raise DataError(f"unknown format {kind!r}; choose one of {', '.join(get_args(Format))}")
    if kind == "csv":
        return DelimitedFile(path)
    if kind == "tsv":
        return DelimitedFile(path, delimiter="\t")
    if is_stream(path):
        raise DataError(f"{kind} cannot be read from standard input; give a file, or CSV")
    if kind == "parquet":
        return ParquetSource(path)
    return _open_npz(path) if kind == "npz" else _open_idx(Path(path))


def file_format(path: str | Path) -> Format:
    """The format a file's name tells; standard input and pipes are CSV."""
    path = Path(path)
    if is_stream(path):
        return "csv"
    open_file(path).close()  # that it is not there is said before that its name tells nothing
    name = path.name.casefold().removesuffix(".gz")
    if "idx" in name and "ubyte" in name:
        return "idx"
    suffix = Path(name).suffix
    if suffix not in SUFFIXES:
        raise DataError(
            f"cannot tell the format of {path} from its name; expected it to end in "
            f"{', '.join(SUFFIXES)} or idx3-ubyte: rename it"
        )
    return SUFFIXES[suffix]


def _open_npz(path: str | Path) -> ArraySource:
    with open_file(path) as stream:
        if not zipfile.is_zipfile(stream):
            raise DataError(f"{path} is no NPZ archive; save it with numpy.savez(path, X=…, y=…)")
        try:
            with np.load(stream, allow_pickle=False) as archive:
                names = list(archive.files)
                inputs = next((name for name in INPUT_ARRAYS if name in names), None)
                labels = next((name for name in LABEL_ARRAYS if name in names), None)
                if inputs is None:
                    raise DataError(
                        f"{path}: expected an array named X or inputs, found {listed(names)}; "
                        "save it with numpy.savez(path, X=…, y=…)"
                    )
                arrays = archive[inputs], None if labels is None else archive[labels]
        except DataError:
            raise
        except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error):
            raise DataError(
                f"{path} holds damaged arrays or arrays of objects; save plain numbers or text"
            ) from None
    return ArraySource(str(path), arrays[0], labels, arrays[1])


def _open_idx(path: Path) -> ArraySource:
    """Images, and the labels beside them if the file is named as MNIST's are."""
    images = read_idx(path, axes=3)
    beside = path.with_name(path.name.replace("images-idx3", "labels-idx1"))
    labels = read_idx(beside, axes=1) if beside != path and beside.exists() else None
    return ArraySource(str(path), images, "label", labels)


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
