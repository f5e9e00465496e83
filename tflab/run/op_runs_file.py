"""Op runs: every op run of the traced runs, as a file of columns for SQL and data frames.

The program's process writes them as text, many rows at a time. The command converts the text to a
Parquet file, with the line that made each node. Neither has all rows in memory.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tflab.exporters import parquet

NAME = "op_runs"
ROWS = 20_000  # rows that are written together
KINDS = {  # the columns of the file, as Arrow calls their types
    "group_number": "int32",
    "run": "int64",
    "node": "string",
    "op": "string",
    "phase": "string",
    "file": "string",
    "line": "int32",
    "code": "string",
    "start_ns": "int64",
    "duration_ns": "int64",
}
RUNS = ("group_number", "run", "node", "start_ns", "duration_ns")  # what the process writes
OF_NODE = ("op", "phase", "file", "line", "code")


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
    runs, written = folder / NAME, folder / f"{NAME}.parquet"
    if not runs.exists() or not runs.stat().st_size:
        return None
    parquet.write(written, with_nodes(runs, segment), rising="start_ns")
    return written


def with_nodes(runs: Path, segment: Mapping[str, Any]) -> Iterator[Any]:
    """The op runs, in their order, beside what is known of their nodes, as Arrow tables of many
    rows each."""
    import pyarrow
    from pyarrow import compute, csv

    kinds = {name: getattr(pyarrow, kind)() for name, kind in KINDS.items()}
    schema = pyarrow.schema([("key", pyarrow.string()), *((name, kinds[name]) for name in OF_NODE)])
    columns = list(zip(*nodes(segment.get("graphs", ())), strict=True)) or [()] * len(schema)
    known = pyarrow.table(list(map(list, columns)), schema)
    graphs = [group["graph"] for group in segment.get("groups", ())]
    numbers = pyarrow.array(range(1, 1 + len(graphs)), kinds["group_number"])
    graph_of = pyarrow.array(map(str, graphs), pyarrow.string())
    with runs.open("rb") as file:
        batches = csv.open_csv(
            file,
            csv.ReadOptions(column_names=RUNS),
            csv.ParseOptions(newlines_in_values=True),
            csv.ConvertOptions(column_types={name: kinds[name] for name in RUNS}),
        )
        for batch in batches:
            graph = graph_of.take(compute.index_in(batch["group_number"], numbers))
            key = compute.binary_join_element_wise(graph, batch["node"], ":")
            own = known.take(compute.index_in(key, known["key"]))
            yield pyarrow.table({name: (batch if name in RUNS else own)[name] for name in KINDS})


def nodes(graphs: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """A key for each node of each graph, and OF_NODE."""
    for number, graph in enumerate(graphs, 1):
        for node, phase, made, op in graph:
            file, line, code = made or (None, None, None)
            key = f"{number}:{text(node) or ''}"
            yield key, text(op), text(phase), text(file), line, text(code)


def text(value: str | None) -> str | None:
    """What of a text can be written as UTF-8, as in the rows of the program's process; None if it
    is empty."""
    return value.encode(errors="replace").decode() if value else None
