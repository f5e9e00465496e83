"""Passes: the graphs that the runtime writes during the program's own first runs.

The runtime writes them when it builds a step, which happens in its first run. Only first runs are
asked for them, so later runs cost no more than usual.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tflab.runtime import dumps, private

GRAPPLER = ("meta_optimizer", 4)  # the file, and the log level from which it dumps
NAMES = ("TF_DUMP_GRAPH_NAME_FILTER", "TF_DUMP_GRAPH_GROUPS", "TF_DUMP_GRAPH_FMT")
OF_USERS = (dumps.DUMP_FOLDER, *NAMES, "TF_CPP_VMODULE")
# Bytes of constants in a graph to dump, because each pass writes all of them
MOST_CONSTANTS = 2 * 2**20
SMALL = 2**16  # bytes of a constant up to which its shape gives its size
MOST_BYTES = 100 * 2**20  # of dumps that are kept until the end

# Why a group has no dumps
OTHERS = "other runs began during the first run of the largest group, so it has no files of its own"
NOTHING = "the runtime wrote no files during the first run of the largest group"
OWN = "the program, or its environment, uses the runtime's dumps itself"
LARGE = f"the runtime's dumps have more than {MOST_BYTES >> 20} MiB"


class Dumps:
    """The runtime's dumps of graphs, with a folder for each group of runs."""

    def __init__(self, folder: str, log: private.Log) -> None:
        self.fresh, self.log = Path(folder, "dumps"), log
        self.kept_bytes = 0
        self.missing: dict[int, str] = {}  # why a group has no dumps, if not because of OTHERS
        # Graph -> ops so far, bytes of their constants
        self.constants: dict[int, tuple[int, int]] = {}
        # In a notebook tflab itself may have prepared its process for dumps.
        given = {name: os.environ[name] for name in OF_USERS if name in os.environ}
        self.prepared = bool(given) and given.items() <= dumps.DUMP_ENVIRONMENT.items()
        # Dumps that the user of the program requested are left alone.
        self.wanted = self.prepared or not given
        if self.wanted:
            self.fresh.mkdir()

    def size_of_constants(self, graph: Any) -> int:
        """The bytes of the constants in a graph, which may have grown since the last call."""
        count, size = self.constants.get(id(graph), (0, 0))
        ops = graph.get_operations()
        for op in ops[count:]:
            if op.type == "Const":
                value = op.outputs[0]
                bytes_by_shape = (value.shape.num_elements() or 0) * value.dtype.size
                # A constant that repeats a number is smaller
                small = bytes_by_shape <= SMALL
                size += bytes_by_shape if small else op.node_def.ByteSize()
        self.constants[id(graph)] = len(ops), size
        return size

    def begin(self) -> None:
        """From now on the runtime writes dumps. The program's Python does not see the variables."""
        if not self.wanted:
            return
        for file in self.files():  # left over
            file.unlink(missing_ok=True)
        os.putenv(dumps.DUMP_FOLDER, str(self.fresh))
        if self.prepared:
            return
        for name in NAMES:
            os.putenv(name, dumps.DUMP_ENVIRONMENT[name])
        self.log.read_variables()
        self.log.detail(*GRAPPLER)

    def end(self, group: int, keep: bool) -> None:
        """Assign the files written since `begin` to this group, unless other steps ran
        meanwhile."""
        if not self.wanted:
            self.missing[group] = OWN
            return
        if self.prepared:
            os.unsetenv(dumps.DUMP_FOLDER)
        else:
            self.log.detail(GRAPPLER[0], 0)
            for name in NAMES:  # child processes of the program should write nothing
                os.unsetenv(name)
            self.log.read_variables()
        files = self.files()
        size = sum(file.stat().st_size for file in files)
        if not files:
            self.missing[group] = NOTHING
        elif keep and self.kept_bytes + size > MOST_BYTES:
            self.missing[group] = LARGE
        elif keep:
            self.kept_bytes += size
            folder = self.folder_of(group)
            folder.mkdir()
            for file in files:
                file.rename(folder / file.name)

    def files(self) -> list[Path]:
        return [*self.fresh.iterdir()]

    def folder_of(self, group: int) -> Path:
        return self.fresh.with_name(f"dumps-{group}")
