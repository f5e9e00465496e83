"""Op runs: every op run of the traced runs, as a file of columns for SQL and data frames.

The program's process writes them as text, many rows at a time. The command converts the text to a
Parquet file, with the line that made each node. Neither has all rows in memory.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tflab.exporters import parquet

NAME, NODES = "op_runs", "nodes"
ROWS = 20_000  # rows that are written together
RUNS = {
    "group_number": "INTEGER",
    "run": "BIGINT",
    "node": "VARCHAR",
    "start_ns": "BIGINT",
    "duration_ns": "BIGINT",
}
PLACES = {
    "group_number": "INTEGER",
    "node": "VARCHAR",
    "op": "VARCHAR",
    "phase": "VARCHAR",
    "file": "VARCHAR",
    "line": "INTEGER",
    "code": "VARCHAR",
}
READ = "read_csv({file}, header=false, delim=',', quote='\"', escape='\"', columns={columns})"
QUERY = """
SELECT group_number, run, node, op, phase, file, line, code, start_ns, duration_ns
FROM {runs} AS runs LEFT JOIN {nodes} AS nodes USING (group_number, node)
"""


class OpRunsFile:
    """The file of the program's process."""

    def __init__(self, folder: str, note: Callable[[str], None]) -> None:
        self.path, self.note = os.path.join(folder, NAME), note
        self.rows: list[str] = []
        self.ended = False

    def add(
        self, group: int, run: int, names: Sequence[str], starts: Sequence[int], ns: Sequence[int]
    ) -> None:
        """Add the op runs of a traced run: their nodes, starts and durations."""
        if self.ended:
            return
        quoted = map(quote, names)
        self.rows += [
            f"{group},{run},{name},{start},{duration}\n"
            for name, start, duration in zip(quoted, starts, ns, strict=True)
        ]
        if len(self.rows) >= ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the waiting rows, complete rows only. If that fails, a note says so, and no more
        rows are written."""
        content = "".join(self.rows).encode(errors="replace")
        self.rows.clear()
        try:
            self.append(content)
        except OSError as error:
            self.ended = True
            self.note(f"The op runs end before the program does: {error.strerror}.")

    def append(self, content: bytes) -> None:
        # Not a file object, because each forked child would write its buffer again.
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(file).st_size
            written = os.write(file, content)
            if written < len(content):
                os.ftruncate(file, size + content.rfind(b"\n", 0, written) + 1)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(file)


def quote(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def to_parquet(folder: Path, segment: Mapping[str, Any]) -> Path | None:
    """Make one Parquet file of all op runs; None if there are none.

    `op`, `phase`, `file`, `line` and `code` are those of the program's node with this name, and
    null if it has none.
    """
    runs, nodes, written = folder / NAME, folder / NODES, folder / f"{NAME}.parquet"
    if not runs.exists():
        return None
    with nodes.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(places(segment))
    query = QUERY.format(runs=reader(runs, RUNS), nodes=reader(nodes, PLACES))
    with parquet.connect(folder) as database:
        parquet.write(database, query, written)
    return written


def places(segment: Mapping[str, Any]) -> Iterable[str]:
    """A row for each node of the graph of each group."""
    for number, group in enumerate(segment.get("groups", ()), 1):
        graph = segment["graphs"][group["graph"] - 1] if group["graph"] else ()
        for node, phase, made, op in graph:
            file, line, code = made or ("", "", "")
            texts = (node, op, phase, file, str(line), code)
            yield f"{number},{','.join(quote(text) if text else '' for text in texts)}\n"


def reader(file: Path, columns: Mapping[str, str]) -> str:
    kinds = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    return READ.format(file=parquet.literal(file), columns=f"{{{kinds}}}")
