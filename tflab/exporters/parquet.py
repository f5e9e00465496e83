"""Parquet: tables as files of columns, for SQL and data frames."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROW_GROUP = 100_000  # rows that are compressed together


def write(file: Path, tables: Iterable[Any]) -> None:
    """Write the rows of Arrow tables with the same columns, one table after the other. There must
    be one table at least. Raises OSError."""
    import pyarrow
    from pyarrow import parquet

    tables = iter(tables)
    waiting = [next(tables)]
    schema = waiting[0].schema
    numbers = [field.name for field in schema if pyarrow.types.is_integer(field.type)]
    with parquet.ParquetWriter(
        file,
        schema,
        compression="zstd",
        use_dictionary=[name for name in schema.names if name not in numbers],
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        store_schema=False,  # without it, all readers take coded texts as plain ones
    ) as writer:
        for table in tables:
            if sum(map(len, waiting)) >= ROW_GROUP:
                writer.write_table(pyarrow.concat_tables(waiting), ROW_GROUP)
                waiting.clear()
            waiting.append(table)
        writer.write_table(pyarrow.concat_tables(waiting), ROW_GROUP)
