"""Parquet: tables as files of columns, for SQL and data frames."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROW_GROUP = 100_000  # rows that are compressed together


def write(file: Path, tables: Iterable[Any], rising: str) -> None:
    """Write the rows of Arrow tables with the same columns, one table after the other. There must
    be one table at least. Of the column `rising`, whose numbers mostly rise, the differences are
    written. Raises OSError."""
    import pyarrow
    from pyarrow import parquet

    tables = iter(tables)
    waiting = [next(tables)]
    schema = waiting[0].schema
    # A file of Python, because a path with a colon would be taken for an address
    with (
        file.open("wb") as stream,
        parquet.ParquetWriter(
            stream,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name != rising],
            column_encoding={rising: "DELTA_BINARY_PACKED"},
            store_schema=False,  # without it, all readers take coded texts as plain ones
        ) as writer,
    ):
        for table in tables:
            if sum(map(len, waiting)) >= ROW_GROUP:
                writer.write_table(pyarrow.concat_tables(waiting), ROW_GROUP)
                waiting.clear()
            waiting.append(table)
        writer.write_table(pyarrow.concat_tables(waiting), ROW_GROUP)
