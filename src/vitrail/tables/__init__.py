"""Tables of numbers and words: readers and writers, encoders to bits, labels."""

from vitrail.tables.encoders import TableEncoder
from vitrail.tables.table import Table, iter_table, read_table
from vitrail.tables.writing import write_table

__all__ = ["Table", "TableEncoder", "iter_table", "read_table", "write_table"]
