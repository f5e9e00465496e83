"""Graphs of the program: their nodes, with the lines that made them, and the runtime's dumps of
them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from tflab.records.graph import Node
from tflab.runtime import dumps, private

LARGE_GRAPH = 1_000  # graphs with more nodes are read only once, at the end
MOST_CODES = 10_000  # pieces of code that are kept
MOST_CODE = 200  # characters of a source line
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
LARGE_DUMPS = f"the runtime's dumps have more than {MOST_BYTES >> 20} MiB"


class Lines:
    """What is known of the graphs so far. `note` receives a sentence about what cannot be known."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.note = note
        self.nodes: dict[int, tuple[Node, ...]] = {}  # by the graph's id
        # With the numbers of nodes and names that they were found for
        self.inlined: dict[int, tuple[tuple[int, int] | None, tuple[Node, ...]]] = {}
        self.codes: dict[int, object] = {}  # code that makes ops, by its id

    def keep_stack(self) -> None:
        """An op is made. TensorFlow stores the code on its stack but lets Python free it, and the
        line of the op is read later."""
        codes = self.codes
        if len(codes) < MOST_CODES:
            frame: FrameType | None = sys._getframe(1)
            while frame:
                code = frame.f_code
                codes[id(code)] = code
                frame = frame.f_back

    def nodes_of(self, graph: Any, final: bool = True) -> tuple[Node, ...]:
        """The nodes of a graph with their lines; before the end those known before, if the graph is
        large or the program is changing it."""
        known = self.nodes.get(id(graph), ())
        count = len(graph.get_operations())
        if count == len(known) or (known and not count) or (not final and count > LARGE_GRAPH):
            return known
        if len(self.codes) >= MOST_CODES:
            self.note("Too many pieces of code make nodes; their lines were not recorded.")
            return known
        from tflab.runtime import nodes

        try:
            self.nodes[id(graph)] = nodes.from_graph(graph)
        except Exception:
            if final:
                raise
            return known
        return self.nodes[id(graph)]

    def with_inlined(self, graph: Any, final: bool, names: Collection[str]) -> tuple[Node, ...]:
        """The nodes of a graph, and those of its functions that ran under these names."""
        nodes = self.nodes_of(graph, final)
        key = len(nodes), len(names)
        known, inlined = self.inlined.get(id(graph), (None, ()))
        if known != key:
            inlined = tuple(inlined_in(graph, nodes, names)) if nodes and names else ()
            self.inlined[id(graph)] = key, inlined
        return (*nodes, *inlined)


def inlined_in(graph: Any, nodes: Sequence[Node], names: Iterable[str]) -> Iterator[Node]:
    """The nodes of the functions, branches and loops of a graph, by the names under which they
    ran."""
    from tflab.runtime import functions

    known = {node.name for node in nodes}
    if bodies := functions.of_graph(graph):
        for name, node in functions.origins(names, nodes, bodies):
            if name not in known:
                yield replace(node, name=name)


def line_of(node: Node) -> tuple[str, str, tuple[str, int, str] | None, str]:
    """Name, phase, the line that made it, and its op."""
    made = node.line
    line = (made.file, made.line, made.code[:MOST_CODE]) if made else None
    return node.name, node.phase, line, node.op


class Dumps:
    """The runtime's dumps of graphs, with a folder for each group of runs.

    The runtime writes them when it builds a step, which happens in its first run. Only first runs
    are asked for them, so later runs cost no more than usual.
    """

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
            self.missing[group] = LARGE_DUMPS
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
