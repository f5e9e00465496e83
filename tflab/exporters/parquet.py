"""Parquet: tables as files of columns, for SQL and data frames. DuckDB writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROW_GROUP = 100_000  # rows that are compressed together
MEMORY = "256MB"  # memory limit of DuckDB
WRITE = "COPY ({query}) TO {file} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {rows})"


def connect(folder: Path, name: str = ":memory:") -> Any:
    """A database that keeps what does not fit into memory in this folder. With more than one thread
    it would not keep the order of rows."""
    import duckdb

    return duckdb.connect(
        name, config={"memory_limit": MEMORY, "temp_directory": str(folder), "threads": 1}
    )


def write(database: Any, query: str, file: Path) -> None:
    """Write the rows of a query."""
    database.execute(WRITE.format(query=query, file=literal(file), rows=ROW_GROUP))


def literal(path: Path) -> str:
    doubled = str(path).replace("'", "''")
    return f"'{doubled}'"
