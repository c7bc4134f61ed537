"""Arrow columns in the few types vitrail holds them in, whoever made them.

| given | held as |
|---|---|
| text of any layout (large_string, string_view, dictionaries) | text by its distinct values |
| decimals, half floats, run-end encoded values | float64, float32, the values |
| categories that are no text | a dictionary with 32-bit places |
| numbers, booleans, dates, lists, … | as they are, to pass through or be refused on use |
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import compute

from vitrail.errors import DataError

TEXT = pa.dictionary(pa.int32(), pa.string())


def plain_type(kind: pa.DataType) -> pa.DataType:
    """What a column of that type is held as."""
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return TEXT
    if isinstance(kind, pa.DictionaryType):
        held = plain_type(kind.value_type)
        return held if held == TEXT else pa.dictionary(pa.int32(), held)
    if isinstance(kind, pa.RunEndEncodedType):
        return plain_type(kind.value_type)
    if types.is_decimal(kind):
        return pa.float64()
    return pa.float32() if types.is_float16(kind) else kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The columns as they are held, without what others note beside them."""
    return pa.schema([(field.name, plain_type(field.type)) for field in schema])


def plain_table(table: pa.Table) -> pa.Table:
    """The table with its columns as they are held."""
    columns = [
        _held(column, name) for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=plain_schema(table.schema))


def _held(column: Any, name: str) -> Any:
    target = plain_type(column.type)
    if target == column.type:
        return column
    try:
        if isinstance(column.type, pa.RunEndEncodedType):
            return _held(compute.call_function("run_end_decode", [column]), name)
        if isinstance(column.type, pa.DictionaryType):
            parts = [
                pa.DictionaryArray.from_arrays(
                    part.indices.cast(pa.int32()), part.dictionary.cast(target.value_type)
                )
                for part in column.chunks
            ]
            return pa.chunked_array(parts, target)
        if target == TEXT:
            return column.cast(pa.string()).dictionary_encode()
        return column.cast(target)
    except pa.ArrowException as error:
        raise DataError(
            f"column {name!r} holds {column.type} values that cannot be read "
            f"({sentence(error)}); convert it or leave it out"
        ) from None


def sentence(error: Exception) -> str:
    """What pyarrow says, on one line."""
    return " ".join(str(error).split()).rstrip(".")
