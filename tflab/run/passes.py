"""Passes: what the runtime writes down at the program's own first runs, and what became of nodes.

The runtime writes when it builds a step, which is at its first run; later runs cost what they do
without. It is asked for it during the first runs alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflab.analysis import ledger, passes
from tflab.errors import TflabError
from tflab.records import Fate, Node, Origin, Pass
from tflab.runtime import dumps, private

GRAPPLER = ("meta_optimizer", 4)  # the file, and the detail of its log from which on it dumps
NAMES = ("TF_DUMP_GRAPH_NAME_FILTER", "TF_DUMP_GRAPH_GROUPS", "TF_DUMP_GRAPH_FMT")
OF_USERS = (dumps.DUMP_FOLDER, *NAMES, "TF_CPP_VMODULE")
MOST_CONSTANTS = 2 * 2**20  # bytes in a graph that is written down: each pass writes all of it
SMALL = 2**16  # bytes of a constant that are counted by its shape
MOST_BYTES = 100 * 2**20  # of dumps that are kept until the end


@dataclass(frozen=True)
class Account:
    """What became of each node of a graph, pass by pass."""

    passes: tuple[Pass, ...]
    ledger: tuple[Fate, ...]
    origins: tuple[Origin, ...]


NOT_SEEN = Account((), (), ())


class Dumps:
    """What the runtime writes of its graphs, that of each group of runs in a folder of its own."""

    def __init__(self, folder: str, log: private.Log) -> None:
        self.fresh, self.log = Path(folder, "dumps"), log
        self.kept_bytes = 0
        self.constants: dict[int, tuple[int, int]] = {}  # of graphs: ops so far, bytes of constants
        # Where the program's user wants dumps, they are not touched.
        self.wanted = not any(name in os.environ for name in OF_USERS)
        if self.wanted:
            self.fresh.mkdir()

    def size_of_constants(self, graph: Any) -> int:
        """How many bytes the constants of a graph have; it may have grown since the last time."""
        count, size = self.constants.get(id(graph), (0, 0))
        ops = graph.get_operations()
        for op in ops[count:]:
            if op.type == "Const":
                value = op.outputs[0]
                bytes_by_shape = (value.shape.num_elements() or 0) * value.dtype.size
                # One that repeats a number is smaller
                small = bytes_by_shape <= SMALL
                size += bytes_by_shape if small else op.node_def.ByteSize()
        self.constants[id(graph)] = len(ops), size
        return size

    def begin(self) -> None:
        """From now on the runtime writes. The program's Python does not see the variables."""
        if not self.wanted:
            return
        for file in self.files():  # of nobody's
            file.unlink(missing_ok=True)
        os.putenv(dumps.DUMP_FOLDER, str(self.fresh))
        for name in NAMES:
            os.putenv(name, dumps.DUMP_ENVIRONMENT[name])
        self.log.read_variables()
        self.log.detail(*GRAPPLER)

    def end(self, group: int, keep: bool) -> None:
        """What was written since is of this group, where it is of it alone."""
        if not self.wanted:
            return
        self.log.detail(GRAPPLER[0], 0)
        for name in NAMES:  # children of the program are not to write anything
            os.unsetenv(name)
        self.log.read_variables()
        files = self.files()
        size = sum(file.stat().st_size for file in files)
        if files and keep and self.kept_bytes + size <= MOST_BYTES:
            self.kept_bytes += size
            folder = self.of(group)
            folder.mkdir()
            for file in files:
                file.rename(folder / file.name)

    def files(self) -> list[Path]:
        return [*self.fresh.iterdir()]

    def of(self, group: int) -> Path:
        return self.fresh.with_name(f"dumps-{group}")

    def account(
        self,
        group: int,
        nodes: tuple[Node, ...],
        executed: tuple[Node, ...],
        fetches: Iterable[str],
        feeds: Iterable[str],
    ) -> Account | None:
        """What became of the nodes of the program's graph at the first run of a group; None where
        nothing was written. Raises TflabError where the account does not close."""
        folder = self.of(group)
        if not folder.is_dir() or not executed:
            return None
        steps = passes.compare(nodes, dumps.read(folder), executed)
        fates = ledger.fates(nodes, steps, executed, fetches, feeds)
        origins = tuple(ledger.origins(fates, steps, executed))
        unknown = [origin.name for origin in origins if origin.origin == "unknown"]
        if unknown:
            raise TflabError(
                f"What became of the nodes is not shown: it is not known where {len(unknown)} of "
                f"those that ran come from, {unknown[0]} among them."
            )
        return Account(steps, fates, origins)
